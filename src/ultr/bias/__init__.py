"""The bias of a log: position bias estimated or read from a file, and tests of what a log can and cannot tell.

No torch here.
"""

from ultr.bias.curves import CURVE_ESTIMATORS as CURVE_ESTIMATORS
from ultr.bias.curves import BiasCurves as BiasCurves
from ultr.bias.curves import Curve as Curve
from ultr.bias.curves import bias_curves as bias_curves
from ultr.bias.dispersion import Dispersion as Dispersion
from ultr.bias.dispersion import dispersion as dispersion
from ultr.bias.dispersion import document_dispersion as document_dispersion
from ultr.bias.dispersion import draw_clicks as draw_clicks
from ultr.bias.dispersion import group_dispersion as group_dispersion
from ultr.bias.explored_cells import ExploredCells as ExploredCells
from ultr.bias.identifiability import BiasGraph as BiasGraph
from ultr.bias.identifiability import Link as Link
from ultr.bias.identifiability import bias_graph as bias_graph
from ultr.bias.identities import same_features as same_features
from ultr.bias.position_based_fit import fit_poisson as fit_poisson
from ultr.bias.predictability import Predictability as Predictability
from ultr.bias.predictability import position_predictability as position_predictability
from ultr.bias.propensities import click_rate_curve as click_rate_curve
from ultr.bias.propensities import click_rate_propensities as click_rate_propensities
from ultr.bias.propensities import read_propensities as read_propensities
from ultr.bias.rank_test import RankTest as RankTest
from ultr.bias.rank_test import rank_test as rank_test
from ultr.bias.relevance_groups import click_groups as click_groups
from ultr.bias.relevance_groups import group_table as group_table
from ultr.bias.relevance_groups import list_click_groups as list_click_groups
from ultr.bias.relevance_groups import score_groups as score_groups
from ultr.bias.resampled import BY_SWAPS as BY_SWAPS
from ultr.bias.resampled import EM as EM
from ultr.bias.resampled import ESTIMATORS as ESTIMATORS
from ultr.bias.resampled import ResampledPropensities as ResampledPropensities
from ultr.bias.resampled import estimate_propensities as estimate_propensities
from ultr.bias.scalar_test import GROUPINGS as GROUPINGS
from ultr.bias.scalar_test import ScalarTest as ScalarTest
from ultr.bias.scalar_test import scalar_test as scalar_test
from ultr.bias.swaps import SWAP_ESTIMATORS as SWAP_ESTIMATORS
from ultr.bias.swaps import SwapTable as SwapTable
from ultr.bias.swaps import adjacent_chain as adjacent_chain
from ultr.bias.swaps import all_pairs as all_pairs
from ultr.bias.swaps import pivot as pivot
from ultr.bias.value_sets import ValueSets as ValueSets
from ultr.bias.value_sets import value_sets as value_sets
