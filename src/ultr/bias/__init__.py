"""What a log says about bias: position bias estimated or read from a file, and what a log can and cannot tell.

No torch here.
"""

from ultr.bias.curves import CURVE_ESTIMATORS, BiasCurves, Curve, bias_curves
from ultr.bias.identifiability import BiasGraph, Link, bias_graph, same_features
from ultr.bias.position_based_fit import Cells, PositionBasedFit, fit_poisson
from ultr.bias.predictability import Predictability, position_predictability
from ultr.bias.propensities import click_rate_curve, click_rate_propensities, read_propensities
from ultr.bias.rank_test import RankTest, document_rank_test, rank_test
from ultr.bias.relevance_groups import click_groups, document_groups, group_table, score_groups
from ultr.bias.resampled import ESTIMATORS, ResampledPropensities, estimate_propensities
from ultr.bias.swaps import SWAP_ESTIMATORS, SwapTable, adjacent_chain, all_pairs, pivot

__all__ = [
    "CURVE_ESTIMATORS",
    "ESTIMATORS",
    "SWAP_ESTIMATORS",
    "BiasCurves",
    "BiasGraph",
    "Cells",
    "Curve",
    "Link",
    "PositionBasedFit",
    "Predictability",
    "RankTest",
    "ResampledPropensities",
    "SwapTable",
    "adjacent_chain",
    "all_pairs",
    "bias_curves",
    "bias_graph",
    "click_groups",
    "click_rate_curve",
    "click_rate_propensities",
    "document_groups",
    "document_rank_test",
    "estimate_propensities",
    "fit_poisson",
    "group_table",
    "pivot",
    "position_predictability",
    "rank_test",
    "read_propensities",
    "same_features",
    "score_groups",
]
