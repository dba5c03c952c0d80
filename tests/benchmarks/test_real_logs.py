from __future__ import annotations

import csv
import gzip
import itertools
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from benchmarks.real_logs import control, position_curves, trivago
from benchmarks.real_logs.__main__ import main
from benchmarks.real_logs.expedia import shuffled, sorted_by_price, without_users
from benchmarks.real_logs.judging import chance_ndcg, click_discounts, detectable, judge, judge_weighted
from benchmarks.real_logs.position_curves import Groups
from benchmarks.real_logs.reading import ShownLists, read_expedia, read_trivago
from benchmarks.real_logs.standings import CHANCE, Standings

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.data.totals import Totals
from ultr.errors import DataError
from ultr.metrics import PairedTest, ndcg

EXPEDIA_ROWS = (
    "srch_id,prop_id,srch_destination_id,position,random_bool,price_usd,review,click_bool,booking_bool,gross_bookings_usd",
    "7,11,5,2,0,90,NULL,1,1,95.5",
    "7,12,5,1,0,80,4.5,0,0,NULL",
    "3,11,5,1,1,70,3.5,1,0,NULL",
    "3,13,5,2,1,60,2.5,0,0,NULL",
    "9,11,5,1,0,91,3.0,1,0,NULL",
    "9,13,5,2,0,61,3.0,1,0,NULL",
)


TRIVAGO_ROWS = (
    "user_id,session_id,timestamp,step,action_type,reference,platform,city,device,current_filters,impressions,prices",
    "u,s,1,1,search for poi,Port,AU,Sydney,mobile,,,",
    "u,s,2,2,clickout item,7,AU,Sydney,mobile,,5|7|9,50|60|70",
    "u,s,3,3,clickout item,8,AU,Sydney,mobile,,5|7|9,50|60|70",
    "v,t,4,1,clickout item,4,BR,Rio,desktop,Hotel|4 Star,4|5,10|20",
)


@pytest.fixture
def expedia(tmp_path: Path) -> Path:
    return _folder(tmp_path / "expedia", {"searches.csv": EXPEDIA_ROWS})


def _folder(folder: Path, files: Mapping[str, Sequence[str]]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, rows in files.items():
        (folder / name).write_text("\n".join(rows) + "\n")
    return folder


def test_searches_in_random_order_are_apart_and_outcomes_are_no_features(expedia: Path) -> None:
    ordered, random = read_expedia(expedia)
    assert ordered.log.feature_names == ("price_usd", "review")
    assert ordered.log.query_ids.tolist() == ["7", "9"]
    assert random.log.query_ids.tolist() == ["3"]
    # Search 7 stands from the top down, whatever the order of its rows.
    assert ordered.log.features[ordered.log.documents][:2].tolist()[0] == [80, 4.5]
    assert np.isnan(ordered.log.features[ordered.log.documents][1, 1])
    assert ordered.log.clicks.tolist() == [0, 1, 1, 1]
    assert ordered.log.signal("booking").tolist() == [0, 1, 0, 0]


def test_the_same_hotel_in_two_searches_is_one_identity(expedia: Path) -> None:
    hotels = read_expedia(expedia)[0].identities("srch_destination_id", "prop_id")
    assert hotels[1] == hotels[2]
    assert len(set(hotels.tolist())) == 3


def test_a_file_that_is_not_there_or_lacks_a_column_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no file .*searches\*\.csv or train\*\.csv"):
        read_expedia(tmp_path)
    with pytest.raises(DataError, match="no column 'action_type'"):
        read_trivago(_folder(tmp_path, {"train.csv": EXPEDIA_ROWS}))


def test_searches_of_one_kind_alone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="both kinds"):
        read_expedia(_folder(tmp_path, {"searches.csv": (EXPEDIA_ROWS[0], *EXPEDIA_ROWS[3:5])}))


