"""Position curves by device, on logs whose clicks are exactly what the curves say, and sentences by made-up curves."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature

import numpy as np
import pytest

from ultr.data.click_log import ClickLog
from ultr.diagnosis import Verdict, diagnose
from ultr.diagnosis.curves_by_page import NAME, CurvesByPage, LevelCurve, PageCurves
from ultr.diagnosis.position_bias import PositionBias
from ultr.metrics.query_bootstrap import QueryBootstrap
from ultr.seeding import generator

RELEVANCE = np.array([0.8, 0.4, 0.2])
DESK, PHONE = (1.0, 0.5, 0.25), (1.0, 0.25, 0.125)
TURNS = ([0, 1, 2], [1, 2, 0], [2, 0, 1])
Page = tuple[int, str, Sequence[int], int, Sequence[float]]
"""Query, device, its documents from the top, impressions, and the curve of the users."""


def log_of(pages: Sequence[Page]) -> ClickLog:
    clicks = [
        round(shown * RELEVANCE[document] * theta[place])
        for _, _, documents, shown, theta in pages
        for place, document in enumerate(documents)
    ]
    return ClickLog.of(
        features=np.zeros((3 * (1 + max(query for query, *_ in pages)), 1)),
        documents=[3 * query + document for query, _, documents, *_ in pages for document in documents],
        offsets=np.cumsum([0, *(len(documents) for _, _, documents, *_ in pages)]),
        clicks=clicks,
        impressions=[shown for *_, shown, _ in pages],
        queries=[query for query, *_ in pages],
        device=[device for _, device, documents, *_ in pages for _ in documents],
    )


def turned(query: int, device: str, shown: int, theta: Sequence[float], *, length: int = 3) -> list[Page]:
    """A query whose documents stood everywhere."""
    return [(query, device, turn[:length], shown, theta) for turn in TURNS]


def of(log: ClickLog, *, samples: int = 20) -> PageCurves:
    return PageCurves.of(log, log.factors[1], samples=samples)


def test_curves_are_those_of_the_users_of_each_device() -> None:
    pages = [
        page for query in range(3) for page in turned(query, "phone", 1_000, PHONE) + turned(query, "desk", 3_000, DESK)
    ]
    found = of(log_of(pages))
    assert (found.factor, found.positions, found.queries) == ("device", ("1", "2", "3"), 3)
    for curve, level, share, theta in zip(found.curves, ("desk", "phone"), (0.75, 0.25), (DESK, PHONE), strict=True):
        assert (curve.level, curve.share) == (level, share)
        np.testing.assert_allclose(curve.values, theta)
        np.testing.assert_allclose(curve.draws, np.tile(theta, (20, 1)))
        np.testing.assert_allclose(curve.band(3), np.tile(theta, (3, 1)))
    assert found.depths()["phone"] == pytest.approx((1.375, 1.75))
    ratio = found.ratios()["phone"]
    assert (ratio.mean, ratio.low, ratio.high) == pytest.approx((1.375 / 1.75,) * 3)
    assert found.judged() == (
        Verdict.CAREFUL,
        [
            "with device phone, users see fewer positions than with desk, 1.4 against 1.8 down to position 3 for each "
            "time that they see the first (ratio 0.786, 95 % interval .786-.786)"
        ],
    )


def test_the_six_most_frequent_values_have_a_curve() -> None:
    pages = [page for device in range(1, 9) for page in turned(0, f"device {device}", 1_000 * device, DESK)]
    found = of(log_of(pages), samples=2)
    assert [curve.level for curve in found.curves] == [f"device {device}" for device in range(8, 2, -1)]
    assert [curve.share for curve in found.curves] == pytest.approx([device / 36 for device in range(8, 2, -1)])


def test_lists_without_documents_count_for_no_device() -> None:
    pages = [*turned(0, "desk", 1_000, DESK), *turned(1, "phone", 2_000, DESK)]
    empty: list[Page] = [(0, "desk", [], 90_000, DESK)]
    with_empty = log_of([*empty, *pages[:3], *empty, *pages[3:], *empty])
    shares = {curve.level: curve.share for curve in of(with_empty).curves}
    assert list(shares) == ["phone", "desk"]
    assert shares == pytest.approx({"phone": 2 / 3, "desk": 1 / 3})
    assert CurvesByPage.of(with_empty, samples=2) is not None
    assert CurvesByPage.of(log_of([*pages, *empty]), samples=2) is not None


def test_the_device_of_a_last_page_with_one_document_is_its_own() -> None:
    last: list[Page] = [(1, "phone", [0], 1_000, DESK)]
    found = of(log_of([*turned(0, "desk", 1_000, DESK), *last]), samples=2)
    assert [(curve.level, curve.share) for curve in found.curves] == [("desk", 0.75), ("phone", 0.25)]
    assert CurvesByPage.of(log_of([*turned(0, "desk", 1_000, DESK), *last]), samples=2) is not None


def test_a_link_needs_clicks_at_both_of_its_ends() -> None:
    """The documents of the second query moved too, but nobody clicked below the first position."""
    pages = [*turned(0, "desk", 1_000, DESK), *turned(1, "desk", 1_000, (1.0, 0.0, 0.0))]
    (desk,) = of(log_of(pages), samples=50).curves
    drawing = QueryBootstrap.draw(2, samples=50, random=generator(0, NAME))
    without = drawing.times[:, drawing.groups[0]] == 0
    assert 0 < without.sum() < 50
    assert np.isnan(desk.draws).all(axis=1).tolist() == without.tolist()
    (alone,) = of(log_of(pages[3:]), samples=2).curves
    assert not alone.known.any()


def test_one_click_at_either_end_is_a_link() -> None:
    """Two pages of each order, the first document clicked once at either place: half a click of weight 1."""
    log = ClickLog.of(
        features=np.zeros((2, 1)),
        documents=[0, 1, 1, 0, 0, 1],
        offsets=[0, 2, 4, 6],
        clicks=[1, 0, 0, 1, 1, 0],
        impressions=[2, 2, 2],
        queries=["a", "a", "b"],
        device=["desk"] * 4 + ["phone"] * 2,
    )
    (desk,) = of(log.select(np.arange(2)), samples=3).curves
    np.testing.assert_allclose(desk.values, [1.0, 1.0])
    np.testing.assert_allclose(desk.draws, np.ones((3, 2)))


def test_resamples_without_the_only_query_that_moved_have_no_curve() -> None:
    fixed: list[Page] = [(query, "desk", TURNS[0], 1_000, DESK) for query in range(1, 5)]
    found = of(log_of([*turned(0, "desk", 1_000, DESK), *fixed]), samples=50)
    (desk,) = found.curves
    drawing = QueryBootstrap.draw(5, samples=50, random=generator(0, NAME))
    without = drawing.times[:, drawing.groups[0]] == 0
    assert 0 < without.sum() < 50
    np.testing.assert_array_equal(np.isnan(desk.draws), np.tile(without[:, None], (1, 3)))
    np.testing.assert_allclose(desk.draws[~without], np.tile(DESK, ((~without).sum(), 1)))
    np.testing.assert_allclose(desk.values, DESK)
    np.testing.assert_allclose(desk.band(5), [DESK, [np.nan] * 3, [np.nan] * 3])


def test_where_nothing_moved_there_is_no_curve_and_where_pages_are_short_it_ends() -> None:
    pages = [
        *turned(0, "desk", 4_000, DESK),
        (0, "phone", TURNS[0], 1_000, DESK),
        *turned(0, "watch", 100, DESK, length=2),
    ]
    desk, phone, watch = of(log_of(pages), samples=2).curves
    assert desk.known.tolist() == [True, True, True]
    assert phone.known.tolist() == [False, False, False]
    assert np.isnan(phone.draws).all()
    assert watch.known.tolist() == [True, True, False]
    np.testing.assert_allclose(watch.values[:2], DESK[:2])
    np.testing.assert_allclose(watch.draws[:, :2], np.tile(DESK[:2], (2, 1)))
    assert np.isnan(watch.draws[:, 2]).all()


def test_a_factor_is_of_the_page_if_it_has_several_values_and_one_on_each() -> None:
    two = [*turned(0, "desk", 1_000, DESK), *turned(0, "phone", 1_000, DESK)]
    assert CurvesByPage.of(log_of(two), samples=2) is not None
    assert CurvesByPage.of(log_of(two[:3]), samples=2) is None
    one_place: list[Page] = [(0, "desk", [0], 1_000, DESK), (1, "phone", [0], 1_000, DESK)]
    assert CurvesByPage.of(log_of(one_place), samples=2) is None
    mixed = log_of(two)
    values = mixed.factors[1].values.copy()
    values[1] = 1 - values[1]
    within = ClickLog.of(
        features=mixed.features, documents=mixed.documents, offsets=mixed.offsets, clicks=mixed.clicks,
        impressions=mixed.impressions, queries=mixed.queries, device=values.tolist(),
    )  # fmt: skip
    assert CurvesByPage.of(within, samples=2) is None


def level(name: str, values: Sequence[float], *, failed: int = 0, spread: float = 0.0) -> LevelCurve:
    """A curve with 100 draws, all of them alike up to a factor of the positions behind the first."""
    factors = np.linspace(1 - spread, 1 + spread, 100)[:, None]
    draws = np.where(np.arange(len(values)) == 0, 1.0, factors) * np.array(values)
    draws[:failed] = np.nan
    return LevelCurve(name, 0.5, np.array(values), draws)


def curves(*levels: LevelCurve, factor: str = "device") -> PageCurves:
    places = tuple(str(place) for place in range(1, len(levels[0].values) + 1))
    return PageCurves(factor, places, levels, 10**6)


NONE = (np.nan, np.nan, np.nan)


@pytest.mark.parametrize(
    ("levels", "usual", "shared"),
    [
        ([(1, 0.5, 0.2), (1, 0.5, 0.2)], "0", {"1": [True, True, True]}),
        ([(1, 0.5, 0.2), (1, 0.5, np.nan)], "0", {"1": [True, True, False]}),
        ([(1, 0.5, 0.2), NONE, (1, np.nan, 0.2)], "0", {"2": [True, False, True]}),
        # A value with short pages takes nothing from the others.
        ([(1, 0.5, 0.2), (1, 0.4, 0.1), (1, 0.3, np.nan)], "0", {"1": [True] * 3, "2": [True, True, False]}),
        ([NONE, (1, 0.5, 0.2), (1, 0.4, 0.1)], "1", {"2": [True, True, True]}),
        ([(1, 0.5, 0.2), NONE], "0", {}),
        ([(1, 0.5, 0.2), (1, np.nan, np.nan)], "0", {}),
        ([(1, 0.5, np.nan), (1, np.nan, 0.2)], "0", {}),  # one position alone is no curve
        ([NONE, NONE], "0", {}),
    ],
)
def test_each_value_is_compared_with_the_most_frequent_one_that_has_a_curve_where_both_have_one(
    levels: list[tuple[float, float, float]], usual: str, shared: dict[str, list[bool]]
) -> None:
    found = curves(*(level(str(number), values) for number, values in enumerate(levels)))
    assert found.usual.level == usual
    assert {name: known.tolist() for name, known in found.shared().items()} == shared
    assert list(found.depths()) == list(found.ratios()) == list(shared)
    for name, known in shared.items():
        sums = tuple(np.array(levels[int(each)])[known].sum() for each in (name, usual))
        assert found.depths()[name] == pytest.approx(sums)


def test_the_value_without_a_curve_is_the_one_that_cannot_be_told_though_it_is_the_most_frequent() -> None:
    found = curves(level("desk", NONE), level("phone", (1, 0.5, 0.2)), level("watch", (1, 0.4, 0.1)))
    verdict, said = found.judged()
    assert verdict is Verdict.CAREFUL
    assert said[0].startswith("with device watch, users see fewer positions than with phone, 1.5 against 1.7 down to")
    assert said[1:] == ["for device desk it cannot be told: swaps link too few positions there"]
    alone = curves(level("desk", NONE), level("phone", (1, 0.5, 0.2)))
    assert alone.judged() == (
        Verdict.UNKNOWN,
        ["for device desk it cannot be told: swaps link too few positions there"],
    )
    neither = curves(level("desk", NONE), level("phone", NONE))
    assert neither.judged() == (
        Verdict.UNKNOWN,
        ["for device desk and phone it cannot be told: swaps link too few positions there"],
    )


@pytest.mark.parametrize(
    ("others", "verdict", "said"),
    [
        (
            [level("phone", (1, 0.5))],
            Verdict.GOOD,
            ["with device phone, users see as many positions as with desk, up to chance"],
        ),
        (
            [level("phone", (1, 0.5)), level("tv", (1, 0.5)), level("watch", (1, 0.5))],
            Verdict.GOOD,
            ["with device phone, tv and watch, users see as many positions as with desk, up to chance"],
        ),
        (
            [level("phone", (1, 0.5)), level("watch", (np.nan, np.nan))],
            Verdict.UNKNOWN,
            [
                "with device phone, users see as many positions as with desk, up to chance",
                "for device watch it cannot be told: swaps link too few positions there",
            ],
        ),
        (
            [level("phone", (1, 0.8)), level("tv", (1, 0.5)), level("watch", (np.nan, np.nan))],
            Verdict.CAREFUL,
            [
                "with device phone, users see more positions than with desk, 1.8 against 1.5 down to position 2 for "
                "each time that they see the first (ratio 1.200, 95 % interval 1.200-1.200)",
                "with device tv, users see as many positions as with desk, up to chance",
                "for device watch it cannot be told: swaps link too few positions there",
            ],
        ),
        (
            [level("phone", (1, 0.2))],
            Verdict.CAREFUL,
            [
                "with device phone, users see fewer positions than with desk, 1.2 against 1.5 down to position 2 for "
                "each time that they see the first (ratio 0.800, 95 % interval .800-.800)"
            ],
        ),
    ],
)
def test_sentences_on_each_value(others: list[LevelCurve], verdict: Verdict, said: list[str]) -> None:
    assert curves(level("desk", (1, 0.5)), *others).judged() == (verdict, said)


def test_only_positions_that_both_have_are_counted() -> None:
    (said,) = curves(level("desk", (1, 0.5, 0.2)), level("phone", (1, 0.2, np.nan))).judged()[1]
    assert "1.2 against 1.5 down to position 2 for each time" in said


@pytest.mark.parametrize(("lowest", "told"), [(1.0, False), (1.125, True)])
def test_ends_of_an_interval_are_less_than_three_times_apart_where_it_is_told(lowest: float, told: bool) -> None:  # noqa: FBT001
    """Half of the draws see the lowest number of positions and half of them three, over two on desks."""
    draws = np.repeat([[1.0, lowest - 1], [1.0, 2.0]], 50, axis=0)
    phone = LevelCurve("phone", 0.5, np.array([1.0, 1.0]), draws)
    assert ("phone" in curves(level("desk", (1, 1)), phone).ratios()) is told


@pytest.mark.parametrize(("failed", "told"), [(10, True), (11, False)])
def test_a_tenth_of_the_draws_may_fail_and_a_curve_has_a_band_then(failed: int, told: bool) -> None:  # noqa: FBT001
    phone = level("phone", (1, 0.2), failed=failed)
    assert ("phone" in curves(level("desk", (1, 0.5)), phone).ratios()) is told
    assert np.isfinite(phone.band(10**6)[1]).all() == told


def test_a_band_holds_95_percent_of_the_draws() -> None:
    _, low, high = level("desk", (1, 0.5), spread=0.4).band(10**6)
    ends = np.quantile(0.5 * np.linspace(0.6, 1.4, 100), [0.025, 0.975])
    assert (low[1], high[1]) == pytest.approx(tuple(ends), abs=1e-4)


@pytest.mark.parametrize(
    ("pages", "verdict", "differing"),
    [
        (["same"], Verdict.GOOD, []),
        (["same", "none"], Verdict.UNKNOWN, []),
        (["none", "other", "same"], Verdict.CAREFUL, ["other"]),
        (["other", "another"], Verdict.CAREFUL, ["other", "another"]),
    ],
)
def test_the_gravest_factor_decides(pages: list[str], verdict: Verdict, differing: list[str]) -> None:
    second = {"same": (1.0, 0.5), "none": (np.nan, np.nan), "other": (1.0, 0.2), "another": (1.0, 0.9)}
    found = CurvesByPage(tuple(curves(level("a", (1, 0.5)), level("b", second[each]), factor=each) for each in pages))
    section = found.section()
    assert (section.verdict, found.differing) == (verdict, differing)
    listed = {1: "same", 2: " and ".join(pages), 3: f"{', '.join(pages[:2])} and {pages[-1]}"}[len(pages)]
    assert section.title == f"Is position bias the same for every {listed}?"
    assert (
        section.advice
        == {
            Verdict.GOOD: "",
            Verdict.UNKNOWN: "Log some swaps under each value.",
            Verdict.CAREFUL: "Take Vectorization, or the default, which corrects by it: they learn a curve for each "
            "value; methods with one curve for all pages err on each.",
        }[verdict]
    )


def test_by_default_intervals_rest_on_200_resamples_and_p_values_on_199_draws() -> None:
    for made in (PageCurves.of, CurvesByPage.of, PositionBias.of, diagnose):
        assert signature(made).parameters["samples"].default == 200
    assert signature(diagnose).parameters["draws"].default == 199


def test_tables_and_numbers_have_every_curve_and_drawings_those_that_are_known() -> None:
    found = curves(level("desk", (1, 0.5)), level("phone", (1, 0.25)), level("watch", (np.nan, np.nan)))
    section = CurvesByPage((found,)).section()
    (table,) = section.tables
    assert (table.title, table.folded) == ("bias of each position over the first by device, 95 % intervals", True)
    assert [dict(row) for row in table.rows] == [
        {"position": "1", "desk": "1.000\n1.000-1.000", "phone": "1.000\n1.000-1.000", "watch": ""},
        {"position": "2", "desk": "0.500\n.500-.500", "phone": "0.250\n.250-.250", "watch": ""},
    ]
    numbers = section.numbers["factors"]["device"]
    assert numbers["usual"] == "desk"
    assert numbers["positions_seen"] == {"phone": {"own": 1.25, "usual": 1.5}}
    assert numbers["levels"]["phone"]["values"] == [1, 0.25]
    assert numbers["ratios"]["phone"]["mean"] == pytest.approx(1.25 / 1.5)
    (drawing,) = section.drawings().values()
    assert drawing.description == "bias over the first by position. desk: 1.00 0.50; phone: 1.00 0.25"
    alone = curves(level("desk", (1, 0.5)), level("watch", (1, np.nan)))
    (drawing,) = CurvesByPage((alone,)).section().drawings().values()
    assert drawing.description == "bias over the first by position. desk: 1.00 0.50"
