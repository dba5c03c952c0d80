"""Measures of rankers and of predicted clicks, with their uncertainty. Pure functions on numpy arrays.

Ties between scores count against the ranker, and a query without a relevant document has the value NaN;
`ultr.metrics.ranking` says why.
"""

from ultr.metrics.agreement import kendall_tau as kendall_tau
from ultr.metrics.agreement import same_top as same_top
from ultr.metrics.click_fit import list_log_likelihoods as list_log_likelihoods
from ultr.metrics.click_fit import log_likelihoods as log_likelihoods
from ultr.metrics.exposure import ExposureShift as ExposureShift
from ultr.metrics.exposure import exposure_shift as exposure_shift
from ultr.metrics.held_out_choice import Lead as Lead
from ultr.metrics.held_out_choice import paired_lead as paired_lead
from ultr.metrics.held_out_choice import smallest_not_beaten as smallest_not_beaten
from ultr.metrics.intervals import Interval as Interval
from ultr.metrics.intervals import PairedTest as PairedTest
from ultr.metrics.intervals import bootstrap_interval as bootstrap_interval
from ultr.metrics.intervals import bootstrap_ratio as bootstrap_ratio
from ultr.metrics.intervals import paired_test as paired_test
from ultr.metrics.measures import METRICS as METRICS
from ultr.metrics.measures import Measure as Measure
from ultr.metrics.measures import mean as mean
from ultr.metrics.measures import value_range as value_range
from ultr.metrics.ranked_lists import RankedLists as RankedLists
from ultr.metrics.ranked_lists import rank_lists as rank_lists
from ultr.metrics.ranking import average_precision as average_precision
from ultr.metrics.ranking import average_relevance_position as average_relevance_position
from ultr.metrics.ranking import expected_reciprocal_rank as expected_reciprocal_rank
from ultr.metrics.ranking import lower_is_better as lower_is_better
from ultr.metrics.ranking import ndcg as ndcg
from ultr.metrics.ranking import precision as precision
from ultr.metrics.ranking import reciprocal_rank as reciprocal_rank
