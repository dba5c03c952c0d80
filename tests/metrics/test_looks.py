from __future__ import annotations

import numpy as np
import pytest

from ultr.errors import OptionError
from ultr.metrics import Interval
from ultr.metrics.always_valid import for_looks

LOOKS, RUNS = 10, 4_000


def _errors(looks: int) -> float:
    """The share of runs in which one of ten looks at a growing mean of nothing leaves 0 out."""
    steps = np.random.default_rng(0).normal(size=(RUNS, LOOKS, 20))
    wrong = np.zeros(RUNS, dtype=np.bool_)
    for look in range(1, LOOKS + 1):
        means, error = steps[:, :look].mean(axis=(1, 2)), 1 / np.sqrt(20 * look)
        for run, mean in enumerate(means):
            interval = for_looks(Interval(mean, mean - 1.96 * error, mean + 1.96 * error), looks)
            wrong[run] |= interval.low > 0 or interval.high < 0
    return float(wrong.mean())


def test_ten_looks_together_have_the_error_of_one() -> None:
    assert _errors(1) > 0.15
    assert 0.01 < _errors(LOOKS) < 0.05


def test_one_look_is_the_interval_itself_and_ends_move_by_the_quotient_of_normal_quantiles() -> None:
    interval = Interval(1.0, 0.5, 3.0)
    alone = for_looks(interval, 1)
    assert (alone.low, alone.high) == pytest.approx((0.5, 3.0))
    # Normal quantiles of 1 - .05 / 2 and of 1 - .05 / 20.
    wider = 2.8070338 / 1.9599640
    found = for_looks(interval, 10)
    assert (found.mean, found.low, found.high) == pytest.approx((1.0, 1 - 0.5 * wider, 1 + 2 * wider))
    with pytest.raises(OptionError, match="looks must be an integer of at least 1"):
        for_looks(interval, 0)
