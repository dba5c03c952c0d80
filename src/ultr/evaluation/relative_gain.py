"""A difference between two rankings as a share of what users do today."""

from __future__ import annotations

from collections.abc import Mapping

from ultr.data.click_log import ClickLog
from ultr.evaluation.worth import Worth
from ultr.metrics.intervals import Interval


def relative_gain(difference: Interval | None, log: ClickLog, value: Mapping[str, float] | None) -> Interval | None:
    """A difference in clicks on an impression, or in their `value`, as a share of what the impressions of a log had.

    That was observed and not estimated: trust bias is taken off a difference, and a value by inverse propensities,
    which still has it, is too large a measure for one. None where there is no difference, or nothing to measure it by.

    >>> log = ClickLog.of(features=[[0.1]], documents=[0], offsets=[0, 1], impressions=[10], clicks=[4])
    >>> relative_gain(Interval(0.02, 0.01, 0.04), log, None).text()
    '0.050 .025-.100'
    """
    counted = log.clicks if value is None else Worth.of_rows(log, value).totals
    today = float(counted.sum() / log.impressions.sum())
    if difference is None or today <= 0:
        return None
    # No order brings less than nothing, whatever the chance in an estimate.
    mean, low, high = (max(each / today, -1.0) for each in (difference.mean, difference.low, difference.high))
    return Interval(mean, low, high)