def test_several_files_are_one_log_and_the_contest_s_test_file_is_none_of_them(expedia: Path, tmp_path: Path) -> None:
    header, *rows = EXPEDIA_ROWS
    files = {"train_1.csv": [header, *rows[:3]], "train_2.csv": [header, *rows[3:]], "test.csv": ["srch_id", "1"]}
    for one, several in zip(read_expedia(expedia), read_expedia(_folder(tmp_path / "files", files)), strict=True):
        assert several.log.fingerprint() == one.log.fingerprint()


def test_the_public_file_of_trivago_gives_the_lists_one_of_whose_hotels_was_clicked(tmp_path: Path) -> None:
    shown = read_trivago(_folder(tmp_path, {"train.csv": TRIVAGO_ROWS}))
    assert shown.log.clicks.tolist() == [0, 1, 0, 1, 0]  # Nobody was shown hotel 8.
    assert shown.log.features[shown.log.documents, 0].tolist() == [50, 60, 70, 10, 20]
    assert shown.of_rows("item_id").tolist() == [5, 7, 9, 4, 5]
    assert shown.of_rows("device").tolist() == ["mobile"] * 3 + ["desktop"] * 2
    rows = ["serp,city,item_id,device,position,price,click"]
    rows += ["0,Sydney,5,mobile,1,50,0", "0,Sydney,7,mobile,2,60,1", "0,Sydney,9,mobile,3,70,0"]
    rows += ["1,Rio,4,desktop,1,10,1", "1,Rio,5,desktop,2,20,0"]
    prepared = read_trivago(_folder(tmp_path, {"clickouts.csv": rows}))
    np.testing.assert_array_equal(prepared.log.features, shown.log.features)
    assert prepared.identities("city", "item_id").tolist() == shown.identities("city", "item_id").tolist()


@pytest.mark.parametrize("cutoff", [1, 2, 10])
def test_chance_is_the_mean_over_all_orders(cutoff: int) -> None:
    lists = [[1, 0, 1, 0], [0, 1, 0], [0, 0]]
    labels, offsets = np.concatenate(lists), np.array([0, 4, 7, 9])
    found = chance_ndcg(labels, offsets, cutoff=cutoff)
    for each, value in zip(lists[:2], found[:2], strict=True):
        orders = [
            ndcg(np.array(order, dtype=float), np.array(each), np.array([0, len(each)]), cutoff=cutoff)[0]
            for order in itertools.permutations(range(len(each)))
        ]
        assert value == pytest.approx(np.mean(orders))
    assert np.isnan(found[2])


def _log(clicks: list[int], offsets: list[int], **others: object) -> ClickLog:
    rows = len(clicks)
    return ClickLog.of(
        features=np.arange(rows, dtype=float)[:, None],
        documents=np.arange(rows),
        offsets=offsets,
        clicks=clicks,
        **others,  # type: ignore[arg-type]
    )


def test_a_ranker_is_judged_by_the_mean_of_its_seeds_in_each_search() -> None:
    log = _log([1, 0, 0, 1], [0, 2, 4])
    judged = judge([np.array([2.0, 1, 2, 1]), np.array([1.0, 2, 1, 2])], log)
    second = 1 / np.log2(3)
    assert judged.by_seed == pytest.approx(np.array([[1, second], [second, 1]]))
    assert judged.values == pytest.approx([(1 + second) / 2] * 2)
    assert judged.spread == pytest.approx(0)


