"""The words of a report from both sides of every threshold, on numbers that are made up, so that nothing is trained."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.evaluation import Assumption, CounterfactualValue
from ultr.evaluation.comparison import AS_SHOWN
from ultr.evaluation.trial import Answer
from ultr.metrics import ExposureShift, Interval, PairedTest
from ultr.pages import Verdict
from ultr.reporting.bias import _by_level, _by_score, _mean
from ultr.reporting.decision import ExpectedGain, decision, heads, next_steps
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.moved import Moved, brief_start
from ultr.reporting.plane import plane
from ultr.reporting.quality import _gaps

LOG = ClickLog.of(
    features=np.zeros((3, 1)),
    documents=[0, 1, 2],
    offsets=[0, 1, 2, 3],
    clicks=[10, 20, 10],
    impressions=[40, 40, 20],
    queries=["hats", "shoes", "socks"],
)
"""40 clicks on 100 pages: 0.4 clicks a page today."""


SHIFT = ExposureShift(9.9, 2.0, 1.26)


def _value(totals: list[float], clicks: float = 1_234.0, effective: float = 567.0) -> CounterfactualValue:
    return CounterfactualValue(np.array(totals), np.array([40.0, 40.0, 20.0]), clicks, effective, 0.0, 0.0)


def _moved(query: str, order: list[int], impressions: int = 10, pages: int | None = None) -> Moved:
    count = len(order)
    return Moved(
        query,
        pages or impressions,
        impressions,
        np.arange(count),
        np.arange(count),
        (),
        np.array(order, dtype=np.int64),
    )


def _inputs(
    difference: Interval | None = None,
    winner: str | None = "new",
    *,
    shift: ExposureShift = SHIFT,
    new: tuple[float, ...] = (9.0, 25.0, 9.0),
    rejected: bool | None = False,
    **change: Any,
) -> Any:
    """What a report is made of, as far as the first screen looks at it."""
    answer = Answer("a verdict", "the log does not tell", winner, difference)
    comparison = SimpleNamespace(
        value_against_shown=answer,
        unseen=SimpleNamespace(log=LOG, name="the whole log", remarks=["Note: one."]),
        values={"new": _value(list(new)), AS_SHOWN: _value([10.0, 20.0, 10.0])},
        names=("old", "new"),
        assumption=Assumption(rejected, None, "Tested."),
        value_of="",
    )
    given: dict[str, Any] = {
        "subject": SimpleNamespace(
            name="new",
            folder=Path("my models/new"),
            ranker=SimpleNamespace(options={}),
            manifest=SimpleNamespace(method="dla", origin=None),
        ),
        "value": None,
        "log": LOG,
        "log_name": "log",
        "moved": [_moved("a", [0, 1, 2, 3])],
        "leads": {},
        "shift": shift,
        "against_shown": comparison,
        "document_ids": None,
        "names": lambda documents: [f"document {row}" for row in documents],
    }
    return SimpleNamespace(**(given | change))


@pytest.mark.parametrize(
    ("winner", "verdict", "word", "first"),
    [
        ("new", Verdict.GOOD, "yes", "Look at the most frequent queries below, and at those that may lose."),
        (AS_SHOWN, Verdict.BAD, "no", "Keep the order of today."),
        (None, Verdict.UNKNOWN, "cannot tell", "Do not replace the order of today for all users on this evidence."),
    ],
)
def test_the_decision_is_that_of_the_comparison_with_the_lists_as_shown(
    winner: str | None, verdict: Verdict, word: str, first: str
) -> None:
    inputs = _inputs(Interval(0.02, 0.01, 0.04), winner)
    found = decision(inputs)
    assert (found.verdict, found.badge) == (verdict, word)
    assert next_steps(inputs)[0] == first
    gain = ExpectedGain.of(inputs)
    assert gain is not None
    assert gain.percent is not None
    assert vars(gain.percent) == pytest.approx({"mean": 0.02 / 0.4, "low": 0.01 / 0.4, "high": 0.04 / 0.4})
    assert (gain.clicks, gain.effective_clicks) == (1_234.0, 567.0)
    assert gain.reason == ("the log does not tell" if winner is None else "")
    said = found.parts[1].answer
    assert ("The best estimate is +5%" in said) is (winner is not None)
    assert ("The log does not tell." in said) is (winner is None)
    assert "It rests on 1,234 clicks of the whole log, as good as 567 clicks of equal weight" in said


@pytest.mark.parametrize(
    ("rejected", "said"),
    [
        (True, "One number for each position is not enough to describe these users."),
        (None, "Whether one number for each position is enough, the clicks do not tell."),
        (False, None),
    ],
)
def test_what_the_test_of_the_log_means_for_the_estimate(
    rejected: bool | None,  # noqa: FBT001
    said: str | None,
) -> None:
    text = decision(_inputs(Interval(0.02, 0.01, 0.04), rejected=rejected)).parts[1].answer
    for each in ("not enough to describe these users", "the clicks do not tell"):
        assert (each in text) is (said is not None and each in said)
    assert ("ne number for each position" in text) is (said is not None)


@pytest.mark.parametrize(("growth", "fall", "limited"), [(9.99, 9.99, False), (10.0, 1.0, True), (1.0, 10.0, True)])
@pytest.mark.parametrize("winner", ["new", None])
def test_a_limit_is_worth_a_thought_from_ten_times_the_exposure_on(
    growth: float,
    fall: float,
    limited: bool,  # noqa: FBT001
    winner: str | None,
) -> None:
    steps = next_steps(_inputs(Interval(0.02, 0.01, 0.04), winner, shift=ExposureShift(growth, fall, 1.0)))
    assert any("--safe" in step for step in steps) is limited
    assert len(steps) == (3 if limited else 2)
    if winner:
        assert "ultr export 'my models/new'" in steps[-1]


def test_queries_that_lose_are_counted_with_their_pages() -> None:
    """hats loses 2 of 10 clicks, shoes wins 5, socks is as before."""
    found = decision(_inputs(Interval(0.02, 0.01, 0.04), new=(8.0, 25.0, 10.0)))
    losing = found.numbers["queries_that_lose"]
    assert (losing["queries"], losing["of"], losing["share_of_pages"]) == (1, 3, 40 / 100)
    assert losing["worst"] == [("hats", 40.0, 10 / 40, 8 / 40)]
    risk = found.parts[-1]
    assert "1 of 3 queries, with 40% of the pages, would get fewer clicks" in risk.answer
    assert risk.answer.startswith(
        "In the most frequent list of each query, half of the results get at most 1.3 times as much or as little "
        "attention as today; the one that rises most gets 9.9 times as much, the one that falls most 1/2.0."
    )
    (table,) = risk.tables
    assert table.rows == [{"query": "hats", "pages": "40", "clicks a page today": "0.25", "expected": "0.20"}]
    none = decision(_inputs(Interval(0.02, 0.01, 0.04), new=(10.0, 25.0, 10.0)))
    assert not none.parts[-1].tables
    both = decision(_inputs(Interval(0.02, 0.01, 0.04), new=(8.0, 12.0, 10.0))).numbers["queries_that_lose"]["worst"]
    assert [query for query, *_ in both] == ["shoes", "hats"]


@pytest.mark.parametrize(
    ("orders", "first", "three"),
    [
        ([[0, 1, 2, 3]], 0.0, 0.0),
        ([[0, 2, 1, 3]], 0.0, 0.0),
        ([[1, 0, 2, 3]], 1.0, 0.0),
        ([[0, 1, 3, 2]], 0.0, 1.0),
        ([[3, 0, 1, 2], [0, 1, 2, 3]], 0.5, 0.5),
        ([[1, 0]], 1.0, 0.0),
    ],
)
def test_shares_of_pages_with_another_first_and_other_first_three(
    orders: list[list[int]], first: float, three: float
) -> None:
    moved = [_moved(str(number), order) for number, order in enumerate(orders)]
    found = decision(_inputs(Interval(0.02, 0.01, 0.04), moved=moved))
    assert (found.numbers["another_first"], found.numbers["other_first_three"]) == (first, three)
    same = all(order == sorted(order) for order in orders)
    said = f"On {100 * first:.0f}% of pages another result stands first, and on {100 * three:.0f}% the first three"
    assert found.parts[0].answer.startswith("Nothing: the order is the same" if same else said)


def test_pages_are_counted_and_not_queries() -> None:
    moved = [_moved("head", [1, 0], impressions=2, pages=90), _moved("tail", [0, 1], impressions=10)]
    assert decision(_inputs(Interval(0.02, 0.01, 0.04), moved=moved)).numbers["another_first"] == 0.9


def test_the_three_most_frequent_queries_are_shown_with_their_first_five_places() -> None:
    moved = [
        _moved(query, [5, 4, 3, 2, 1, 0], pages=pages) for query, pages in zip("abcde", (5, 9, 7, 9, 1), strict=True)
    ]
    found = heads(_inputs(moved=moved))
    assert found is not None
    assert [each["query"] for each in found.numbers] == ["b", "d", "c"]
    assert [len(table.rows) for table in found.tables] == [5, 5, 5]
    assert found.tables[0].rows[0]["move"] == "▲ 5"
    one = heads(_inputs(moved=[_moved("e", [1, 0], pages=1, impressions=1)]))
    assert one is not None
    assert one.tables[0].title == "query e: 1 impression, with this list"
    assert "This log has no ids of documents" in found.answer


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (PairedTest(0.1, 0.05, 0.15, 0.01), "better than raw by 25.0%."),
        (PairedTest(-0.1, -0.15, -0.05, 0.01), "worse than raw by 16.7%."),
        (PairedTest(0.1, 0.0, 0.2, 0.05), "better than raw by 25.0%, which may be chance."),
        (PairedTest(-0.1, -0.2, 0.0, 0.05), "worse than raw by 16.7%, which may be chance."),
    ],
)
def test_a_lead_by_labels_is_a_share_of_the_other_models_value(test: PairedTest, said: str) -> None:
    """The subject has 0.5, so that the other one has 0.4 or 0.6."""
    evaluation = SimpleNamespace(mean=lambda measure: 0.5)
    inputs = _inputs(log=None, leads={"raw": test}, evaluations={"new": evaluation}, judged_name="the test part")
    inputs.against_shown = None
    (part,) = decision(inputs).parts
    assert part.answer == f"By nDCG@10 on the test part, new is {said}"


def test_curves_are_geometric_means_over_documents() -> None:
    """Half and an eighth as many clicks are a quarter as many on average."""
    np.testing.assert_allclose(_mean(np.array([[1.0, 0.5], [1.0, 0.125]])), [1.0, 0.25])
    ratios = np.arange(1.0, 10.0)[:, None]
    thirds = _by_score(ratios, np.arange(9, dtype=np.float32))
    expected = [float(np.prod(ratios[start : start + 3]) ** (1 / 3)) for start in (0, 3, 6)]
    assert list(thirds) == ["lowest third", "middle third", "highest third"]
    assert [float(each[0]) for each in thirds.values()] == pytest.approx(expected)


@pytest.mark.parametrize(("apart", "charts"), [(0.019, 1), (0.021, 2)])
def test_documents_are_shown_in_thirds_where_their_curves_differ(apart: float, charts: int) -> None:
    sample = ClickLog.of(features=[[1.0], [2.0], [3.0]], documents=[0, 1, 2], offsets=[0, 3], clicks=[1, 0, 0])
    ratios = np.array([[1.0, 0.5], [1.0, 0.5], [1.0, 0.5 + apart]])
    ranker = SimpleNamespace(click_ratios=lambda log, name: ratios, score=lambda features: features[:, 0])
    subject: Any = SimpleNamespace(
        name="new",
        ranker=ranker,
        embeddings=None,
        knows=lambda factor: True,
        is_bound=False,
        manifest=SimpleNamespace(method="dla", origin=None),
    )
    inputs: Any = SimpleNamespace(subject=subject, click_models=[subject], models=[subject])
    factor: Any = SimpleNamespace(name="position")
    assert len(_by_level(inputs, sample, factor)) == charts


def test_the_share_of_two_directions_is_that_of_their_squared_singular_values() -> None:
    relevance = np.diag([3.0, 2.0, 1.0])
    embeddings = SimpleNamespace(
        relevance=lambda features: relevance,
        observation=lambda: {"position": np.eye(3)},
        base_vectors=lambda features, offsets: np.ones((1, 3)),
    )
    judged = JudgedLists.of(features=np.eye(3), labels=[0, 1, 2], offsets=[0, 3])
    inputs: Any = SimpleNamespace(
        models=[SimpleNamespace(name="new", embeddings=embeddings)], judged=judged, judged_name="test", log=None
    )
    found = plane(inputs)
    assert found is not None
    assert found.numbers["new"]["share_of_two_directions"] == pytest.approx((9 + 4) / (9 + 4 + 1))


def test_the_gap_closed_goes_from_raw_clicks_to_labels() -> None:
    def model(name: str, method: str) -> Any:
        bound = method in ("click", "label")
        return SimpleNamespace(name=name, manifest=SimpleNamespace(method=method), is_bound=bound)

    models = [model("raw", "click"), model("new", "dla"), model("labels", "label")]
    values = {"raw": 0.6, "new": 0.7, "labels": 0.8}
    found: Any = {name: SimpleNamespace(mean=lambda measure, value=value: value) for name, value in values.items()}
    inputs: Any = SimpleNamespace(models=models)
    assert _gaps(inputs, found) == pytest.approx({"raw": 0.0, "new": 0.5, "labels": 1.0})
    inputs = SimpleNamespace(models=models[:2])
    assert _gaps(inputs, {name: found[name] for name in ("raw", "new")}) == {}


def test_raw_clicks_are_the_rival_wherever_they_stand() -> None:
    def model(name: str, method: str) -> Any:
        ranker = SimpleNamespace(factors=("position",))
        return SimpleNamespace(name=name, manifest=SimpleNamespace(method=method), ranker=ranker, is_bound=False)

    new, other, raw = model("new", "dla"), model("other", "upe"), model("raw", "click")
    for models, rival in (((new, other, raw), "raw"), ((new, raw, other), "raw"), ((new, other), "other")):
        found = ReportInputs(models, chosen="new").rival
        assert found is not None
        assert found.name == rival
    assert ReportInputs((new,), chosen="new").rival is None


@pytest.mark.parametrize(("name", "short"), [("abcde", "abcde"), ("abcdef", "abcd…")])
def test_long_names_are_cut_to_their_start(name: str, short: str) -> None:
    assert brief_start(name, 5) == short
