"""Measures of rankers and of predicted clicks, with their uncertainty. Pure functions on numpy arrays.

Ties between scores count against the ranker, and a query without a relevant document has the value NaN;
`ultr.metrics.ranking` says why.
"""

from ultr.metrics.agreement import kendall_tau, same_top
from ultr.metrics.click_fit import list_log_likelihood, list_log_likelihoods, log_likelihoods
from ultr.metrics.exposure import ExposureShift, exposure_shift
from ultr.metrics.held_out_choice import Lead, paired_lead, smallest_not_beaten
from ultr.metrics.intervals import Interval, PairedTest, bootstrap_interval, bootstrap_ratio, paired_test
from ultr.metrics.measures import METRICS, Measure, mean
from ultr.metrics.ranked_lists import RankedLists, rank_lists
from ultr.metrics.ranking import (
    average_precision,
    average_relevance_position,
    expected_reciprocal_rank,
    lower_is_better,
    ndcg,
    precision,
    reciprocal_rank,
)

__all__ = [
    "METRICS",
    "ExposureShift",
    "Interval",
    "Lead",
    "Measure",
    "PairedTest",
    "RankedLists",
    "average_precision",
    "average_relevance_position",
    "bootstrap_interval",
    "bootstrap_ratio",
    "expected_reciprocal_rank",
    "exposure_shift",
    "kendall_tau",
    "list_log_likelihood",
    "list_log_likelihoods",
    "log_likelihoods",
    "lower_is_better",
    "mean",
    "ndcg",
    "paired_lead",
    "paired_test",
    "precision",
    "rank_lists",
    "reciprocal_rank",
    "same_top",
    "smallest_not_beaten",
]