def test_rankers_are_compared_with_raw_clicks_by_the_same_model() -> None:
    log = _log([1, 0, 0, 1], [0, 2, 4], signals={"booking": np.array([0, 0, 0, 1])})
    good, bad = np.array([2.0, 1, 1, 2]), np.array([1.0, 2, 2, 1])
    scores = {"raw clicks, network": [bad], "DLA, network": [good], "raw clicks, trees": [good], "LightGBM": [bad]}
    scores["LightGBM, debiased"] = [bad]
    standings = Standings.of(scores, log, examination=np.array([1.0, 0.5]))
    leads = {name: standings.against_raw(name, "click") for name in scores}
    lost = 1 - 1 / np.log2(3)
    assert leads["raw clicks, network"] is leads["raw clicks, trees"] is None
    assert leads["DLA, network"] is not None
    assert leads["DLA, network"].difference == pytest.approx(lost)
    assert leads["LightGBM"] is not None
    assert leads["LightGBM"].difference == pytest.approx(-lost)
    assert leads["LightGBM, debiased"] is not None
    assert leads["LightGBM, debiased"].difference == 0
    # The click of the second search was at position 2, which is examined half as often, so it counts twice.
    mixed = judge_weighted([np.array([2.0, 1, 2, 1])], log, examination=np.array([1.0, 0.5]))
    assert mixed.interval.mean == pytest.approx((1 + 2 * (1 - lost)) / 3)
    assert standings.weighted["DLA, network"].against(standings.weighted["raw clicks, network"]).mean == pytest.approx(
        lost
    )
    assert standings.weighted[CHANCE].interval.mean == pytest.approx(1 - lost / 2)
    # One of two searches has a booking; of two hotels, each is first half of the time.
    assert standings.judged["booking"][CHANCE].interval.mean == pytest.approx(1 - lost / 2)


def test_a_click_among_equal_scores_is_discounted_as_the_last_of_them() -> None:
    found = click_discounts(np.array([1.0, 1, 0]), np.array([1, 0, 0]), np.array([0, 3]), cutoff=2)
    assert found == pytest.approx([1 / np.log2(3), 1, 0])


def test_shuffled_lists_keep_their_hotels_and_clicks() -> None:
    log = _log([1, 0, 0, 1, 0, 0, 0, 1], [0, 4, 8])
    again = shuffled(log)
    assert again.documents.tolist() != log.documents.tolist()
    assert sorted(again.documents[:4]) == [0, 1, 2, 3]
    assert sorted(again.documents[again.clicks > 0]) == [0, 3, 7]
    assert again.positions.tolist() == log.positions.tolist()


def test_lists_sorted_by_price_are_counted_in_both_directions() -> None:
    prices = [*range(10), *range(10, 0, -1), 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 7, 8]
    log = ClickLog.of(
        features=np.array(prices, dtype=float)[:, None],
        feature_names=["price_usd"],
        documents=np.arange(32),
        offsets=[0, 10, 20, 30, 32],  # The last is too short to say anything.
        clicks=[1] * 32,
    )
    assert sorted_by_price(log) == pytest.approx(2 / 3)


def test_clicks_without_users_follow_the_position_alone() -> None:
    # Of three clicks, two were at the first of two positions: the power law has 2^-eta = 1/2.
    log = _log([1, 0, 1, 0, 0, 1], [0, 2, 4, 6])
    assert without_users(log).clicks.tolist() == [667, 333] * 3


def test_the_detectable_difference_is_found_in_four_of_five_repetitions() -> None:
    error = 0.01
    gain = detectable(PairedTest(0.0, -1.959964 * error, 1.959964 * error, 1.0))
    draws = np.random.default_rng(0).normal(gain, error, 100_000)
    assert np.mean(draws > 1.959964 * error) == pytest.approx(0.8, abs=0.005)


def test_groups_of_positions_leave_advertisements_out() -> None:
    groups = Groups((1, 2, 4, 10), without=(5,))
    assert groups.names == ["1", "2", "3-4", "6-10"]
    assert groups.of(np.array([1, 2, 3, 4, 5, 6, 10, 11])).tolist() == [0, 1, 2, 2, -1, 3, 3, -1]
    shown, clicked = np.array([10.0, 10, 10, 30, 99, 10]), np.array([5.0, 3, 2, 2, 99, 1])
    assert groups.rates(Totals(shown, clicked)) == pytest.approx([1, 0.6, 4 / 40 / 0.5, 0.2])


def test_the_exponent_of_a_power_law_is_found_again() -> None:
    shown = np.array([900.0, 800, 850, 300, 200, 150])
    for eta in (0.0, 0.56, 1.7):
        totals = Totals(shown, 0.2 * shown * position_curves.power_law(eta, 6))
        assert position_curves.exponent(totals) == pytest.approx(eta)


