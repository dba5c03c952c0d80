"""Values that training did not have, flag by flag."""

from __future__ import annotations

import numpy as np

from ultr.data.training_range import Flag, TrainingRange

SEEN = TrainingRange(
    names=("price", "age", "brand"),
    minimum=np.array([1.0, 0.0, 0.0], dtype=np.float32),
    maximum=np.array([9.5, 3.0, 1.0], dtype=np.float32),
    was_missing=np.array([False, True, False]),
    categories={"brand": ("nike", "puma", "other")},
)


def test_each_value_is_held_against_what_training_had() -> None:
    rows = np.array([[1.0, 3.0, 2.0], [0.5, 3.5, 3.0], [10.0, np.nan, -1.0], [np.nan, -1.0, np.nan]], dtype=np.float32)
    assert SEEN.flags(rows).tolist() == [
        [Flag.INSIDE, Flag.INSIDE, Flag.INSIDE],
        [Flag.BELOW, Flag.ABOVE, Flag.NEVER_SEEN],
        [Flag.ABOVE, Flag.INSIDE, Flag.NEVER_SEEN],
        [Flag.MISSING, Flag.BELOW, Flag.MISSING],
    ]


def test_a_value_that_counts_as_other_is_flagged_if_it_was_never_seen() -> None:
    row = np.array([[2.0, 1.0, 2.0]], dtype=np.float32)
    assert SEEN.flags(row, np.array([[False, False, True]]))[0, 2] == Flag.NEVER_SEEN


def test_remarks_name_the_value_and_the_bound() -> None:
    row = np.array([10.25, np.nan, -1.0], dtype=np.float32)
    assert SEEN.remarks(SEEN.flags(row[None])[0], row) == ["price 10.25 > 9.5", "brand was never seen"]
    row = np.array([0.5, 1.0, np.nan], dtype=np.float32)
    assert SEEN.remarks(SEEN.flags(row[None])[0], row) == ["price 0.5 < 1", "brand is missing"]


def test_nothing_unusual_is_nothing_to_say() -> None:
    rows = np.array([[2.0, np.nan, 0.0]], dtype=np.float32)
    assert SEEN.in_words(SEEN.flags(rows)) == ""
