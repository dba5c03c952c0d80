from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.test_click_log import random_sessions
from tests.data.test_periods import NAMES

from ultr.arrays import Floats, Integers
from ultr.data.bias_factor import BiasFactor, position_factor
from ultr.data.click_log import ClickLog
from ultr.data.provenance import Lineage, Provenance
from ultr.data.split import SPLITS, Split
from ultr.errors import DataError, SeenDataWarning
from ultr.evaluation import (
    Assumption,
    QueryLikelihoods,
    UnseenPart,
    click_fit,
    compare,
    counterfactual_value,
    unseen_part,
)
from ultr.evaluation.unseen_part import trained_on
from ultr.methods import ClickBaseline, Vectorization, load
from ultr.methods.dimension import hold_out
from ultr.relevance import MLP

TINY: dict[str, Any] = {"relevance": MLP(hidden=(4,), steps=3)}
QUICK: dict[str, Any] = {"propensities": np.ones(10), "assumption": Assumption(None, None, "not tested")}


@dataclass
class Trained:
    """A ranker of which nothing but the record matters."""

    provenance: Provenance | None


def trained(data: ClickLog, validation: ClickLog | None = None) -> Trained:
    return Trained(Provenance.of(data, validation))


def found_for(log: ClickLog, *data: ClickLog) -> UnseenPart:
    return unseen_part({f"model-{number}": trained(each) for number, each in enumerate(data)}, log)


