"""Sums over placements of exploration, against loops over the rows of a log."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ultr.bias import ExploredCells
from ultr.bias.explored_cells import _parts, _possible_everywhere
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.placements import Placements


def _log() -> ClickLog:
    """Pages of two and three documents; some placements are certain, some without a base position."""
    return ClickLog.of(
        features=np.arange(5.0)[:, None],
        documents=[0, 1, 2, 3, 4, 1, 0, 2, 4, 3, 2, 1, 0],
        offsets=[0, 2, 5, 8, 10, 13],
        clicks=[3, 1, 2, 0, 1, 4, 1, 1, 2, 2, 1, 0, 0],
        impressions=[10, 6, 8, 5, 4],
        queries=["a", "a", "b", "b", "c"],
        placement_propensities=[0.8, 0.8, 0.5, 0.25, 1.0, 0.4, 0.5, 0.5, 0.2, 0.2, 0.5, 0.5, 1.0],
        base_positions=[1, 2, 1, 2, 3, 2, 1, 3, 2, 1, 0, 0, 3],
    )


def by_loop(log: ClickLog, groups: list[int], *, counted: set[int] | None = None) -> tuple[dict[Any, Any], int, int]:
    """Sums of 1 / e, 1 / e^2 and c / e by group, length, base and position; placements used and left out."""
    assert log.placements is not None
    sums: dict[Any, Any] = defaultdict(lambda: np.zeros(3))
    used = left_out = 0
    for number in range(log.lists):
        rows = range(log.offsets[number], log.offsets[number + 1])
        for row in rows:
            chance, base = log.placements.propensities[row], int(log.placements.bases[row])
            if not chance < 1:
                continue
            if not base:
                left_out += int(log.impressions[number])
                continue
            if counted is not None and int(log.documents[row]) not in counted:
                continue
            used += int(log.impressions[number])
            key = groups[number], len(rows), base, int(log.position.values[row])
            shown, clicks = log.impressions[number], log.clicks[row]
            sums[key] += np.array([shown / chance, shown / chance**2, clicks / chance])
    return sums, used, left_out


@pytest.mark.parametrize("span", [2**18, 3])
@pytest.mark.parametrize("among", [None, {0, 1, 3}])
def test_sums_are_what_a_loop_over_placements_counts(
    span: int, among: set[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _log()
    groups = np.array([2, 0, 1, 0, 1])
    monkeypatch.setattr(ragged, "SPAN", span)
    mask = None if among is None else np.isin(np.arange(5), list(among))
    found = ExploredCells.of_log(log, groups, group_count=3, among=mask)
    assert found is not None
    sums, used, left_out = by_loop(log, groups.tolist(), counted=among)
    assert (found.used, found.left_out, found.count) == (used, left_out, 3)
    every = by_loop(log, [0] * 5)[0]
    keys = sorted({key[1:] for key in every})
    strata = sorted({key[:2] for key in keys})
    assert found.strata.tolist() == [strata.index(key[:2]) for key in keys]
    assert found.positions.tolist() == [key[2] for key in keys]
    expected = np.array([[sums[group, *key] for key in keys] for group in range(3)])
    np.testing.assert_allclose(found.sums, expected.transpose(0, 2, 1))
    times = np.array([2.0, 0.0, 1.0])
    cells = found.cells(times)
    weights, squares, clicks = np.tensordot(times, found.sums, axes=1)
    for number in range(len(keys)):
        if not weights[number]:
            assert (cells.impressions[number], cells.clicks[number]) == (0.0, 0.0)
            continue
        shown = weights[number] ** 2 / squares[number]
        assert cells.impressions[number] == pytest.approx(shown)
        assert cells.clicks[number] == pytest.approx(shown * clicks[number] / weights[number])
    assert cells.ids.tolist() == list(range(len(strata)))
    assert cells.together.tolist() == [0.0] * len(keys)
    np.testing.assert_allclose(found.cells().impressions, found.cells(np.ones(3)).impressions)


def test_without_groups_all_lists_are_one() -> None:
    log = _log()
    whole, grouped = ExploredCells.of_log(log), ExploredCells.of_log(log, np.zeros(5, dtype=np.int64))
    assert whole is not None
    assert grouped is not None
    np.testing.assert_array_equal(whole.sums, grouped.sums)
    assert whole.sums.shape[0] == 1


@pytest.mark.parametrize(
    ("chances", "pages", "everywhere"),
    [
        ([0.5, 0.5], [100, 100], True),  # 1 / e is 2 on the mean, as many as there are documents
        ([0.9, 0.9], [100, 100], False),  # 1.11
        ([0.25, 0.9], [100, 100], True),  # 2.56
        ([1 / 1.0001, 1 / 2.8], [200, 200], True),  # 1.9, and its standard error is 0.9 / sqrt(800)
        ([1 / 1.0001, 1 / 2.8], [900, 900], False),
    ],
)
def test_where_bases_are_not_known_the_mean_of_inverse_chances_tells_how_many_were_possible(
    chances: list[float],
    pages: list[int],
    everywhere: bool,  # noqa: FBT001
) -> None:
    log = ClickLog.of(
        features=np.zeros((4, 1)),
        documents=[0, 1, 2, 3],
        offsets=[0, 2, 4],
        clicks=np.ones(4),
        impressions=pages,
        queries=["a", "b"],
        placement_propensities=np.repeat(chances, 2),
    )
    found = ExploredCells.of_log(log)
    assert found is not None
    assert (found.used, found.left_out) == ((2 * sum(pages), 0) if everywhere else (0, 2 * sum(pages)))


@pytest.mark.parametrize(("errors", "fits"), [(3.9, True), (4.1, False)])
def test_a_mean_that_is_too_low_by_four_standard_errors_does_not_fit(errors: float, fits: bool) -> None:  # noqa: FBT001
    """1 / e is 1.25 or 2.5 on half of n placements: 0.125 too few with a standard error of 0.625 / sqrt(n)."""
    pages = round((0.625 * errors / 0.125) ** 2 / 4)
    log = ClickLog.of(
        features=np.zeros((4, 1)),
        documents=[0, 1, 2, 3],
        offsets=[0, 2, 4],
        clicks=np.zeros(4),
        impressions=[pages, pages],
        queries=["a", "b"],
        placement_propensities=[0.8, 0.8, 0.4, 0.4],
    )
    assert log.placements is not None
    shapes = np.zeros(log.lists, dtype=np.int64)
    parts = _parts(log, log.placements, shapes)
    # Each page counts once for each of its two documents.
    found = _possible_everywhere(parts, 2)
    shown = 4 * pages
    error = np.sqrt((1.25**2 + 2.5**2) / 2 - 1.875**2) / np.sqrt(shown)
    assert bool(1.875 + 4 * error >= 2) is fits
    assert found.tolist() == [True, False, fits]


def test_what_exploration_did_not_place_is_no_evidence() -> None:
    log = _log()
    for placements in (None, Placements.of(np.ones(13)), Placements.unknown(13)):
        assert ExploredCells.of_log(replace(log, placements=placements)) is None
