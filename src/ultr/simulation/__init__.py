"""Simulated click logs: the Ranking SVM, the lists it shows and the clicks on them. No torch here."""

from ultr.simulation.log import ceiling_scores, simulate, simulate_log, simulate_more
from ultr.simulation.ranking_svm import RankingSVM
from ultr.simulation.shown import ShownLists, shown_lists

__all__ = ["RankingSVM", "ShownLists", "ceiling_scores", "shown_lists", "simulate", "simulate_log", "simulate_more"]
