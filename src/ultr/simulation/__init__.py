"""Simulated click logs: the Ranking SVM, the lists it shows and the clicks on them. No torch here."""

from ultr.simulation.causes import CAUSES, Cause, Device, Effect, Grid, Pixels, ResultLayout
from ultr.simulation.log import ceiling_scores, simulate, simulate_log, simulate_more
from ultr.simulation.pages import Pages, lay_out
from ultr.simulation.ranking_svm import RankingSVM
from ultr.simulation.shown import ShownLists, shown_lists

__all__ = [
    "CAUSES",
    "Cause",
    "Device",
    "Effect",
    "Grid",
    "Pages",
    "Pixels",
    "RankingSVM",
    "ResultLayout",
    "ShownLists",
    "ceiling_scores",
    "lay_out",
    "shown_lists",
    "simulate",
    "simulate_log",
    "simulate_more",
]
