"""Position bias estimated from a log, or read from a file. No torch here."""

from ultr.bias.propensities import click_rate_curve, click_rate_propensities, read_propensities
from ultr.bias.resampled import ESTIMATORS, ResampledPropensities, estimate_propensities
from ultr.bias.swaps import SWAP_ESTIMATORS, SwapTable, adjacent_chain, all_pairs, pivot

__all__ = [
    "ESTIMATORS",
    "SWAP_ESTIMATORS",
    "ResampledPropensities",
    "SwapTable",
    "adjacent_chain",
    "all_pairs",
    "click_rate_curve",
    "click_rate_propensities",
    "estimate_propensities",
    "pivot",
    "read_propensities",
]