def timed(queries: int = 30, *, seed: int = 0) -> ClickLog:
    """Two lists of two documents for each query in each of four periods, each shown a few times."""
    random = np.random.default_rng(seed)
    lists = queries * len(NAMES) * 2
    numbers = np.arange(lists)
    orders = np.where(numbers[:, None] % 2, [[1, 0]], [[0, 1]])
    impressions = random.integers(1, 9, size=lists)
    return ClickLog(
        features=np.arange(2.0 * queries, dtype=np.float32)[:, None],
        documents=(orders + 2 * (numbers // 8)[:, None]).reshape(-1),
        offsets=np.arange(lists + 1) * 2,
        factors=(position_factor(np.tile([1, 2], lists)), BiasFactor("device", np.zeros(2 * lists, np.int32), ("d",))),
        impressions=impressions,
        clicks=random.binomial(impressions.repeat(2), 0.4),
        queries=numbers // 8,
        query_ids=np.array([f"q{number:02}" for number in range(queries)]),
        feature_names=("a",),
        periods=numbers // 2 % 4,
        period_names=NAMES,
    )


def pages(log: ClickLog) -> Counter[tuple[Any, ...]]:
    """Impressions and clicks of each list, which no two rows of `timed` share."""
    assert log.periods is not None
    counts: Counter[tuple[Any, ...]] = Counter()
    for number in range(log.lists):
        rows = slice(log.offsets[number], log.offsets[number + 1])
        key = (int(log.queries[number]), int(log.periods[number]), tuple(log.documents[rows].tolist()))
        counts[*key, "shown"] += int(log.impressions[number])
        for place, clicks in enumerate(log.clicks[rows].tolist()):
            counts[*key, place] += clicks
    return +counts


def queries_of(log: ClickLog) -> set[int]:
    return set(log.queries.tolist())


@pytest.mark.parametrize("by", SPLITS)
@pytest.mark.parametrize("part", [0, 1])
def test_of_a_log_that_was_split_the_other_part_is_left(by: str, part: int) -> None:
    log = timed()
    parts = log.split(0.3, by=by, seed=5)
    found = found_for(log, parts[part])
    assert found.log.fingerprint() == parts[1 - part].fingerprint()
    assert found.log.splits == parts[1 - part].splits
    assert (found.warnings, found.notes) == ((), ())


cuts = st.tuples(st.sampled_from(SPLITS), st.sampled_from([0.2, 0.4, 0.6]), st.integers(0, 3), st.integers(0, 1))


def cut(log: ClickLog, how: tuple[str, float, int, int]) -> ClickLog:
    by, share, seed, part = how
    return log.split(share, by=by, seed=seed)[part]


@settings(max_examples=60)
@given(above=st.lists(cuts, max_size=1), below=st.lists(cuts, min_size=1, max_size=3))
def test_after_any_splits_of_splits_what_is_left_is_the_log_without_the_training_data(above: Any, below: Any) -> None:
    try:
        log = reduce(cut, above, timed())
        data = reduce(cut, below, log)
    except DataError:
        return
    found = found_for(log, data)
    left = pages(log) - pages(data)
    if sum(by == "page" for by, *_ in below) < 2:
        assert pages(found.log) == left
    else:  # Pages out of pages: some that were not trained on may be left out, but never the other way round.
        assert pages(found.log) <= left
    assert found.warnings == ()


@settings(max_examples=60)
@given(
    ways=st.lists(st.lists(cuts.filter(lambda way: way[0] != "page"), min_size=1, max_size=2), min_size=2, max_size=3)
)
def test_of_several_rankers_only_what_none_has_seen_is_left(ways: Any) -> None:
    log = timed()
    try:
        data = [reduce(cut, way, log) for way in ways]
    except DataError:
        return
    left = [pages(log) - pages(each) for each in data]
    common = reduce(lambda first, second: first & second, left)
    found = found_for(log, *data)
    if common:
        assert pages(found.log) == common
        assert found.warnings == ()
    else:
        assert found.log is log
        assert "nothing of the log is left that" in found.warnings[0]


def test_what_several_splits_leave_is_no_part_of_one_of_them() -> None:
    log = timed()
    kept = log.split(0.3)[0]
    for data in ((kept.split(0.3)[0],), (kept, log.split(0.4, seed=1)[0])):
        assert found_for(log, *data).log.splits == (Split(log.fingerprint(), "selection"),)


def test_rankers_of_two_splits_are_measured_on_the_queries_that_neither_has_seen() -> None:
    log = timed()
    first, second = (log.split(0.5, seed=seed) for seed in (0, 1))
    both = queries_of(first[1]) & queries_of(second[1])
    assert 0 < len(both) < 15
    found = found_for(log, first[0], second[0])
    assert queries_of(found.log) == both
    assert found.name == f"the {len(both)} queries of the log that neither model was trained on"
    again = found_for(log, first[0], second[0], first[0])
    assert again.name == f"the {len(both)} queries of the log that no model was trained on"


def test_pages_put_aside_by_one_split_are_not_those_of_another() -> None:
    log = timed()
    first, other = log.split(0.4, by="page"), log.split(0.4, by="page", seed=1)
    assert found_for(log, first[0], first[0]).log.fingerprint() == first[1].fingerprint()
    for second in (other[0], first[1]):
        found = found_for(log, first[0], second)
        assert found.log is log
        assert found.name == "all 30 queries of the log"
        assert found.warnings == (
            "nothing of the log is left that neither model was trained on, so numbers measured on it are too good; "
            "use another log, or models that were trained on the same part of it",
        )


@pytest.mark.parametrize("by", ["query", "time"])
def test_of_lists_put_aside_by_one_split_the_pages_put_aside_by_another_are_left(by: str) -> None:
    log = timed()
    of_pages, of_lists = log.split(0.4, by="page"), log.split(0.4, by=by)
    for data in ((of_pages[0], of_lists[0]), (of_lists[0], of_pages[0])):
        found = found_for(log, *data)
        # Each list is wholly on one side of the second split.
        assert pages(found.log) == pages(of_pages[1]) & pages(of_lists[1])
        assert found.name == f"the {found.log.impressions.sum():,} pages of the log that neither model was trained on"


@pytest.mark.parametrize(
    ("by", "name"),
    [("query", "the 9 queries"), ("time", "the end"), ("page", "the {pages} pages")],
)
def test_the_part_is_named_by_what_was_held_out(by: str, name: str) -> None:
    log = timed()
    kept, held = log.split(0.3, by=by)
    expected = name.format(pages=held.impressions.sum())
    assert found_for(log, kept).name == f"{expected} of the log that the model was not trained on"
    if by == "time":  # Trained on the end, it has not seen the beginning.
        assert found_for(log, held).name.startswith(f"the {kept.impressions.sum():,} pages of the log")


@pytest.mark.parametrize("by", SPLITS)
def test_a_held_out_log_that_was_saved_is_recognised_as_unseen(by: str, tmp_path: Path) -> None:
    kept, held = timed().split(0.3, by=by)
    held.save(tmp_path / "held")
    log = ClickLog.load(tmp_path / "held")
    count = f"{len(queries_of(held))} queries" if by in ("query", "hash") else f"{held.impressions.sum()} pages"
    for data in (kept, kept.split(0.2)[0], kept.select(np.arange(9))):
        found = found_for(log, data)
        assert found.log is log
        assert found.name == f"all {count} of the log, which the model was not trained on"
        assert (found.warnings, found.notes) == ((), ())
    assert found_for(log.split(0.5)[0], kept).warnings == ()
    assert found_for(log.select(np.arange(9)), kept).warnings == ()
    assert not trained_on(trained(kept), log)


def test_a_ranker_that_was_trained_on_the_log_is_too_good_on_it() -> None:
    log = timed()
    kept = log.split(0.3)[0]
    too_good = "model-0 was trained on this log, so numbers measured on it are too good; use another log"
    for data, asked in [
        (log, log),
        (kept, kept),
        (log, kept),  # A part of what it was trained on.
        (log, log.select(np.arange(20))),
        (log.select(np.arange(20)), log),  # Which lists those were, nobody knows any more.
    ]:
        found = found_for(asked, data)
        assert found.log is asked
        assert found.name == f"all {len(queries_of(asked))} queries of the log"
        assert found.warnings == (too_good,)
    both = found_for(log, log, kept, log)
    assert both.warnings[0].startswith("model-0 and model-2 were trained on this log")
    assert both.log is log


def test_one_training_on_the_log_is_enough_to_have_been_trained_on_it() -> None:
    log, other = timed(), timed(seed=1)
    both = Trained(Provenance((Lineage.of(other), Lineage.of(log.split(0.3)[0]))))
    assert trained_on(both, log)
    assert not trained_on(Trained(Provenance.of(other)), log)
    assert not trained_on(object(), log)


@pytest.mark.parametrize("below", [("page", "query"), ("query", "page"), ("page", "time"), ("time", "page"), ("page",)])
@pytest.mark.parametrize("part", [0, 1])
def test_of_two_splits_one_in_the_other_all_is_left_that_was_not_trained_on(below: tuple[str, ...], part: int) -> None:
    log = timed()
    data = reduce(lambda kept, by: kept.split(0.4, by=by, seed=2)[part], below, log)
    found = found_for(log, data)
    assert pages(found.log) == pages(log) - pages(data)
    assert found.warnings == ()
    assert found.log.impressions.sum() == log.impressions.sum() - data.impressions.sum()


def test_pages_out_of_pages_leave_those_of_the_first_split() -> None:
    log = timed()
    data = log.split(0.4, by="page")[0].split(0.4, by="page", seed=1)[0]
    assert found_for(log, data).log.fingerprint() == log.split(0.4, by="page")[1].fingerprint()
    chosen = log.split(0.4)[0].select(np.arange(5))
    assert found_for(log, chosen).log.fingerprint() == log.split(0.4)[1].fingerprint()


def test_parts_of_one_log_by_two_splits_may_overlap() -> None:
    log = timed()
    data = log.split(0.3)[0]
    for asked in (log.split(0.3, seed=1)[1], log.split(0.2)[1], log.split(0.3, by="page")[1], log.select(np.arange(9))):
        found = found_for(asked, data)
        assert found.log is asked
        assert found.name == f"all {len(queries_of(asked))} queries of the log"
        assert found.warnings == (
            "the log and what model-0 was trained on come from one log, but the recorded splits do not tell what they "
            "share, so numbers may be too good; use the log that both were split from, or another one",
        )


def test_a_recorded_split_that_gives_other_data_today_is_not_trusted() -> None:
    log = timed()
    (split,) = log.split(0.3)[0].splits
    moved = Trained(Provenance((Lineage("other data", (split,)),)))
    found = unseen_part({"moved": moved}, log)
    assert found.log is log
    assert "the recorded splits do not tell what they share" in found.warnings[0]


def test_what_is_not_recorded_is_a_warning_and_never_called_unseen() -> None:
    log = timed()
    for ranker in (object(), Trained(None)):
        found = unseen_part({"old": ranker}, log)
        assert found.log is log
        assert found.name == "all 30 queries of the log"
        assert found.warnings == (
            "what old was trained on is not recorded, so numbers are too good if it was this log; train again to have "
            "it recorded, or make sure that it was another log",
        )
        assert not trained_on(ranker, log)
    beside = unseen_part({"new": trained(log.split(0.3)[0]), "old": Trained(None)}, log)
    assert beside.name == "the 9 queries of the log that new was not trained on"
    assert len(beside.warnings) == 1


def test_of_another_log_it_is_said_that_queries_may_be_the_same() -> None:
    log, other = timed(), timed(seed=1)
    found = found_for(log, other, other.split(0.3)[0])
    assert found.log is log
    assert found.name == "all 30 queries of the log"
    assert found.warnings == ()
    assert found.notes == (
        "model-0 and model-1 were trained on other data than this log; whether the two share queries is not recorded, "
        "and where they do, numbers may be too good",
    )
    assert found.remarks == [f"Note: {found.notes[0]}."]


def test_a_ranker_that_was_never_trained_has_seen_nothing() -> None:
    log = timed()
    found = unseen_part({"fixed": Trained(Provenance())}, log)
    assert found.name == "all 30 queries of the log, which the model was not trained on"
    assert (found.log, found.warnings, found.notes) == (log, (), ())
    beside = unseen_part({"fixed": Trained(Provenance()), "new": trained(log.split(0.3)[0])}, log)
    assert beside.name == "the 9 queries of the log that neither model was trained on"


@pytest.mark.parametrize("by", SPLITS)
def test_clicks_that_chose_the_weights_are_told(by: str) -> None:
    log = timed()
    rest, test = log.split(0.3)
    kept, held = rest.split(0.3, by=by)
    told = "clicks of this part chose the weights of {}, so numbers may be a little too good"
    assert unseen_part({"a": trained(kept, held), "b": trained(kept)}, rest).notes == (told.format("a"),)
    assert unseen_part({"a": trained(kept, held)}, held).notes == (told.format("a"),)
    assert unseen_part({"a": trained(kept, held), "b": trained(kept, held)}, log).notes == (told.format("a and b"),)
    # What was put aside before is as good as new.
    assert unseen_part({"a": trained(kept, held)}, test).notes == ()
    assert unseen_part({"a": trained(kept, kept)}, rest).notes == ()
    assert unseen_part({"a": trained(rest, rest.split(0.3, by="page")[1])}, log).notes == ()


def test_a_log_that_lost_its_counts_of_pairs_to_be_split_is_still_known(pair_log: ClickLog) -> None:
    kept, held = hold_out(pair_log, seed=0)
    assert kept.splits[0].by == "page"
    found = found_for(pair_log, kept)
    assert found.log.fingerprint() == held.fingerprint()
    assert trained_on(trained(kept), pair_log)
    by_query = replace(pair_log, pair_clicks=None).split(0.3)
    assert queries_of(found_for(pair_log, by_query[0]).log) == queries_of(by_query[1])


def test_lists_that_occur_twice_are_counted_row_by_row() -> None:
    log = random_sessions()
    numbers = np.arange(log.lists)
    log = log.part(np.concatenate([numbers, numbers]), ())
    kept, held = log.split(0.3, by="page")
    assert found_for(log, kept).log.fingerprint() == held.fingerprint()


def test_fitting_records_the_data_and_saving_keeps_the_record(small_log: ClickLog, tmp_path: Path) -> None:
    kept, held = small_log.split(0.2)
    ranker = ClickBaseline(**TINY).fit(kept, validation=held)
    assert ranker.ranker_.provenance == Provenance.of(kept, held)
    ranker.save(tmp_path / "model")
    assert load(tmp_path / "model").provenance == ranker.ranker_.provenance
    assert ClickBaseline(**TINY).fit(small_log).ranker_.provenance == Provenance.of(small_log)


def test_what_chose_the_dimension_is_recorded(small_log: ClickLog) -> None:
    ranker = Vectorization(dimension="auto", base_hidden=(4,), **TINY).fit(small_log)
    kept, held = hold_out(small_log, seed=0)
    assert ranker.ranker_.provenance == Provenance.of(kept, held)


def test_a_ranker_is_never_compared_on_its_training_queries(small_log: ClickLog, tmp_path: Path) -> None:
    small_log.save(tmp_path / "log")
    whole = ClickLog.load(tmp_path / "log")
    kept, held = whole.split(0.2)
    rankers = [ClickBaseline(**TINY, seed=seed).fit(kept) for seed in (0, 1)]
    comparison = compare(rankers[0], rankers[1], small_log, **QUICK)
    assert comparison.unseen.name == "the 24 queries of the log that neither model was trained on"
    assert comparison.unseen.log.fingerprint() == held.fingerprint()
    on_held = [QueryLikelihoods.of(ranker, held) for ranker in rankers]
    assert comparison.likelihood.difference == on_held[1].against(on_held[0])
    assert click_fit(rankers[0], small_log).log_likelihood == click_fit(rankers[0], held).log_likelihood
    values = [counterfactual_value(rankers[0], log, propensities=np.ones(10)).value for log in (small_log, held)]
    assert values[0] == values[1]
    nested = ClickBaseline(**TINY).fit(kept.split(0.1)[0])
    seen = queries_of(kept.split(0.1)[0])
    assert queries_of(compare(rankers[0], nested, small_log, **QUICK).unseen.log) == queries_of(held)
    assert queries_of(compare(nested, ByFeature(), small_log, **QUICK).unseen.log) == queries_of(small_log) - seen


class ByFeature:
    """A ranker by the first feature, which was never trained."""

    provenance = Provenance()

    def score(self, features: Floats, offsets: Integers) -> Floats:
        return features[:, 0]


def test_a_measure_on_data_that_may_be_known_warns(small_log: ClickLog) -> None:
    ranker = ClickBaseline(**TINY).fit(small_log)
    with pytest.warns(SeenDataWarning, match="the ranker was trained on this log, so numbers measured on it"):
        click_fit(ranker, small_log)
    with pytest.warns(SeenDataWarning, match="the ranker was trained on this log"):
        counterfactual_value(ranker, small_log, propensities=np.ones(10))
    with pytest.warns(SeenDataWarning, match="A was trained on this log"):
        comparison = compare(ranker, ByFeature(), small_log, **QUICK)
    assert comparison.unseen.log is small_log
    ranker.ranker_ = replace(ranker.ranker_, provenance=None)
    with pytest.warns(SeenDataWarning, match="what B was trained on is not recorded"):
        compare(ByFeature(), ranker, small_log, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare(ByFeature(), ranker, small_log, unseen=UnseenPart(small_log, "all"), **QUICK)
