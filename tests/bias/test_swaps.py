from __future__ import annotations

from collections import defaultdict
from itertools import permutations

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.bias import SWAP_ESTIMATORS, SwapTable, adjacent_chain, all_pairs, pivot
from ultr.clicks.model import EXAMINATION
from ultr.clicks.registry import click_model
from ultr.data.cells import Cells
from ultr.datasets.letor_like import letor_like
from ultr.errors import DataError
from ultr.simulation.log import simulate


def test_the_table_is_what_a_loop_over_documents_and_positions_counts() -> None:
    random = np.random.default_rng(0)
    documents, positions = random.integers(8, size=60), random.integers(1, 6, size=60)
    impressions = np.where(documents < 4, 1, random.integers(1, 50, size=60))
    clicks = random.binomial(impressions, 0.3)
    table = SwapTable.of(Cells.of(documents, positions - 1, impressions, clicks, count=5))
    shown: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for document, position, count, clicked in zip(documents, positions, impressions, clicks, strict=True):
        shown[document, position][0] += count
        shown[document, position][1] += clicked
    weights, weighted = np.zeros((5, 5)), np.zeros((5, 5))
    for document in range(8):
        places = [position for position in range(1, 6) if (document, position) in shown]
        for j, k in permutations(places, 2):
            (n_j, c_j), (n_k, _) = shown[document, j], shown[document, k]
            weight = n_j * n_k / (n_j + n_k)
            weights[j - 1, k - 1] += weight
            weighted[j - 1, k - 1] += weight * c_j / n_j
    np.testing.assert_allclose(table.weights, weights)
    np.testing.assert_allclose(table.clicks, weighted)


def _expected_table(theta: Doubles, links: list[tuple[int, int]]) -> SwapTable:
    """What the position-based model expects where each pair of positions has documents of its own relevance."""
    random = np.random.default_rng(1)
    weights, clicks = np.zeros((len(theta), len(theta))), np.zeros((len(theta), len(theta)))
    for j, k in links:
        weight, relevance = random.uniform(1, 100), random.uniform(0.05, 0.9)
        weights[j, k] = weights[k, j] = weight
        clicks[j, k], clicks[k, j] = weight * theta[j] * relevance, weight * theta[k] * relevance
    return SwapTable(weights, clicks)


def test_exact_expectations_give_the_propensities_exactly() -> None:
    theta = np.array([1.0, 0.7, 0.45, 0.3, 0.26, 0.1])
    table = _expected_table(theta, [(j, k) for j in range(6) for k in range(j + 1, 6)])
    for estimate in SWAP_ESTIMATORS.values():
        np.testing.assert_allclose(estimate(table), theta, rtol=1e-6)


def test_all_pairs_needs_only_a_connected_graph_of_positions() -> None:
    theta = np.array([1.0, 0.7, 0.45, 0.3])
    table = _expected_table(theta, [(0, 3), (3, 1), (1, 2)])
    np.testing.assert_allclose(all_pairs(table), theta, rtol=1e-5)
    with pytest.raises(DataError, match="shown at both position 1 and position 2"):
        pivot(table)
    with pytest.raises(DataError, match="shown at both position 1 and position 2"):
        adjacent_chain(table)


def test_positions_that_nothing_links_are_named() -> None:
    table = _expected_table(np.array([1.0, 0.7, 0.45, 0.3]), [(0, 1), (2, 3)])
    with pytest.raises(DataError, match="links position 1 with 3, 4"):
        all_pairs(table)


def test_swaps_in_a_simulated_log_give_the_examination_curve() -> None:
    train = letor_like(train_queries=300, validation_queries=1, test_queries=1).train
    model = click_model("position-based")
    log = simulate(train, model, impressions=10**9, svm_share=0.1, rankings=10, noise=0.5)
    true = np.array(EXAMINATION) / EXAMINATION[0]
    for estimate in SWAP_ESTIMATORS.values():
        np.testing.assert_allclose(estimate(SwapTable.of_log(log)), true, atol=0.003)
