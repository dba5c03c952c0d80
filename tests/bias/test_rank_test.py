from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.bias.result_pages import grade_table, rows

from ultr.arrays import Doubles, Integers
from ultr.bias import RankTest, click_groups, document_dispersion, group_dispersion, group_table, rank_test
from ultr.bias.grouped_documents import GroupedDocuments
from ultr.bias.rank_test import document_rank_test
from ultr.clicks.independent import IndependentClicks
from ultr.clicks.registry import click_model
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.errors import DataError, OptionError
from ultr.simulation.log import simulate


def _drawn(name: str, impressions: int, *, seed: int = 0) -> tuple[Integers, Integers]:
    shown = np.full((5, 10), impressions)
    model = click_model(name)
    assert isinstance(model, IndependentClicks)
    return np.random.default_rng(seed).binomial(shown, model.rates(4)), shown


def test_what_the_right_rank_leaves_is_noise() -> None:
    # Chi-squared with (5 - rank)(10 - rank) degrees of freedom: the mean of eight lies within four deviations.
    ones = [rank_test(*_drawn("position-based", 5_000, seed=seed), samples=19, largest=2) for seed in range(8)]
    assert abs(np.mean([test.deviances[0] for test in ones]) - 36) < 4 * (2 * 36 / 8) ** 0.5
    # Four or more of eight would have a chance of 0.04 %.
    assert sum(not test.scalar for test in ones) < 4
    twos = [rank_test(*_drawn("trust", 5_000, seed=seed), samples=19, largest=3) for seed in range(8)]
    assert all(test.p_values[0] == 0.05 for test in twos)
    assert abs(np.mean([test.deviances[1] for test in twos]) - 24) < 4 * (2 * 24 / 8) ** 0.5
    assert sum(test.dimension > 2 for test in twos) < 4


def test_the_real_matrix_has_the_singular_values_of_the_paper_and_full_rank() -> None:
    test = rank_test(*_drawn("real", 1_000_000), samples=19)
    assert test.dimension == 5
    assert test.p_values == (0.05,) * 4
    assert test.deviances[-1] == 0
    assert rank_test(*_drawn("real", 1_000_000), samples=19, largest=2).p_values == test.p_values[:1]
    np.testing.assert_allclose(test.singular_values, [1.40, 0.15, 0.07, 0.06, 0.03], atol=0.006)


def test_noise_is_not_taken_for_structure() -> None:
    random = np.random.default_rng(0)
    shown = np.array([[400, 300, 200, 100], [50, 80, 90, 300], [20, 0, 60, 40]])
    rates = np.outer([0.9, 0.5, 0.2], [0.8, 0.5, 0.3, 0.1])
    found = [
        rank_test(random.binomial(shown, rates), shown, samples=19, largest=2, seed=seed).p_values[0] <= 0.05
        for seed in range(60)
    ]
    # Ten or more of sixty would have a chance of 0.1 %.
    assert sum(found) < 10


def test_groups_and_positions_in_another_order_give_the_same_fit() -> None:
    clicks, shown = _drawn("trust", 200)
    plain = rank_test(clicks, shown, samples=19, largest=2)
    turned = rank_test(clicks[::-1, ::-1].T, shown[::-1, ::-1].T, samples=19, largest=2)
    np.testing.assert_allclose(plain.deviances[0], turned.deviances[0], atol=1e-3)
    np.testing.assert_allclose(plain.singular_values, turned.singular_values)


def test_what_was_never_shown_is_left_out_or_filled_by_the_fit() -> None:
    rates = np.outer([0.2, 0.4, 0.8], [1.0, 0.5, 0.25])
    shown = np.full((4, 4), 1_000)
    shown[3], shown[:, 3], shown[0, 0] = 0, 0, 0
    clicks = np.zeros((4, 4))
    clicks[:3, :3] = rates * shown[:3, :3]
    test = rank_test(clicks, shown, samples=19)
    assert test.dimension == 1
    np.testing.assert_allclose(test.rates, rates, rtol=1e-3)


def test_a_table_that_any_product_fits_shows_nothing() -> None:
    # Three cells, and three free numbers in a product of two by two.
    test = rank_test(np.array([[5, 3], [7, 0]]), np.array([[10, 10], [10, 0]]), samples=19)
    assert test.p_values == (1.0,)


def test_bad_tables_are_refused() -> None:
    shown = np.full((2, 2), 10)
    with pytest.raises(DataError, match="fewer than no clicks or more clicks than impressions"):
        rank_test(shown + 1, shown)
    with pytest.raises(DataError, match=r"\[groups, positions\]"):
        rank_test(shown[0], shown[0])
    with pytest.raises(DataError, match="shown at two positions or more, and there is 1 group at 2 positions"):
        rank_test(shown[:1], shown[:1])
    with pytest.raises(DataError, match="needs clicks"):
        rank_test(np.zeros((2, 2)), shown)
    for options in ({"samples": 0}, {"level": 0.0}, {"largest": 1}):
        with pytest.raises(OptionError):
            rank_test(shown, shown, **options)


@cache
def _log(name: str, impressions: int) -> tuple[ClickLog, Integers]:
    judged = letor_like(train_queries=60, validation_queries=1, test_queries=1).train
    log = simulate(judged, click_model(name), impressions=impressions, svm_share=0.2, rankings=10, noise=0.5)
    return log, judged.labels[log.documents]


def _of_documents(log: ClickLog, labels: Integers) -> Integers:
    """The label of each document of the log's cells, from that of each shown document."""
    return labels[np.unique(log.documents, return_index=True)[1]]


def _test(
    cells: Cells, groups: Integers, *, dispersion: Doubles | float = 1.0, most_cells: int = 50_000, **asked: Any
) -> RankTest:
    counted = GroupedDocuments.of(cells, groups, dispersion=dispersion, most_cells=most_cells)
    return document_rank_test(counted, **asked)