def test_intervals_of_click_rates_hold_them() -> None:
    random = np.random.default_rng(0)
    clicks = (random.random((300, 4)) < [0.4, 0.2, 0.1, 0.1]).astype(int)
    log = _log(clicks.ravel().tolist(), list(range(0, 1201, 4)))
    values, low, high = position_curves.observed(log, Groups((1, 2, 4)), samples=200)
    rates = clicks.mean(axis=0)
    assert values == pytest.approx([1, rates[1] / rates[0], rates[2:].mean() / rates[0]])
    assert (low[1:] < values[1:]).all()
    assert (values[1:] < high[1:]).all()


def test_repeats_of_hotels_tell_bias_from_relevance() -> None:
    relevance, theta = np.array([0.5, 0.1, 0.25]), np.array([1.0, 0.6, 0.2])
    shown = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    clicks = (1000 * relevance[shown] * theta).round().astype(int)
    log = _log(clicks.ravel().tolist(), [0, 3, 6, 9], impressions=[1000] * 3)
    curve, _, _ = position_curves.curve_of_repeats(log, shown.ravel(), Groups((1, 2, 3)), samples=5)
    assert curve == pytest.approx(theta, abs=1e-4)


def test_expected_ndcg_is_that_of_each_click_by_its_chance() -> None:
    chances, scores, offsets = np.array([0.5, 0.3, 0.2, 1.0]), np.array([1.0, 3.0, 2.0, 0.0]), np.array([0, 3, 4])
    clicked = [ndcg(scores[:3], row, np.array([0, 3]), cutoff=2)[0] for row in np.eye(3, dtype=int)]
    found = control.expected_ndcg(scores, chances, offsets, cutoff=2)
    assert found == pytest.approx([chances[:3] @ clicked, 1.0])
    # The first rank is anybody's of the three, or of the first two.
    assert control.expected_ndcg(np.zeros(4), chances, offsets, cutoff=1) == pytest.approx([1 / 3, 1.0])
    two = control.expected_ndcg(np.array([1.0, 1, 0, 0]), chances, offsets, cutoff=1)
    assert two == pytest.approx([(0.5 + 0.3) / 2, 1.0])


def test_clicks_of_the_control_are_drawn_by_their_chances() -> None:
    logits, offsets = np.log([1.0, 3.0, 2.0, 2.0]), np.array([0, 2, 4])
    chances = control.softmax(logits, offsets)
    assert chances == pytest.approx([0.25, 0.75, 0.5, 0.5])
    clicks = control.draw_clicks(chances, offsets, 100_000, seed=0)
    assert np.add.reduceat(clicks, offsets[:-1]).tolist() == [100_000] * 2
    assert clicks / 100_000 == pytest.approx(chances, abs=0.01)


def test_a_site_that_knows_all_shows_the_most_worthy_first_and_its_clicks_fall_with_examination() -> None:
    log = _log([0, 0, 1, 1, 0, 0], [0, 3, 6], positions=[1, 2, 4, 1, 2, 3])
    worth = control.best_first(control.Worth(log, np.array([0.0, 2, 1, 3, 4, 5]), np.zeros(6)))
    assert worth.total.tolist() == [2, 1, 0, 5, 4, 3]
    assert worth.log.documents.tolist() == [1, 2, 0, 5, 4, 3]
    assert worth.log.positions.tolist() == [1, 2, 4, 1, 2, 3]
    assert worth.agreement() == pytest.approx(1.0)
    flat = control.Worth(log, np.zeros(6), np.zeros(6))
    clicked = control.World(flat, flat, eta=1.0).clicked(70_000, seed=0)
    assert clicked.clicks[:3] / 70_000 == pytest.approx([4 / 7, 2 / 7, 1 / 7], abs=0.01)


class Shares:
    """A model of clicks that knows the share of each feature value."""

    def click_shares(self, log: ClickLog) -> Doubles:
        values: Doubles = (log.features[log.documents, 0].astype(np.float64) + 1) / 100
        return values

    def click_probabilities(self, log: ClickLog) -> Doubles:
        return self.click_shares(log)


