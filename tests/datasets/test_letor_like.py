from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from ultr.arrays import Doubles, Integers
from ultr.data import ragged
from ultr.data.judged import JudgedLists
from ultr.datasets.letor_like import (
    FEWEST_FEATURES,
    GRADE_SHARES,
    KIND_SHARES,
    LONGEST,
    SHORTEST,
    _HiddenLists,
    _Judge,
    letor_like,
)
from ultr.datasets.splits import Splits
from ultr.errors import OptionError


def small(*, train: int = 300, features: int = 64, seed: int = 0) -> Splits:
    return letor_like(train_queries=train, validation_queries=40, test_queries=150, features=features, seed=seed)


@pytest.fixture(scope="module")
def data() -> Splits:
    return letor_like(train_queries=2_000, validation_queries=200, test_queries=500)


def parts_of(data: Splits) -> tuple[JudgedLists, JudgedLists, JudgedLists]:
    return data.train, data.validation, data.test


def rows_of(lists: JudgedLists) -> set[bytes]:
    return {row.tobytes() for row in lists.features}


def mean_ndcg(scores: Doubles, lists: JudgedLists) -> float:
    """nDCG@10 from its definition, over the queries that have a relevant document."""
    discounts = 1 / np.log2(np.arange(10) + 2)
    values = []
    for start, stop in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
        gains = 2.0 ** lists.labels[start:stop] - 1
        if gains.any():
            order = np.argsort(-scores[start:stop], kind="stable")
            values.append((gains[order][:10] @ discounts) / (np.sort(gains)[::-1][:10] @ discounts))
    return float(np.mean(values))


def within_lists(values: Doubles, offsets: Integers) -> Doubles:
    """Values less the mean of their list."""
    means = np.add.reduceat(values, offsets[:-1]) / np.diff(offsets)[:, None]
    centred: Doubles = values - means[ragged.list_numbers(offsets)]
    return centred


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_grades_are_shared_out_as_in_yahoo(seed: int) -> None:
    labels = small(train=2_000, seed=seed).train.labels
    shares = np.bincount(labels, minlength=5) / len(labels)
    np.testing.assert_allclose(shares, GRADE_SHARES, atol=0.02)


def test_lists_have_every_length_from_the_shortest_to_the_longest(data: Splits) -> None:
    assert set(data.train.lengths.tolist()) == set(range(SHORTEST, LONGEST + 1))


def test_thresholds_are_global_so_some_queries_have_no_high_grade(data: Splits) -> None:
    best = np.maximum.reduceat(data.train.labels, data.train.offsets[:-1])
    assert 0.1 < (best <= 2).mean() < 0.6
    assert (best == 4).any()


def test_the_same_seed_gives_the_same_data() -> None:
    for first, second in zip(parts_of(small()), parts_of(small()), strict=True):
        assert first.fingerprint() == second.fingerprint()


def test_another_seed_gives_another_world() -> None:
    first, second = small(seed=0).train, small(seed=1).train
    assert not np.array_equal(first.lengths, second.lengths)
    assert not rows_of(first) & rows_of(second)


def test_fewer_training_queries_are_the_first_ones_and_leave_the_other_splits_alone() -> None:
    many, few = small(train=300), small(train=50)
    assert few.validation.fingerprint() == many.validation.fingerprint()
    assert few.test.fingerprint() == many.test.fingerprint()
    first = many.train.select(np.arange(50))
    np.testing.assert_array_equal(few.train.labels, first.labels)
    np.testing.assert_array_equal(few.train.query_ids, first.query_ids)
    np.testing.assert_allclose(few.train.features, first.features, rtol=1e-4, atol=1e-4)


def test_the_number_of_features_does_not_change_the_labels() -> None:
    np.testing.assert_array_equal(small(features=16).test.labels, small(features=64).test.labels)


def test_splits_share_no_document_and_no_query(data: Splits) -> None:
    for one, other in combinations(parts_of(data), 2):
        assert not rows_of(one) & rows_of(other)
        assert not set(one.query_ids) & set(other.query_ids)


@pytest.mark.parametrize("features", [FEWEST_FEATURES, 21, 64, 136])
def test_features_are_finite_float32_and_of_every_kind(features: int) -> None:
    for part in parts_of(small(features=features)):
        assert part.features.shape == (part.documents, features)
        assert part.features.dtype == np.float32
        assert np.isfinite(part.features).all()
        kinds = {name.rpartition("_")[0] for name in part.feature_names}
        assert kinds == {"linear", *KIND_SHARES}


def test_only_query_features_are_constant_within_a_query(data: Splits) -> None:
    lists = data.train
    spread = np.abs(within_lists(lists.features.astype(np.float64), lists.offsets)).max(axis=0)
    constant = [name for name, most in zip(lists.feature_names, spread, strict=True) if most < 1e-5]
    assert constant == [name for name in lists.feature_names if name.startswith("query_")]


def test_sparse_features_are_mostly_zero_and_heavy_ones_have_long_tails(data: Splits) -> None:
    for name, column in zip(data.train.feature_names, data.train.features.T, strict=True):
        if name.startswith("sparse_"):
            assert (column == 0).mean() > 0.5
        if name.startswith("heavy_"):
            assert column.mean() > 1.2 * np.median(column)


def test_a_linear_ranker_lands_well_between_random_order_and_the_true_relevance(data: Splits) -> None:
    train, test = data.train, data.test
    inputs = within_lists(train.features.astype(np.float64), train.offsets)
    targets = within_lists(train.labels[:, None].astype(np.float64), train.offsets)[:, 0]
    weights = np.linalg.lstsq(inputs, targets, rcond=None)[0]
    linear = mean_ndcg(test.features @ weights, test)
    chance = mean_ndcg(np.random.default_rng(0).random(test.documents), test)
    hidden = _HiddenLists.draw(0, "test", queries=test.queries)
    best = mean_ndcg(_Judge.of(0).relevance(hidden), test)
    assert chance == pytest.approx(0.45, abs=0.03)
    assert chance + 0.2 < linear < best - 0.05


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("train_queries", 0, "train_queries must be an integer of at least 1, got 0"),
        ("validation_queries", -3, "validation_queries must be an integer of at least 1, got -3"),
        ("test_queries", 2.5, "test_queries must be an integer of at least 1, got 2.5"),
        ("features", 15, "features must be an integer of at least 16, got 15"),
        ("seed", -1, "seed must be an integer of at least 0, got -1"),
    ],
)
def test_a_bad_argument_gives_one_sentence(option: str, value: int, message: str) -> None:
    with pytest.raises(OptionError) as error:
        letor_like(**{option: value})
    assert str(error.value) == message