def test_documents_that_stand_higher_for_being_better_are_no_structure() -> None:
    log, labels = _log("position-based", 300_000)
    cells = log.cells()
    groups, half = click_groups(cells)
    asked: dict[str, Any] = {"samples": 39, "largest": 2}
    assert _test(half, groups, **asked).scalar
    assert _test(cells, _of_documents(log, labels), **asked).scalar
    # Groups by clicks still mix documents, and the better ones of a group stand higher: a plain table is not rank 1.
    clicks, shown = np.zeros((5, 10)), np.zeros((5, 10))
    kept = groups[half.documents] >= 0
    cell = groups[half.documents][kept], half.positions[kept]
    np.add.at(clicks, cell, half.clicks[kept])
    np.add.at(shown, cell, half.impressions[kept])
    assert not rank_test(clicks, shown, **asked).scalar


def test_trust_bias_is_found_from_documents_alone() -> None:
    log, labels = _log("trust", 100_000)
    cells = log.cells()
    groups, half = click_groups(cells)
    for test in (
        _test(half, groups, samples=19, largest=2),
        _test(cells, _of_documents(log, labels), samples=19, largest=2),
        _test(cells, _of_documents(log, labels), samples=19, largest=2, most_cells=1_000),
        rank_test(*group_table(log, labels), samples=19, largest=2),
    ):
        assert test.p_values == (0.05,)
        assert test.dimension == 2


def _dispersed(impressions: int, correlation: float, *, seed: int) -> tuple[ClickLog, Integers]:
    """A position-based log in which the rate of a document differs from list to list."""
    log, labels = _log("position-based", impressions)
    model = click_model("position-based")
    assert isinstance(model, IndependentClicks)
    rates = model.rates(4)[labels, log.positions - 1]
    random = np.random.default_rng(seed)
    rates = random.beta(rates * (1 / correlation - 1), (1 - rates) * (1 / correlation - 1))
    return replace(log, clicks=random.binomial(np.repeat(log.impressions, log.lengths), rates)), labels


def test_lists_that_differ_are_no_structure() -> None:
    found: dict[str, list[bool]] = defaultdict(list)
    for seed in range(12):
        log, labels = _dispersed(100_000, 0.02, seed=seed)
        cells = log.cells()
        asked: dict[str, Any] = {"samples": 19, "largest": 2, "seed": seed}
        by_label = _of_documents(log, labels)
        factors = document_dispersion(log).factors(cells.together)
        _, of_table = group_dispersion(log, labels)
        found["documents"].append(_test(cells, by_label, dispersion=factors, **asked).scalar)
        found["labels"].append(rank_test(*group_table(log, labels), dispersion=of_table, **asked).scalar)
        found["documents, as if independent"].append(_test(cells, by_label, **asked).scalar)
        found["labels, as if independent"].append(rank_test(*group_table(log, labels), **asked).scalar)
    # At level 0.05, four or more false alarms of twelve would have a chance of 0.2 %.
    assert min(sum(found["documents"]), sum(found["labels"])) > 8
    assert max(sum(found[f"{name}, as if independent"]) for name in ("documents", "labels")) < 6


def test_the_power_is_the_share_of_trusting_users_that_would_be_found() -> None:
    # Counts of users with trust bias, so many or so few that it is found always, or hardly ever.
    clicks, shown = _drawn("trust", 3_000)
    large, small = rank_test(clicks, shown, samples=39, power=True), rank_test(clicks // 500, shown // 500, power=True)
    assert large.power == 1
    assert small.power is not None
    assert small.power < 0.3
    # Over-dispersion costs power, and without structure in the alternative only false alarms are left.
    middle = [rank_test(clicks // 20, shown // 20, samples=99, dispersion=d, power=True).power for d in (1.0, 20.0)]
    assert middle[0] is not None
    assert middle[1] is not None
    assert middle[1] < middle[0]
    assert rank_test(clicks, shown, samples=19).power is None


def test_the_power_is_right_where_the_alternative_is_known() -> None:
    # Two grades, irrelevant and relevant, under trust bias: about what the alternative makes of their margins.
    model = click_model("trust")
    assert isinstance(model, IndependentClicks)
    shown, rates = np.full((2, 10), 60), model.rates(1)
    random = np.random.default_rng(0)
    found = [rank_test(random.binomial(shown, rates), shown, samples=39, seed=seed).scalar for seed in range(40)]
    claimed = [rank_test(shown * rates, shown, samples=199, seed=seed, power=True).power or 0.0 for seed in range(3)]
    # Four deviations of a share of forty are 0.32 at most.
    assert abs((1 - np.mean(found)) - np.mean(claimed)) < 0.32
    assert 0.1 < np.mean(claimed) < 0.95


def test_documents_at_one_position_cannot_be_tested() -> None:
    cells = Cells.of(np.arange(4), np.array([0, 1, 0, 1]), np.full(4, 9), np.full(4, 3), count=2)
    with pytest.raises(DataError, match="shown at two positions; log some swaps"):
        _test(cells, np.arange(4) % 2)


def test_the_trec_pages_give_a_second_click_matrix(shared_data: Path) -> None:
    path = shared_data / "trec2014" / "serps.tsv.gz"
    clicks, impressions = grade_table(path, split="labelled", grades=3)
    assert impressions.sum() == 8_560
    assert clicks.sum() == sum(row["clicks"].count("1") for row in rows(path, split="labelled"))
    test = rank_test(clicks, impressions, samples=199)
    np.testing.assert_allclose(test.singular_values, np.linalg.svd(clicks / impressions, compute_uv=False))
    assert test.dimension == 2
    assert test.p_values[0] < 0.05
