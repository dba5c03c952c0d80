from __future__ import annotations

import numpy as np
import pytest

from ultr.errors import DataError, OptionError
from ultr.simulation import shown_lists

SCORES = np.array([0.2, 0.9, 0.5, 3.0, 1.0, 2.0, 4.0])
OFFSETS = np.array([0, 3, 7])


def test_without_noise_a_list_is_the_sorted_order() -> None:
    generator = np.random.default_rng(0)
    lengths = generator.integers(0, 30, size=50)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    scores = generator.normal(size=offsets[-1])
    shown = shown_lists(scores, offsets, positions=10)
    assert shown.queries.tolist() == np.flatnonzero(lengths).tolist()
    for number, query in enumerate(shown.queries):
        rows = range(offsets[query], offsets[query + 1])
        expected = sorted(rows, key=lambda row: -scores[row])[:10]
        assert shown.documents[shown.offsets[number] : shown.offsets[number + 1]].tolist() == expected


def test_positions_count_from_one_in_each_list() -> None:
    assert shown_lists(SCORES, OFFSETS, positions=3).positions.tolist() == [1, 2, 3, 1, 2, 3]


def test_equal_scores_keep_the_order_of_the_rows() -> None:
    assert shown_lists(np.zeros(7), OFFSETS).documents.tolist() == list(range(7))


def test_rankings_without_noise_are_copies() -> None:
    shown = shown_lists(SCORES, OFFSETS, rankings=3)
    assert shown.queries.tolist() == [0, 1] * 3
    assert shown.documents.tolist() == [1, 2, 0, 6, 3, 5, 4] * 3


def test_each_noisy_ranking_shows_every_document_once() -> None:
    shown = shown_lists(SCORES, OFFSETS, rankings=20, noise=1.0)
    for number, query in enumerate(shown.queries):
        rows = shown.documents[shown.offsets[number] : shown.offsets[number + 1]]
        assert sorted(rows) == list(range(OFFSETS[query], OFFSETS[query + 1]))
    assert len({shown.documents[i : i + 7].tobytes() for i in range(0, 140, 7)}) > 5


def test_the_first_of_a_noisy_ranking_is_drawn_by_the_softmax_of_standardised_scores() -> None:
    rankings, noise = 20_000, 0.7
    shown = shown_lists(SCORES, OFFSETS, rankings=rankings, noise=noise, positions=1)
    for start, end in [(0, 3), (3, 7)]:
        scores = SCORES[start:end]
        weights = np.exp((scores - scores.mean()) / scores.std() / noise)
        chances = weights / weights.sum()
        first = np.bincount(shown.documents, minlength=7)[start:end]
        z = (first - rankings * chances) / np.sqrt(rankings * chances * (1 - chances))
        assert np.abs(z).max() < 5


def test_more_rankings_keep_the_ones_before_and_the_seed_changes_them() -> None:
    few, many = (shown_lists(SCORES, OFFSETS, noise=1.0, rankings=count) for count in (2, 5))
    assert many.documents[:14].tolist() == few.documents.tolist()
    other = shown_lists(SCORES, OFFSETS, noise=1.0, rankings=5, seed=1)
    assert many.documents.tolist() != other.documents.tolist()


def test_noise_does_not_depend_on_the_scale_of_the_scores() -> None:
    small, large = (shown_lists(SCORES * k + k, OFFSETS, noise=1.0, rankings=5) for k in (1, 1000))
    assert small.documents.tolist() == large.documents.tolist()


def test_noise_shuffles_a_query_with_equal_scores() -> None:
    shown = shown_lists(np.zeros(50), np.array([0, 50]), noise=0.1, positions=50)
    assert shown.documents.tolist() != list(range(50))


@pytest.mark.parametrize("option", [{"positions": 0}, {"rankings": 0}, {"noise": -1.0}, {"noise": np.nan}])
def test_options_out_of_range_are_refused(option: dict[str, float]) -> None:
    with pytest.raises(OptionError, match=next(iter(option))):
        shown_lists(SCORES, OFFSETS, **option)  # type: ignore[arg-type]


def test_scores_that_are_not_finite_are_refused() -> None:
    with pytest.raises(DataError, match="finite"):
        shown_lists(np.array([1.0, np.nan]), np.array([0, 2]))


def test_scores_and_offsets_must_fit() -> None:
    with pytest.raises(DataError, match="end with 7"):
        shown_lists(SCORES, np.array([0, 3]))
