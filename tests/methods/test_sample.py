from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.methods import sample
from ultr.methods.sample import load_sample, sample_of, save_sample


def _lists(lengths: list[int]) -> JudgedLists:
    total = sum(lengths)
    numbers = np.arange(total)
    return JudgedLists.of(features=numbers[:, None], labels=numbers % 2, offsets=np.cumsum([0, *lengths]))


def test_small_data_are_kept_whole() -> None:
    lists = _lists([3, 2, 4])
    kept = sample_of(lists)
    assert np.array_equal(kept.features, lists.features)
    assert np.array_equal(kept.labels, lists.labels)
    assert np.array_equal(kept.offsets, lists.offsets)


@pytest.mark.parametrize("lengths", [[10] * 3_000, [1] * 5_000 + [900] * 200, [20_000, 5]])
def test_large_data_leave_whole_lists_from_end_to_end(lengths: list[int]) -> None:
    kept = sample_of(_lists(lengths))
    assert kept.documents <= max(sample.DOCUMENTS, lengths[0])
    starts = kept.features[kept.offsets[:-1], 0].astype(int)
    known = np.cumsum([0, *lengths])
    places = np.searchsorted(known, starts)
    assert (known[places] == starts).all()
    assert (np.diff(kept.offsets) == np.array(lengths)[places]).all()


def test_lists_without_documents_are_left_out() -> None:
    assert np.diff(sample_of(_lists([0, 2, 0, 1])).offsets).tolist() == [2, 1]


def test_wide_features_leave_fewer_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "BYTES", 4 * 50)
    assert sample_of(_lists([10] * 100)).documents == 50


def test_clicks_are_grades_within_their_list() -> None:
    log = ClickLog.of(
        features=np.arange(5)[:, None],
        documents=[0, 1, 2, 3, 4],
        offsets=[0, 3, 5],
        impressions=[100, 1],
        clicks=[80, 41, 1, 0, 1],
        queries=[1, 1],
    )
    kept = sample_of(log)
    assert kept.labels.tolist() == [4, 3, 1, 0, 4]
    assert len(set(kept.query_ids)) == 1


def test_a_saved_sample_knows_which_lists_are_of_one_query(tmp_path: Path) -> None:
    kept = sample_of(_lists([2, 3, 1])).select(np.array([0, 1, 0, 2]))
    save_sample(tmp_path, kept)
    loaded = load_sample(tmp_path, kept.feature_names)
    assert loaded is not None
    first, second, third, fourth = loaded.query_ids
    assert first == third
    assert len({first, second, fourth}) == 3
