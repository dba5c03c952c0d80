"""Rankers against judged lists, held-out clicks and the clicks that another ranker collected."""

from ultr.evaluation.assumption import Assumption
from ultr.evaluation.comparison import Comparison, compare
from ultr.evaluation.counterfactual import CounterfactualValue, Valuation, counterfactual_value
from ultr.evaluation.evidence import Candidates, Evidence
from ultr.evaluation.held_out import ClickFit, QueryLikelihoods, click_fit
from ultr.evaluation.judged import Evaluation, evaluate, gap_closed
from ultr.evaluation.shift import shift_from_log
from ultr.evaluation.trial import Answer
from ultr.evaluation.unseen_part import UnseenPart, unseen_part

__all__ = [
    "Answer",
    "Assumption",
    "Candidates",
    "ClickFit",
    "Comparison",
    "CounterfactualValue",
    "Evaluation",
    "Evidence",
    "QueryLikelihoods",
    "UnseenPart",
    "Valuation",
    "click_fit",
    "compare",
    "counterfactual_value",
    "evaluate",
    "gap_closed",
    "shift_from_log",
    "unseen_part",
]
