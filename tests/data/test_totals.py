from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from tests.data.test_click_log import random_log

from ultr.data import gathering, ragged, row_blocks
from ultr.data.click_log import ClickLog
from ultr.errors import DataError


@pytest.fixture(autouse=True, params=["at once", "in pieces"])
def _pieces(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if request.param == "in pieces":
        monkeypatch.setattr(ragged, "SPAN", 5)
        monkeypatch.setattr(row_blocks, "BLOCK", 9)
        monkeypatch.setattr(gathering, "LARGE", 1)


def _rows(log: ClickLog) -> list[tuple[int, int, int, int, int]]:
    """List, document, position from 0, impressions and clicks of every shown document."""
    return [
        (
            number,
            int(log.documents[row]),
            int(log.position.values[row]),
            int(log.impressions[number]),
            int(log.clicks[row]),
        )
        for number in range(log.lists)
        for row in range(log.offsets[number], log.offsets[number + 1])
    ]


def test_totals_are_what_a_loop_over_all_rows_counts() -> None:
    log = random_log()
    random = np.random.default_rng(0)
    cells, groups = random.integers(-1, 4, size=len(log.documents)), random.integers(-1, 3, size=log.lists)
    weights = random.integers(4, size=log.lists)
    expected = np.zeros((2, 3, 5))
    for (number, *_, shown, clicks), cell in zip(_rows(log), cells, strict=True):
        if cell >= 0 and groups[number] >= 0:
            expected[:, groups[number], cell] += weights[number] * np.array([shown, clicks])
    found = log.totals(cells, count=5, groups=groups, group_count=3, weights=weights)
    np.testing.assert_array_equal(found, expected)
    rates = np.divide(expected[1], expected[0], out=np.full((3, 5), np.nan), where=expected[0] > 0)
    np.testing.assert_array_equal(found.rates, rates)


def test_totals_are_as_long_as_the_levels_of_a_factor_or_as_the_numbers_that_occur() -> None:
    log = random_log()
    assert log.totals(log.position).clicks.shape == (len(log.position.levels),)
    assert log.totals(log.position, groups=log.queries).impressions.shape == (6, len(log.position.levels))
    assert log.totals(groups=log.queries).clicks.sum() == log.totals().clicks == log.clicks.sum()
    assert log.totals().impressions == (log.impressions * log.lengths).sum()
    with pytest.raises(DataError, match=r"shown documents, but 3 cells"):
        log.totals(np.arange(3))


@pytest.mark.parametrize("asked", [{}, {"fewest_positions": 2}, {"fewest_positions": 2, "fewest_clicks": 5}])
def test_cells_are_what_a_dictionary_by_document_and_position_counts(asked: dict[str, Any]) -> None:
    log = random_log()
    counts: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for _, document, place, shown, clicks in _rows(log):
        counts[document, place] = [
            total + more
            for total, more in zip(counts[document, place], (shown, clicks, shown * (shown - 1)), strict=True)
        ]
    kept = {
        document
        for document in {document for document, _ in counts}
        if sum(key[0] == document for key in counts) >= asked.get("fewest_positions", 1)
        and sum(counts[key][1] for key in counts if key[0] == document) >= asked.get("fewest_clicks", 0)
    }
    wanted = sorted(key for key in counts if key[0] in kept)
    cells = log.cells(**asked)
    assert cells.ids.tolist() == sorted(kept)
    assert list(zip(cells.ids[cells.documents].tolist(), cells.positions.tolist(), strict=True)) == wanted
    assert cells.impressions.tolist() == [counts[key][0] for key in wanted]
    assert cells.clicks.tolist() == [counts[key][1] for key in wanted]
    np.testing.assert_allclose(cells.together, [counts[key][2] / counts[key][0] for key in wanted])
    chosen = cells.choose(cells.moved())
    assert chosen.ids[chosen.documents].tolist() == cells.ids[cells.documents[cells.moved()]].tolist()


def test_parts_have_every_cell_once_and_whole_documents() -> None:
    cells = random_log().cells()
    parts = [cells.part(part) for part in cells.parts(most=7)]
    assert np.concatenate([part.ids[part.documents] for part in parts]).tolist() == cells.ids[cells.documents].tolist()
    assert np.concatenate([part.ids for part in parts]).tolist() == cells.ids.tolist()
    assert all(part.documents[0] == 0 for part in parts)


def test_documents_of_two_groups_are_two() -> None:
    log = random_log()
    numbers = log.documents_within(log.queries)
    queries, documents = np.divmod(numbers, len(log.features))
    assert documents.tolist() == log.documents.tolist()
    assert queries.tolist() == log.queries[ragged.list_numbers(log.offsets)].tolist()
