from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ultr.arrays import Integers
from ultr.data import click_log, ragged
from ultr.data.bias_factor import BiasFactor, position_factor
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError
from ultr.files import DIGEST

ARRAYS = ["features", "documents", "offsets", "impressions", "clicks", "queries", "query_ids", "factor-0"]


def merge(logs: Sequence[ClickLog]) -> ClickLog:
    first = logs[0]
    factors = tuple(
        replace(factor, values=np.concatenate([log.factors[number].values for log in logs]))
        for number, factor in enumerate(first.factors)
    )
    return replace(
        first,
        documents=np.concatenate([log.documents for log in logs]),
        offsets=ragged.from_lengths(np.concatenate([log.lengths for log in logs])),
        factors=factors,
        impressions=np.concatenate([log.impressions for log in logs]),
        clicks=np.concatenate([log.clicks for log in logs]),
        queries=np.concatenate([log.queries for log in logs]),
    ).collapse()


def random_log(seed: int = 0, *, lists: int = 60) -> ClickLog:
    """Lists of 1 to 3 out of 5 documents for each of 6 queries, so that many rows are the same list."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 4, size=lists)
    queries = generator.integers(0, 6, size=lists)
    offsets = ragged.from_lengths(lengths)
    documents = np.concatenate(
        [query * 5 + generator.permutation(5)[:n] for query, n in zip(queries, lengths, strict=True)]
    )
    impressions = generator.integers(1, 20, size=lists)
    positions = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths) + 1
    devices = generator.integers(0, 2, size=lists).repeat(lengths).astype(np.int32)
    return ClickLog(
        features=np.arange(60, dtype=np.float32).reshape(30, 2),
        documents=documents,
        offsets=offsets,
        factors=(position_factor(positions, count=4), BiasFactor("device", devices, ("desk", "phone"))),
        impressions=impressions,
        clicks=generator.binomial(impressions.repeat(lengths), 0.3),
        queries=queries,
        query_ids=np.array([f"q{i}" for i in range(6)]),
        feature_names=("a", "b"),
    )


def random_sessions(seed: int = 0, *, sessions: int = 200, **options: object) -> ClickLog:
    """A log of single impressions, two queries with lists of 1 to 4 out of 4 documents, two orders of each."""
    random = np.random.default_rng(seed)
    lengths, queries = random.integers(1, 5, size=sessions), random.integers(2, size=sessions)
    orders = random.integers(2, size=sessions)
    documents = [
        query * 4 + (np.arange(4) if order else np.arange(4)[::-1])[:n]
        for query, order, n in zip(queries, orders, lengths, strict=True)
    ]
    arrays: dict[str, object] = {
        "features": np.arange(8.0)[:, None],
        "documents": np.concatenate(documents),
        "offsets": ragged.from_lengths(lengths),
        "clicks": random.random(lengths.sum()) < 0.4,
        "queries": queries,
    }
    return ClickLog.of(**arrays | options)  # type: ignore[arg-type]


def counted_together(log: ClickLog) -> dict[tuple[int, bytes, int, int], int]:
    """The pair clicks by query, shown list and the two documents."""
    counts: dict[tuple[int, bytes, int, int], int] = {}
    assert log.pair_clicks is not None
    values = iter(log.pair_clicks.tolist())
    for number, (start, end) in enumerate(zip(log.offsets[:-1], log.offsets[1:], strict=True)):
        documents = log.documents[start:end]
        for i in range(len(documents)):
            for j in range(i + 1, len(documents)):
                key = int(log.queries[number]), documents.tobytes(), int(documents[i]), int(documents[j])
                counts[key] = counts.get(key, 0) + next(values)
    assert next(values, None) is None
    return counts


def totals(log: ClickLog) -> dict[tuple[int, int, int, int], tuple[int, int]]:
    """Clicks and impressions of each document of each query at each position on each device."""
    sums: dict[tuple[int, int, int, int], tuple[int, int]] = {}
    of_list = ragged.list_numbers(log.offsets)
    for row, number in enumerate(of_list.tolist()):
        key = (
            int(log.queries[number]),
            int(log.documents[row]),
            int(log.positions[row]),
            int(log.factors[1].values[row]),
        )
        clicks, impressions = sums.get(key, (0, 0))
        sums[key] = (clicks + int(log.clicks[row]), impressions + int(log.impressions[number]))
    return sums


def shown(log: ClickLog) -> list[tuple[int, bytes, bytes]]:
    """What identifies each list: its query, its documents and its device."""
    ends = zip(log.offsets[:-1], log.offsets[1:], strict=True)
    return [
        (int(query), log.documents[a:b].tobytes(), log.factors[1].values[a:b].tobytes())
        for query, (a, b) in zip(log.queries, ends, strict=True)
    ]


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), lists=st.integers(1, 80))
def test_collapse_keeps_every_total_and_leaves_no_list_twice(seed: int, lists: int) -> None:
    log = random_log(seed, lists=lists)
    collapsed = log.collapse()
    assert totals(collapsed) == totals(log)
    assert collapsed.impressions.sum() == log.impressions.sum()
    assert len(set(shown(collapsed))) == collapsed.lists
    assert set(shown(collapsed)) == set(shown(log))


def test_collapse_merges_identical_rows_by_hand() -> None:
    log = ClickLog(
        features=np.zeros((3, 1), dtype=np.float32),
        documents=np.array([0, 1, 1, 0, 0, 1]),
        offsets=np.array([0, 2, 4, 6]),
        factors=(position_factor(np.array([1, 2] * 3)),),
        impressions=np.array([10, 5, 7]),
        clicks=np.array([4, 1, 2, 0, 3, 5]),
        queries=np.array([0, 0, 0]),
        query_ids=np.array(["q"]),
        feature_names=("a",),
    ).collapse()
    assert log.documents.tolist() == [0, 1, 1, 0]
    assert log.impressions.tolist() == [17, 5]
    assert log.clicks.tolist() == [7, 6, 2, 0]


def test_collapse_keeps_lists_apart_that_differ_in_query_or_factor() -> None:
    log = random_log().collapse()
    assert log.collapse().lists == log.lists
    assert merge([log, replace(log, queries=(log.queries + 1) % 6)]).lists == 2 * log.lists
    phone = replace(log.factors[1], values=1 - log.factors[1].values)
    both = merge([log, replace(log, factors=(log.factors[0], phone))])
    assert log.lists < both.lists <= 2 * log.lists


def test_select_takes_lists_by_number_in_order_or_by_mask() -> None:
    log = random_log()
    two = log.select(np.array([7, 3]))
    assert two.impressions.tolist() == log.impressions[[7, 3]].tolist()
    assert shown(two) == [shown(log)[7], shown(log)[3]]
    mask = log.queries == 2
    parts = [log.select(mask), log.select(~mask)]
    assert sum(part.impressions.sum() for part in parts) == log.impressions.sum()
    assert totals(parts[0]) | totals(parts[1]) == totals(log)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), held_out=st.floats(0.2, 0.8))
def test_split_has_no_query_on_both_sides_and_loses_nothing(seed: int, held_out: float) -> None:
    log = random_log(seed)
    kept, aside = log.split(held_out, seed=seed)
    assert not set(kept.queries) & set(aside.queries)
    assert len(np.unique(aside.queries)) == round(held_out * len(np.unique(log.queries)))
    assert totals(kept) | totals(aside) == totals(log)


def test_split_depends_on_the_seed_alone() -> None:
    log = random_log()
    asides = [set(log.split(0.5, seed=seed)[1].queries) for seed in (0, 0, 1, 2, 3)]
    assert asides[0] == asides[1]
    assert any(aside != asides[0] for aside in asides[2:])


@pytest.mark.parametrize("share", [0.01, 0.99, 1.0])
def test_a_share_that_leaves_a_side_empty_is_refused(share: float) -> None:
    with pytest.raises(DataError, match="cannot hold out"):
        random_log().split(share)


def test_a_share_out_of_range_is_refused() -> None:
    with pytest.raises(OptionError, match="held_out"):
        random_log().split(0)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), held_out=st.floats(0.2, 0.8))
def test_a_split_by_page_loses_nothing_and_has_lists_on_both_sides(seed: int, held_out: float) -> None:
    log = random_log(seed)
    kept, aside = log.split(held_out, by="page", seed=seed)
    assert totals(merge([kept, aside])) == totals(log)
    assert set(shown(kept)) & set(shown(aside))


def test_a_split_by_page_takes_the_asked_share_of_pages_and_of_each_documents_clicks() -> None:
    log = random_log(lists=20).collapse()
    asides = [log.split(0.25, by="page", seed=seed)[1] for seed in range(600)]
    pages, clicks = (
        np.array(counts) for counts in ([a.impressions.sum() for a in asides], [a.clicks.sum() for a in asides])
    )
    for drawn, of in ((pages, log.impressions.sum()), (clicks, log.clicks.sum())):
        assert abs(drawn.mean() - of / 4) < 3 * drawn.std() / np.sqrt(len(drawn))
    # Each page is a coin of its own.
    assert pages.std() == pytest.approx(np.sqrt(log.impressions.sum() * 3 / 16), rel=0.12)


def test_clicks_on_all_pages_or_on_none_are_split_by_hand() -> None:
    log = ClickLog.of(
        features=[[0.0], [1.0]], documents=[0, 1], offsets=[0, 2], clicks=[8, 0], impressions=[8], queries=["q"]
    )
    kept, aside = log.split(0.5, by="page")
    assert aside.clicks.tolist() == [aside.impressions[0], 0]
    assert kept.clicks.tolist() == [8 - aside.impressions[0], 0]


def test_a_log_with_pairs_is_not_split_by_page() -> None:
    with pytest.raises(DataError, match="cannot be split by page"):
        random_sessions(pairs=True).split(0.5, by="page")


def test_a_log_is_split_by_nothing_else() -> None:
    with pytest.raises(OptionError, match="by must be one of query, page, time, hash, got 'user'"):
        random_log().split(0.5, by="user")


def test_a_share_that_leaves_no_page_on_one_side_is_refused() -> None:
    one = random_log().select(np.array([0]))
    with pytest.raises(DataError, match="cannot hold out"):
        replace(one, impressions=np.array([1]), clicks=np.zeros_like(one.clicks)).split(0.5, by="page")


def test_merging_the_parts_of_a_log_gives_the_collapsed_log_back() -> None:
    log = random_log()
    merged = merge(log.split(0.5))
    assert totals(merged) == totals(log)
    assert sorted(shown(merged)) == sorted(shown(log.collapse()))


def test_merging_a_log_with_itself_doubles_it() -> None:
    log = random_log().collapse()
    double = merge([log, log])
    assert double.clicks.tolist() == (2 * log.clicks).tolist()
    assert double.impressions.tolist() == (2 * log.impressions).tolist()


def test_a_saved_log_loads_equal_and_memory_mapped(tmp_path: Path) -> None:
    log = random_log()
    log.save(tmp_path / "log")
    loaded = ClickLog.load(tmp_path / "log")
    assert loaded.fingerprint() == log.fingerprint()
    assert loaded.feature_names == log.feature_names
    assert [(f.name, f.levels) for f in loaded.factors] == [(f.name, f.levels) for f in log.factors]
    assert isinstance(loaded.features, np.memmap)
    assert isinstance(loaded.clicks, np.memmap)
    assert loaded.collapse().fingerprint() == log.collapse().fingerprint()


def test_an_empty_log_can_be_saved_and_collapsed(tmp_path: Path) -> None:
    empty = random_log().select(np.zeros(60, dtype=np.bool_))
    empty.collapse().save(tmp_path / "log")
    assert ClickLog.load(tmp_path / "log").lists == 0


def test_the_fingerprint_changes_with_any_count(tmp_path: Path) -> None:
    log = random_log()
    assert log.fingerprint() == random_log().fingerprint()
    assert replace(log, impressions=log.impressions + 1).fingerprint() != log.fingerprint()


def test_saving_over_another_log_must_be_asked_for(tmp_path: Path) -> None:
    random_log(0).save(tmp_path / "log")
    with pytest.raises(OptionError, match="is not empty"):
        random_log(1).save(tmp_path / "log")
    random_log(1).save(tmp_path / "log", overwrite=True)
    assert ClickLog.load(tmp_path / "log").fingerprint() == random_log(1).fingerprint()
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("size", [0, 5, 60, -4])
def test_a_truncated_array_is_one_data_error_that_names_the_file(tmp_path: Path, name: str, size: int) -> None:
    random_log().save(tmp_path / "log")
    path = tmp_path / "log" / f"{name}.npy"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DataError, match=rf"{name}\.npy is missing or damaged"):
        ClickLog.load(tmp_path / "log")


@pytest.mark.parametrize("name", ARRAYS)
def test_a_missing_array_is_one_data_error_that_names_the_file(tmp_path: Path, name: str) -> None:
    random_log().save(tmp_path / "log")
    (tmp_path / "log" / f"{name}.npy").unlink()
    with pytest.raises(DataError, match=rf"{name}\.npy is missing or damaged"):
        ClickLog.load(tmp_path / "log")


def test_a_pickled_array_is_never_opened(tmp_path: Path) -> None:
    random_log().save(tmp_path / "log")
    np.save(tmp_path / "log" / "clicks.npy", np.array([{}], dtype=object))
    with pytest.raises(DataError, match=r"clicks\.npy"):
        ClickLog.load(tmp_path / "log")


def test_a_folder_without_a_log_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*manifest\.json"):
        ClickLog.load(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", "{}", json.dumps({"format": "ultr click log 0"}), "3"])
def test_a_wrong_manifest_is_a_data_error(tmp_path: Path, text: str) -> None:
    random_log().save(tmp_path / "log")
    (tmp_path / "log" / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=r"not valid JSON|not a click log"):
        ClickLog.load(tmp_path / "log")


def test_arrays_of_two_logs_in_one_folder_are_a_data_error(tmp_path: Path) -> None:
    random_log(0).save(tmp_path / "log")
    np.save(tmp_path / "log" / "impressions.npy", np.array([1, 2]))
    with pytest.raises(DataError, match="one value for each of 60 lists"):
        ClickLog.load(tmp_path / "log")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda log: {"clicks": np.repeat(log.impressions, log.lengths) + 1}, "more clicks than impressions"),
        (lambda log: {"clicks": log.clicks - 100}, "fewer than no clicks"),
        (lambda log: {"clicks": log.clicks[:-1]}, "values of clicks"),
        (lambda log: {"impressions": np.zeros_like(log.impressions)}, "at least one impression"),
        (lambda log: {"queries": log.queries[:-1]}, "one value for each"),
        (lambda log: {"documents": log.documents + 30}, "rows of the 30 feature vectors"),
        (lambda log: {"documents": log.documents - 30}, "rows of the 30 feature vectors"),
        (lambda log: {"offsets": log.offsets[::-1]}, "must start with 0"),
        (lambda log: {"offsets": log.offsets[:-1]}, "end with"),
        (lambda log: {"factors": ()}, "must be the position"),
        (lambda log: {"factors": log.factors[::-1]}, "must be the position"),
        (lambda log: {"feature_names": ("a",)}, "1 feature names"),
    ],
)
def test_arrays_that_do_not_fit_are_one_data_error(
    change: Callable[[ClickLog], dict[str, Integers]], sentence: str
) -> None:
    log = random_log()
    with pytest.raises(DataError, match=sentence):
        replace(log, **change(log))  # type: ignore[arg-type]


def test_positions_start_at_one_and_stay_within_their_count() -> None:
    factor = position_factor(np.array([1, 3]), count=4)
    assert factor.levels == ("1", "2", "3", "4")
    assert factor.values.tolist() == [0, 2]
    assert position_factor(np.array([1, 3])).levels == ("1", "2", "3")
    with pytest.raises(DataError, match="positions start at 1, got 0"):
        position_factor(np.array([0, 1]))
    with pytest.raises(DataError, match="must index its 2 levels"):
        position_factor(np.array([1, 3]), count=2)


def test_a_log_says_what_it_holds() -> None:
    log = random_log()
    assert repr(log) == (
        f"ClickLog(60 lists of 6 queries, {log.impressions.sum()} impressions, "
        f"{log.clicks.sum()} clicks, factors position, device)"
    )


def test_a_log_of_plain_arrays_is_sorted_from_the_top_and_collapsed() -> None:
    log = ClickLog.of(
        features=np.eye(3),
        documents=[2, 0, 0, 2],
        offsets=[0, 2, 4],
        positions=[2, 1, 1, 2],
        clicks=np.array([True, False, False, False]),
        queries=np.array(["a", "a"]),
        feature_names=np.array(["x", "y", "z"]),
    )
    assert log.documents.tolist() == [0, 2]
    assert log.positions.tolist() == [1, 2]
    assert log.clicks.tolist() == [0, 1]
    assert log.impressions.tolist() == [2]
    assert log.feature_names == ("x", "y", "z")


@pytest.mark.parametrize("wrong", [{"clicks": [1]}, {"device": ["phone"]}, {"positions": [1]}], ids=str)
def test_plain_arrays_of_the_wrong_length_are_named(wrong: dict[str, object]) -> None:
    (name,) = wrong
    arrays: dict[str, object] = {"features": np.eye(2), "documents": [0, 1], "offsets": [0, 2], "clicks": [0, 1]}
    with pytest.raises(DataError, match=name):
        ClickLog.of(**arrays | wrong)  # type: ignore[arg-type]


def test_pairs_are_counted_as_a_loop_over_sessions_would() -> None:
    documents = [[5, 2, 7], [5, 2, 7], [5, 2], [5, 2, 7], [3]]
    clicks = [[1, 0, 1], [1, 1, 1], [1, 1], [0, 0, 1], [1]]
    log = ClickLog.of(
        features=np.zeros((8, 1)),
        documents=np.concatenate(documents),
        offsets=ragged.from_lengths(np.array([len(shown) for shown in documents])),
        clicks=np.concatenate(clicks),
        queries=["q"] * 5,
        pairs=True,
    )
    assert log.lists == 3
    assert counted_together(log) == {
        (0, np.array([5, 2, 7]).tobytes(), 5, 2): 1,
        (0, np.array([5, 2, 7]).tobytes(), 5, 7): 2,
        (0, np.array([5, 2, 7]).tobytes(), 2, 7): 1,
        (0, np.array([5, 2]).tobytes(), 5, 2): 1,
    }


def test_counting_pairs_changes_nothing_else() -> None:
    with_pairs, without = random_sessions(pairs=True), random_sessions()
    assert without.pair_clicks is None
    assert replace(with_pairs, pair_clicks=None).fingerprint() == without.fingerprint()
    assert with_pairs.fingerprint() != without.fingerprint()


def test_pairs_follow_documents_that_are_not_given_from_the_top() -> None:
    log = ClickLog.of(
        features=np.zeros((3, 1)),
        documents=[0, 1, 2],
        offsets=[0, 3],
        positions=[3, 1, 2],
        clicks=[1, 1, 0],
        pairs=True,
    )
    assert log.documents.tolist() == [1, 2, 0]
    assert log.pair_clicks is not None
    assert log.pair_clicks.tolist() == [0, 1, 0]


def test_rows_of_several_impressions_count_if_all_have_the_same_clicks() -> None:
    arrays: dict[str, object] = {"features": np.eye(2), "documents": [0, 1], "offsets": [0, 2], "impressions": [3]}
    log = ClickLog.of(**arrays, clicks=[3, 3], pairs=True)  # type: ignore[arg-type]
    assert log.pair_clicks is not None
    assert log.pair_clicks.tolist() == [3]
    with pytest.raises(DataError, match=r"a document of list 0 was clicked in 2 of 3 impressions.*row of its own"):
        ClickLog.of(**arrays, clicks=[3, 2], pairs=True)  # type: ignore[arg-type]


def test_select_split_and_collapse_keep_the_pairs_of_each_list() -> None:
    log = random_sessions(pairs=True)
    assert log.lists == 2 * 2 * 4
    together = counted_together(log)
    chosen = log.select(np.array([9, 2, 4]))
    assert counted_together(chosen) == {
        key: together[key] for number in (9, 2, 4) for key in counted_together(log.select(np.array([number])))
    }
    kept, aside = log.split(0.5)
    assert counted_together(kept) | counted_together(aside) == together
    twice = log.select(np.concatenate([np.arange(16), np.arange(16)[::-1]])).collapse()
    assert twice.lists == 16
    assert counted_together(twice) == {key: 2 * count for key, count in together.items()}


def test_a_saved_log_loads_with_its_pairs(tmp_path: Path) -> None:
    log = random_sessions(pairs=True)
    log.save(tmp_path / "log")
    loaded = ClickLog.load(tmp_path / "log")
    assert loaded.fingerprint() == log.fingerprint()
    assert counted_together(loaded) == counted_together(log)
    assert loaded.collapse().fingerprint() == log.fingerprint()
    (tmp_path / "log" / "pair_clicks.npy").unlink()
    with pytest.raises(DataError, match=r"pair_clicks\.npy is missing or damaged"):
        ClickLog.load(tmp_path / "log")


def test_a_log_without_pairs_is_saved_as_it_always_was(tmp_path: Path) -> None:
    random_log().save(tmp_path / "log")
    assert set(json.loads((tmp_path / "log" / "manifest.json").read_text())) == {
        *("format", "factors", "feature_names", "fingerprint", DIGEST),
    }
    assert {path.name for path in (tmp_path / "log").iterdir()} == {
        "manifest.json",
        "factor-1.npy",
        *(f"{name}.npy" for name in ARRAYS),
    }
    assert ClickLog.load(tmp_path / "log").pair_clicks is None


@pytest.mark.parametrize(
    ("both", "sentence"),
    [
        (np.array([1.0]), "flat array of integers"),
        (np.array([[1]]), "flat array of integers"),
        (np.array([1, 1]), "1 pairs of documents, but 2 values"),
        (np.array([-1]), "fewer than no clicks together"),
        (np.array([3]), "more than either has alone"),
        (np.array([0]), "more of them must have been together"),
    ],
    ids=str,
)
def test_pair_clicks_that_cannot_be_are_one_data_error(both: Integers, sentence: str) -> None:
    # Four impressions with three and two clicks: at least one and at most two of them are together.
    log = ClickLog.of(features=np.eye(2), documents=[0, 1], offsets=[0, 2], impressions=[4], clicks=[3, 2])
    for possible in (1, 2):
        replace(log, pair_clicks=np.array([possible]))
    with pytest.raises(DataError, match=sentence):
        replace(log, pair_clicks=both)


def test_a_log_is_checked_where_it_comes_from_and_not_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []
    monkeypatch.setattr(click_log, "check_log", lambda log: checked.append(log.lists))
    log = ClickLog.of(features=[[0.0]] * 20, documents=range(20), offsets=range(21), clicks=[1, 0] * 10)
    assert len(checked) == 1
    log.save(tmp_path / "log")
    loaded = ClickLog.load(tmp_path / "log")
    assert len(checked) == 2
    for by in ("query", "page"):
        for part in loaded.split(0.5, by=by):
            part.collapse().select(np.arange(1))
    assert len(checked) == 2
    replace(loaded, clicks=loaded.clicks)
    assert len(checked) == 3
