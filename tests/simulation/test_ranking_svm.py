from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.simulation.toy import separable

from ultr.arrays import Doubles
from ultr.data.judged import JudgedLists
from ultr.errors import DataError, MissingExtraError, OptionError
from ultr.simulation import RankingSVM


def misplaced(judged: JudgedLists, scores: Doubles) -> int:
    """How many pairs of differing grade the scores have the wrong way round."""
    wrong = 0
    for start, end in zip(judged.offsets[:-1], judged.offsets[1:], strict=True):
        labels, values = judged.labels[start:end], scores[start:end]
        wrong += int(((labels[:, None] > labels) & (values[:, None] <= values)).sum())
    return wrong


def test_separable_grades_are_ordered_without_a_mistake() -> None:
    judged = separable(60)
    svm = RankingSVM.fit(judged, share=1.0)
    assert misplaced(judged, svm.score(judged.features)) == 0


def test_missing_features_count_as_the_median() -> None:
    judged = separable(60)
    gaps = np.random.default_rng(0).random(judged.features.shape) < 0.1
    missing = np.where(gaps, np.float32("nan"), judged.features)
    filled = np.where(gaps, np.nanmedian(missing, axis=0), judged.features).astype(np.float32)
    found, expected = (RankingSVM.fit(replace(judged, features=each), share=1.0) for each in (missing, filled))
    np.testing.assert_array_equal(found.score(missing), expected.score(filled))


def test_a_small_share_still_generalises() -> None:
    judged = separable(200)
    svm = RankingSVM.fit(judged, share=0.05)
    scores = svm.score(judged.features)
    assert misplaced(judged, scores) < 0.05 * misplaced(judged, -scores)


def test_it_minimises_the_regularised_squared_hinge_loss() -> None:
    """At the minimum of 1/2 |w|^2 + sum max(0, 1 - w.d)^2 the gradient is zero."""
    judged = JudgedLists.of(features=[[-1, 0.5], [1, -1], [0, 1], [0.2, 0.1]], labels=[0, 2, 1, 0], offsets=[0, 2, 4])
    svm = RankingSVM.fit(judged, share=1.0)
    scaled = svm.scaling.apply(judged.features).astype(float)
    differences = np.array([scaled[1] - scaled[0], scaled[2] - scaled[3]])
    slack = np.maximum(0, 1 - differences @ svm.weights)
    np.testing.assert_allclose(svm.weights - 2 * slack @ differences, 0, atol=1e-3)


def test_one_query_with_one_pair_is_enough() -> None:
    judged = JudgedLists.of(features=[[0.0], [1.0], [5.0]], labels=[0, 1, 1], offsets=[0, 2, 3])
    scores = RankingSVM.fit(judged).score(judged.features)
    assert scores[1] > scores[0]


def test_the_seed_decides_the_queries_and_nothing_else_is_random() -> None:
    judged = separable(100)
    weights = [RankingSVM.fit(judged, share=0.05, seed=seed).weights for seed in (1, 1, 2)]
    np.testing.assert_array_equal(weights[0], weights[1])
    assert (weights[0] != weights[2]).any()


def test_a_cap_on_pairs_changes_the_fit_but_not_its_sense() -> None:
    judged = separable(60)
    whole, capped = (RankingSVM.fit(judged, share=1.0, pairs_per_query=most) for most in (1000, 3))
    assert (whole.weights != capped.weights).any()
    assert np.corrcoef(whole.score(judged.features), capped.score(judged.features))[0, 1] > 0.95


def test_a_query_of_thousands_of_documents_is_no_problem() -> None:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(3000, 5))
    judged = JudgedLists.of(features=features, labels=features[:, 0] > 1, offsets=[0, 3000])
    scores = RankingSVM.fit(judged).score(judged.features)
    assert scores[judged.labels == 1].mean() > scores[judged.labels == 0].mean() + 1


def test_constant_features_have_no_say() -> None:
    judged = separable(20)
    constant = np.hstack([judged.features, np.full((judged.documents, 1), 7, dtype=np.float32)])
    judged = JudgedLists.of(features=constant, labels=judged.labels, offsets=judged.offsets)
    assert RankingSVM.fit(judged, share=1.0).weights[-1] == 0


def test_scores_do_not_depend_on_how_documents_are_grouped() -> None:
    judged = separable(20)
    svm = RankingSVM.fit(judged, share=1.0)
    parts = [svm.score(judged.features[:50]), svm.score(judged.features[50:])]
    np.testing.assert_allclose(np.concatenate(parts), svm.score(judged.features), rtol=1e-12)


def test_lists_without_two_grades_cannot_be_learned_from() -> None:
    judged = JudgedLists.of(features=np.eye(4), labels=[1, 1, 0, 0], offsets=[0, 2, 4])
    with pytest.raises(DataError, match="no query has documents of two different grades"):
        RankingSVM.fit(judged)


def test_other_features_are_refused() -> None:
    svm = RankingSVM.fit(separable(20))
    with pytest.raises(DataError, match="knows 4 features"):
        svm.score(np.zeros((2, 3), dtype=np.float32))


@pytest.mark.parametrize("share", [0, 1.5, "all"])
def test_the_share_must_be_a_share(share: object) -> None:
    with pytest.raises(OptionError, match="share must be a share"):
        RankingSVM.fit(separable(20), share=share)  # type: ignore[arg-type]


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[train\]'"):
        RankingSVM.fit(separable(20))
