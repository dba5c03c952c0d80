"""The bias of a log: position bias estimated or read from a file, and tests of what a log can and cannot tell.

No torch here.
"""

from ultr.bias.curves import CURVE_ESTIMATORS, BiasCurves, Curve, bias_curves
from ultr.bias.dispersion import Dispersion, dispersion, document_dispersion, draw_clicks, group_dispersion
from ultr.bias.explored_cells import ExploredCells
from ultr.bias.identifiability import BiasGraph, Link, bias_graph
from ultr.bias.identities import same_features
from ultr.bias.position_based_fit import fit_poisson
from ultr.bias.predictability import Predictability, position_predictability
from ultr.bias.propensities import click_rate_curve, click_rate_propensities, read_propensities
from ultr.bias.rank_test import RankTest, rank_test
from ultr.bias.relevance_groups import click_groups, group_table, list_click_groups, score_groups
from ultr.bias.resampled import BY_SWAPS, EM, ESTIMATORS, ResampledPropensities, estimate_propensities
from ultr.bias.scalar_test import GROUPINGS, ScalarTest, scalar_test
from ultr.bias.swaps import SWAP_ESTIMATORS, SwapTable, adjacent_chain, all_pairs, pivot
from ultr.bias.value_sets import ValueSets, value_sets

__all__ = [
    "BY_SWAPS",
    "CURVE_ESTIMATORS",
    "EM",
    "ESTIMATORS",
    "GROUPINGS",
    "SWAP_ESTIMATORS",
    "BiasCurves",
    "BiasGraph",
    "Curve",
    "Dispersion",
    "ExploredCells",
    "Link",
    "Predictability",
    "RankTest",
    "ResampledPropensities",
    "ScalarTest",
    "SwapTable",
    "ValueSets",
    "adjacent_chain",
    "all_pairs",
    "bias_curves",
    "bias_graph",
    "click_groups",
    "click_rate_curve",
    "click_rate_propensities",
    "dispersion",
    "document_dispersion",
    "draw_clicks",
    "estimate_propensities",
    "fit_poisson",
    "group_dispersion",
    "group_table",
    "list_click_groups",
    "pivot",
    "position_predictability",
    "rank_test",
    "read_propensities",
    "same_features",
    "scalar_test",
    "score_groups",
    "value_sets",
]
