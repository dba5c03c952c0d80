from __future__ import annotations

import numpy as np
import pytest

from ultr.bias.grouped_documents import GroupedDocuments
from ultr.data.cells import Cells

EXAMINATION = np.array([1.0, 0.5])
EACH = 8


def _documents(count: int) -> GroupedDocuments:
    """Documents with a relevance of 0.4, shown a few times at each of two positions; half of them in each group."""
    rates = np.tile(0.4 * EXAMINATION, count)
    clicks = np.random.default_rng(0).binomial(EACH, rates)
    documents, positions = np.repeat(np.arange(count), 2), np.tile([0, 1], count)
    cells = Cells.of(documents, positions, np.full(2 * count, EACH), clicks, count=2)
    return GroupedDocuments.of(cells, np.arange(count) % 2, most_cells=10**6)


@pytest.mark.parametrize("position", [0, 1])
def test_drawn_clicks_vary_as_the_clicks_of_the_true_rates_would(position: int) -> None:
    counted = _documents(20_000)
    here = counted.cells.positions == position
    estimated = counted.relevance[counted.cells.documents[here]] * counted.examination[position]
    true = 0.4 * EXAMINATION[position]
    plain = (EACH * estimated * (1 - estimated)).mean()
    drawn = (counted.dispersion[here] * EACH * estimated * (1 - estimated)).mean()
    expected = EACH * true * (1 - true)
    assert abs(drawn / expected - 1) < 0.02
    assert plain / expected < 0.975


def test_the_table_weighs_impressions_by_relevance_within_the_group() -> None:
    # Two documents of a group, the first with three times the relevance of the second: mean weights 1.5 and 0.5.
    cells = Cells.of(
        np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.full(4, 100), np.array([60, 30, 20, 10]), count=2
    )
    counted = GroupedDocuments.of(cells, np.array([0, 0]), most_cells=10)
    clicks, shown = counted.table(cells.clicks, counted.relevance)
    np.testing.assert_allclose(clicks, [[80, 40]])
    np.testing.assert_allclose(shown, [[200, 200]])
    assert len(GroupedDocuments.of(cells, np.array([0, -1]), most_cells=10).relevance) == 1
    assert len(GroupedDocuments.of(cells, np.array([0, 0]), most_cells=3).relevance) == 1