def test_likelihoods_of_lists_are_in_the_order_of_the_lists() -> None:
    log = _log([1, 0, 0, 1, 1, 0], [0, 2, 4, 6], queries=["10", "9", "2"])
    for lists in ([0, 1, 2], [2, 0]):
        found = trivago.list_likelihoods(Shares(), log.select(np.array(lists)))
        assert found == pytest.approx(np.log([0.01, 0.04, 0.05])[lists])


def _trivago() -> ShownLists:
    log = _log([1, 0, 0, 1], [0, 2, 4], device=["phone", "phone", "desk", "desk"])
    columns = {"city": np.array(["a"] * 4), "item_id": np.array([1, 2, 2, 3])}
    return ShownLists(log, columns | {"device": np.array(["phone", "phone", "desk", "desk"])})


def test_a_method_knows_the_position_the_device_or_each_pair_of_both() -> None:
    log = _trivago().log
    names = {knows: trivago.with_factors(log, knows).factors[1:] for knows in ("position", "position and device")}
    assert names["position"] == ()
    assert [factor.name for factor in names["position and device"]] == ["device"]
    pairs = trivago.with_factors(log, trivago.BY_DEVICE).factors[1]
    assert [pairs.levels[value] for value in pairs.values] == ["phone 1", "phone 2", "desk 1", "desk 2"]


def test_hotels_of_a_city_are_documents_at_their_mean_price() -> None:
    log = trivago.by_hotel(_trivago())
    assert log.query_ids.tolist() == ["a"]
    assert log.documents[1] == log.documents[2]
    assert log.features[log.documents[1], 0] == pytest.approx((1 + 2) / 2)


def test_position_alone_predicts_by_the_click_rates_of_other_folds() -> None:
    clicks = [1, 0, 1, 0, 0, 1, 0, 1, 1, 0]
    log = _log(clicks, list(range(0, 11, 2)))
    found = trivago.cross_validated_rates(log, np.arange(5))
    # Without list 0, two of four lists clicked the first: its share is (2 + 1/2) of (2 + 1/2) + (2 + 1/2).
    assert found[0] == pytest.approx(np.log(0.5))
    # Without list 2, three of four did, and list 2 clicked the second.
    assert found[2] == pytest.approx(np.log(1.5 / 5))


def _some(file: str, source: Path, target: Path, key: str, kind: str | None, count: int) -> None:
    """The first so many lists of each kind of a file."""
    seen: dict[str, set[str]] = defaultdict(set)
    (target / file).parent.mkdir(parents=True)
    with gzip.open(source / file, "rt") as rows, gzip.open(target / file, "wt") as kept:
        reader = csv.DictReader(rows)
        assert reader.fieldnames is not None
        writer = csv.DictWriter(kept, reader.fieldnames)
        writer.writeheader()
        for row in reader:
            lists = seen[row[kind] if kind else ""]
            if row[key] in lists or len(lists) < count:
                lists.add(row[key])
                writer.writerow(row)


def test_the_study_runs_on_some_of_the_real_lists(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _some("expedia/searches.csv.gz", shared_data, tmp_path, "srch_id", "random_bool", 40)
    _some("trivago/clickouts.csv.gz", shared_data, tmp_path, "serp", None, 40)
    numbers, figure = tmp_path / "numbers.json", tmp_path / "curves.png"
    sizes = ["--seeds", "0", "--hidden", "4", "--steps", "2", "--rounds", "1", "--samples", "5", "--clicks", "1"]
    files = ["--json", str(numbers), "--figure", str(figure), "--logs", str(tmp_path / "logs")]
    files += ["--trained", str(tmp_path / "trained")]
    monkeypatch.setattr(sys, "argv", ["real_logs", "--data", str(tmp_path), *sizes, *files])
    main()
    printed = capsys.readouterr().out
    assert "| the site's order, trained on | 40 |" in printed
    assert "| Vectorization d=3, network |" in printed
    names = [each["name"] for each in json.loads(numbers.read_text())]
    assert "Expedia, LightGBM, debiased: nDCG@10 of bookings in random searches" in names
    assert figure.stat().st_size > 0
    assert ClickLog.load(tmp_path / "logs" / "expedia").lists == 40
