"""Rankers against judged lists and held-out clicks."""

from ultr.evaluate.evaluation import Evaluation, evaluate, gap_closed
from ultr.evaluate.held_out import ClickFit, click_fit

__all__ = ["ClickFit", "Evaluation", "click_fit", "evaluate", "gap_closed"]
