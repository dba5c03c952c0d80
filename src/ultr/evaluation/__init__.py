"""Rankers against judged lists and held-out clicks."""

from ultr.evaluation.held_out import ClickFit, click_fit
from ultr.evaluation.judged import Evaluation, evaluate, gap_closed

__all__ = ["ClickFit", "Evaluation", "click_fit", "evaluate", "gap_closed"]
