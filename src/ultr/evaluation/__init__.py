"""Rankers against judged lists, held-out clicks and the clicks that another ranker collected."""

from ultr.evaluation.assumption import Assumption as Assumption
from ultr.evaluation.comparison import Comparison as Comparison
from ultr.evaluation.comparison import compare as compare
from ultr.evaluation.counterfactual import CounterfactualValue as CounterfactualValue
from ultr.evaluation.counterfactual import Valuation as Valuation
from ultr.evaluation.counterfactual import counterfactual_value as counterfactual_value
from ultr.evaluation.evidence import Candidates as Candidates
from ultr.evaluation.evidence import Evidence as Evidence
from ultr.evaluation.held_out import ClickFit as ClickFit
from ultr.evaluation.held_out import QueryLikelihoods as QueryLikelihoods
from ultr.evaluation.held_out import click_fit as click_fit
from ultr.evaluation.judged import Evaluation as Evaluation
from ultr.evaluation.judged import evaluate as evaluate
from ultr.evaluation.judged import gap_closed as gap_closed
from ultr.evaluation.shift import shift_from_log as shift_from_log
from ultr.evaluation.trial import Answer as Answer
from ultr.evaluation.unseen_part import UnseenPart as UnseenPart
from ultr.evaluation.unseen_part import unseen_part as unseen_part
