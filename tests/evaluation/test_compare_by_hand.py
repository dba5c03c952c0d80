"""Comparisons on logs of a few documents, with whole sentences and all numbers computed beside them."""

from __future__ import annotations

from dataclasses import asdict, replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Doubles, Floats, Integers
from ultr.data.click_log import ClickLog
from ultr.data.provenance import Provenance
from ultr.errors import DataError, OptionError
from ultr.evaluation import (
    Assumption,
    Candidates,
    Comparison,
    CounterfactualValue,
    Evidence,
    UnseenPart,
    compare,
    evaluate,
)
from ultr.evaluation.comparison import QUESTIONS, _likelihood_answers, ranked
from ultr.evaluation.placement import placement_of
from ultr.evaluation.raw_clicks import beside_raw_clicks
from ultr.evaluation.trial import CANNOT_TELL, Answer, Certainty
from ultr.metrics import Interval, bootstrap_ratio
from ultr.pages import Verdict

COMPARISON = import_module("ultr.evaluation.comparison")
THETA = (1.0, 0.5)
UNTESTED = Assumption(None, None, "Not tested.")
QUERIES = 40


class By:
    """A ranker by one feature, with one probability of a click for every document."""

    provenance = Provenance()

    def __init__(self, sign: float = 1.0, chance: float = 0.2) -> None:
        self.sign, self.chance = sign, chance

    def score(self, features: Floats, offsets: Integers) -> Floats:
        return np.float32(self.sign) * features[:, 0]

    def click_shares(self, log: ClickLog) -> Doubles:
        return 1 / np.repeat(log.lengths, log.lengths)

    def click_probabilities(self, log: ClickLog) -> Doubles:
        return np.full(len(log.clicks), self.chance)


DOWN, UP = By(-1.0, 0.2), By(1.0, 0.3)


def still(queries: int = QUERIES, *, clicks: tuple[int, int] = (4, 3), impressions: int = 10) -> ClickLog:
    """Two documents a query, always in one order; the last query has no click on its second one."""
    counted = np.tile(clicks, queries)
    counted[-1] = 0
    return ClickLog.of(
        features=np.tile([[1.0], [2.0]], (queries, 1)),
        documents=np.arange(2 * queries),
        offsets=np.arange(0, 2 * queries + 1, 2),
        clicks=counted,
        impressions=np.full(queries, impressions),
        queries=[f"{query:02}" for query in range(queries)],
    )


def compared(log: ClickLog | None = None, **options: Any) -> Comparison:
    given: dict[str, Any] = {"propensities": THETA, "assumption": UNTESTED} | options
    return compare(DOWN, UP, still() if log is None else log, **given)


def test_two_rankers_on_forty_queries_by_hand() -> None:
    """Of each query: theta times relevance at the ranks, relevance being clicks over theta where it was shown."""
    found = compared()
    assert (found.names, found.interval_name, found.explored, found.exploration) == (("A", "B"), "95% interval", 0, "")
    assert found.unseen.name == "all 40 queries of the log, which neither model was trained on"
    assert found.propensities is not None
    assert found.propensities.tolist() == list(THETA)
    lower = np.array([3.0] * 39 + [0.0])
    # As logged: 4 + 3 clicks; turned around: 3 / 0.5 first and 4 second at 0.5.
    kept, turned, shown = np.full(40, 4.0) + lower, lower / 0.5 + 2.0, np.full(40, 10.0)
    lead = bootstrap_ratio(turned - kept, shown)
    numbers = f"{lead.mean:+.4f}, 95% interval {lead.low:+.4f} to {lead.high:+.4f}"
    assert found.value == Answer(
        "B is better", f"the difference in expected clicks on an impression is {numbers}", "B", lead
    )
    assert found.value_against_shown == found.value
    assert list(found.values) == ["A", "B", "the lists as shown"]
    assert [value.value for value in found.values.values()] == pytest.approx(
        [kept.sum() / 400, turned.sum() / 400, kept.sum() / 400]
    )
    assert found.value_by_placement is None
    assert found.assumption is UNTESTED


def test_predictions_are_compared_by_what_they_say_of_clicks_and_skips() -> None:
    found = compared()
    clicks = np.array([7.0] * 39 + [4.0])
    said = [clicks * np.log(chance) + (20 - clicks) * np.log(1 - chance) for chance in (0.2, 0.3)]
    lead = bootstrap_ratio(said[1] - said[0], np.full(40, 20.0))
    assert found.likelihood.difference is not None
    for name in ("mean", "low", "high"):
        assert getattr(found.likelihood.difference, name) == pytest.approx(getattr(lead, name))
    assert found.likelihood.winner == "B"
    assert found.likelihood.reason == (
        f"the difference in log-likelihood of a click or skip is {lead.mean:+.4f}, 95% interval {lead.low:+.4f} to "
        f"{lead.high:+.4f}"
    )
    assert found.list_likelihood.reason == (
        "the difference in log-likelihood of a click among its list is +0.0000, 95% interval +0.0000 to +0.0000, "
        "which holds 0"
    )
    turned = compare(UP, DOWN, still(), propensities=THETA, assumption=UNTESTED)
    assert turned.likelihood.winner == "A"
    assert turned.likelihood.difference is not None
    assert turned.likelihood.difference.mean == pytest.approx(-lead.mean)


def test_another_level_and_several_looks_reach_every_answer() -> None:
    plain, sure, often = compared(), compared(level=0.99), compared(looks=5)
    assert (sure.interval_name, often.interval_name) == ("99% interval", "95% interval for 5 looks")
    for field in ("value", "value_against_shown", "likelihood"):
        widths = [
            interval.high - interval.low
            for each in (plain, sure, often)
            if (interval := getattr(each, field).difference) is not None
        ]
        assert widths[0] < widths[1]
        assert widths[0] < widths[2]


def test_without_swaps_or_propensities_three_answers_are_missing() -> None:
    found = compared(propensities=None)
    assert (found.values, found.propensities) == ({}, None)
    unknown = {found.value, found.value_against_shown, found.value_against_raw_clicks}
    assert [answer.verdict for answer in unknown] == [CANNOT_TELL]
    assert found.value.reason.startswith("the propensities are not identified: no chain of clicked documents")
    assert found.likelihood.winner == "B"
    assert found.section().advice == (
        "Not tested.\n\nGive --propensities, or a log with swaps, to compare the rankings themselves."
    )


def test_who_does_not_predict_clicks_is_named() -> None:
    silent = SimpleNamespace(provenance=Provenance(), score=DOWN.score)
    found = compare(UP, silent, still(), propensities=THETA, assumption=UNTESTED)
    assert found.likelihood == found.list_likelihood == Answer(CANNOT_TELL, "B does not predict clicks")

    class Refusing(By):
        def click_shares(self, log: ClickLog) -> Doubles:
            raise OptionError("no model of clicks")

    answers = _likelihood_answers({"A": Refusing(), "B": UP}, still(), Certainty(), seed=0)
    assert answers == (Answer(CANNOT_TELL, "A does not predict these clicks: no model of clicks"),) * 2


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"names": ("x", "x")}, OptionError, "the two rankers need different names, got 'x' twice"),
        ({"looks": 0}, OptionError, "looks must be an integer of at least 1"),
        (
            {"swaps": still(39)},
            DataError,
            "swaps must come from a log with the query ids of the log that rankers are compared on",
        ),
        (
            {"log": still(clicks=(0, 0))},
            DataError,
            "the log has no click, so there is nothing to compare rankers by",
        ),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    options: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        compared(**options)
    assert str(caught.value).startswith(sentence)


def test_the_log_is_tested_where_nobody_has_done_so(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = []

    class Stub:
        @staticmethod
        def of_log(log: ClickLog, *, seed: int) -> Assumption:
            tested.append((log, seed))
            return UNTESTED

    monkeypatch.setattr(COMPARISON, "Assumption", Stub)
    log, other = still(), still(clicks=(5, 2))
    compare(DOWN, UP, log, propensities=THETA, seed=4)
    compare(DOWN, UP, log, propensities=THETA, swaps=other)
    compare(DOWN, UP, log, propensities=THETA, assumption=UNTESTED)
    assert tested == [(log, 4), (other, 0)]


def explored(share: float = 1.0) -> ClickLog:
    """Each of forty queries with its two documents exchanged on a quarter of the pages, most of it by exploration."""
    orders = np.array([[0, 1], [1, 0]])
    documents = (2 * np.arange(QUERIES)[:, None, None] + orders).reshape(-1)
    chances = np.tile([0.75, 0.75, 0.25, 0.25], QUERIES)
    chances[: round(4 * QUERIES * (1 - share))] = 1.0
    return ClickLog.of(
        features=np.tile([[1.0], [2.0]], (QUERIES, 1)),
        documents=documents,
        offsets=np.arange(0, 4 * QUERIES + 1, 2),
        clicks=np.tile([6, 6, 8, 1], QUERIES),
        impressions=np.tile([30, 10], QUERIES),
        queries=np.repeat([f"{query:02}" for query in range(QUERIES)], 2),
        placement_propensities=chances,
        base_positions=np.tile([1, 2, 2, 1], QUERIES),
    )


def test_placements_by_exploration_answer_without_propensities() -> None:
    """Turned: 8 clicks on the second at the first place and 1 on the first at the second, each over a quarter."""
    found = compared(explored(), propensities=None)
    placed = found.value_by_placement
    assert placed is not None
    assert placed.difference is not None
    assert placed.difference.mean == pytest.approx(((8 + 1) / 0.25 - (6 + 6) / 0.75) / 40)
    assert placed.winner == "B"
    assert found.explored == 40 * 80
    assert found.exploration == (
        "Propensities come from 3,200 placements by exploration, weighted by their logged probabilities, and not from "
        "the places that rankings gave to documents."
    )
    assert found.section().advice.split("\n\n") == [
        "Not tested.",
        found.exploration,
        f"By placements of exploration alone, without propensities: B is better; {placed.reason}.",
    ]
    assert found.as_json()["value_by_placement"] == asdict(placed)
    given = compared(explored())
    assert (given.explored, given.exploration) == (0, "")
    assert given.value_by_placement is not None


def test_placements_are_used_if_some_were_by_exploration_and_candidates_are_those_shown() -> None:
    log = explored(share=0.5)
    assert log.placements is not None
    assert not log.placements.explored.all()
    assert compared(log).value_by_placement is not None
    assert compared(log, candidates=Candidates.shown(log)).value_by_placement is None
    assert compared(explored(share=0.0)).value_by_placement is None


def test_raw_clicks_rank_each_half_of_the_pages_by_the_rates_of_the_other() -> None:
    """The rates of the other half, counted by a loop; a document that it does not show has none."""
    random = np.random.default_rng(0)
    orders = np.array([[0, 1, 2], [2, 1, 0], [3, 0, 1]])
    documents = (4 * np.arange(30)[:, None, None] + orders).reshape(-1)
    impressions = random.integers(1, 8, size=90)
    log = ClickLog.of(
        features=np.arange(120.0)[:, None],
        documents=documents,
        offsets=np.arange(0, 271, 3),
        clicks=random.binomial(np.repeat(impressions, 3), 0.5),
        impressions=impressions,
        queries=np.repeat([f"{query:02}" for query in range(30)], 3),
    )
    evidence = Evidence.of(log)
    ours, raw = beside_raw_clicks(evidence.documents.astype(np.float64), evidence, log, None, None, seed=1)
    shown = [part.impressions.sum() for _, part in ours]
    assert sum(shown) == impressions.sum()
    # A coin for each page: three standard deviations.
    assert abs(shown[0] / sum(shown) - 0.5) < 1.5 / np.sqrt(sum(shown))
    for number in range(2):
        part, other = raw[number][1], raw[1 - number][1]
        rates: dict[tuple[int, int], float] = {}
        for piece in other.parts():
            times = np.bincount(piece.shown, piece.times, minlength=len(piece.documents))
            for place, document in enumerate(piece.documents.tolist()):
                query = int(other.query_numbers[piece.queries][piece.of_query[place]])
                rates[query, document] = piece.clicks[place] / times[place] if times[place] else 0.0
        queries = np.repeat(part.query_numbers, np.diff(part.offsets))
        expected = [rates.get((int(q), int(d)), 0.0) for q, d in zip(queries, part.documents, strict=True)]
        placed: Any = raw[number][0]
        assert placed.same_as(placement_of(np.array(expected), part))
        kept: Any = ours[number][0]
        assert kept.same_as(placement_of(part.documents.astype(np.float64), part))


def test_each_page_falls_on_either_half_by_a_coin() -> None:
    log = still(impressions=400)
    evidence = Evidence.of(log)
    ours, _ = beside_raw_clicks(np.zeros(80), evidence, log, None, None, seed=0)
    shown = [part.impressions.sum() for _, part in ours]
    # Four standard deviations of 16,000 coins.
    assert shown[0] / 16_000 == pytest.approx(0.5, abs=2 / np.sqrt(16_000))
    assert sum(shown) == 16_000


def test_pages_that_share_no_clicked_document_cannot_be_halved() -> None:
    """Every list was shown once, so that each is in one half, and each query has one list."""
    log = still(60, clicks=(1, 0), impressions=1)
    found = compared(log)
    assert found.value_against_raw_clicks == Answer(
        CANNOT_TELL,
        "the pages cannot be halved to rank by raw clicks: no clicked document was shown in both halves",
    )


def answered(verdict: str, reason: str, winner: str | None, mean: float | None) -> Answer:
    return Answer(verdict, reason, winner, None if mean is None else Interval(mean, mean - 0.1, mean + 0.1))


YES = answered("new is better", "the difference is large", "new", 0.5)
NO = answered("old is better", "the difference is small", "old", -0.5)
OPEN = answered(CANNOT_TELL, "nothing tells", None, None)


def built(name: str = "new", **changes: Any) -> Comparison:
    value = CounterfactualValue(np.array([3.0, 1.0]), np.array([2.0, 2.0]), 4.0, 3.0, 0.25, 0.125)
    given: dict[str, Any] = {
        "value": YES,
        "value_against_shown": NO,
        "value_against_raw_clicks": OPEN,
        "likelihood": YES,
        "list_likelihood": NO,
        "values": {name: value},
        "propensities": np.array([1.0, 0.5]),
        "assumption": UNTESTED,
        "unseen": UnseenPart(still(), f"what {name} has not seen", (f"{name} is young",), (f"{name} is small",)),
        "names": ("old", name),
    }
    return Comparison(**(given | changes))


def test_answers_with_the_same_word_and_reason_stand_together() -> None:
    assert [(part.title, part.answer, part.verdict, part.word) for part in built().parts()] == [
        (
            "new ranks better than old, predicts clicks and skips better than old",
            "The difference is large.",
            Verdict.GOOD,
            "yes",
        ),
        (
            "new ranks better than the lists as shown, predicts which of a list is clicked better than old",
            "The difference is small.",
            Verdict.BAD,
            "no",
        ),
        (
            "new ranks better than raw clicks (rates on other pages)",
            "Nothing tells.",
            Verdict.UNKNOWN,
            CANNOT_TELL,
        ),
    ]


def test_a_comparison_as_numbers() -> None:
    found = built()
    interval = found.values["new"].interval()
    assert found.as_json() == {
        "compared_on": "what new has not seen",
        "value_of": "clicks",
        "warnings": ("new is young",),
        "notes": ("new is small",),
        "propensities": [1.0, 0.5],
        "placements_by_exploration": 0,
        "value_by_placement": None,
        "one_number_for_each_position": {
            "rejected": None,
            "p_value": None,
            "sentence": "Not tested.",
            "stopping": 0.0,
        },
        "values": {
            "new": {
                "mean": 1.0,
                "low": interval.low,
                "high": interval.high,
                "clicks": 4.0,
                "effective_clicks": 3.0,
                "clipped": 0.25,
                "unsupported": 0.125,
            }
        },
        "answers": {field: asdict(getattr(found, field)) for field in QUESTIONS},
    }
    assert built(propensities=None).as_json()["propensities"] is None


def test_the_section_of_a_comparison_word_for_word() -> None:
    section = built(value_by_placement=NO, explored=1_234).section()
    assert section.answer == "new is better: the difference is large\n\nCompared on what new has not seen."
    assert section.advice.split("\n\n") == [
        "Warning: new is young.",
        "Note: new is small.",
        "Not tested.",
        "Propensities come from 1,234 placements by exploration, weighted by their logged probabilities, and not from "
        "the places that rankings gave to documents.",
        "By placements of exploration alone, without propensities: old is better; the difference is small.",
    ]
    assert [table.title for table in section.tables] == [
        "value, 95 % intervals with the propensities taken for known",
        "answers, 95 % intervals",
    ]
    rows = section.tables[1].rows
    assert [row["new ..."] for row in rows] == [question.format(a="old") for question in QUESTIONS.values()]
    assert [row["answer"] for row in rows] == ["yes", "no", CANNOT_TELL, "yes", "no"]


def test_one_ranker_needs_no_warning_about_many_and_two_do() -> None:
    alone, both = ranked([built()]), ranked([built("a", value=NO), built("b", value=replace(YES, winner="b"))])
    few = "Warning: {0} is young.\n\nNote: {0} is small.\n\nNot tested."
    assert alone.advice == few.format("new")
    assert both.advice == few.format("a") + (
        "\n\nEach interval holds for itself: with 2 rankers, one may be beyond chance by chance, and the best looks "
        "better than it is."
    )
    said = "new ranks better than old.\n\nCompared on what new has not seen."
    assert (alone.title, alone.answer) == ("Which ranks better than old?", said)
    better, worse = "b ranks better than old", "a ranks worse than old"
    assert (
        both.answer == f"{better}; {worse}; they were not compared with each other.\n\nCompared on what a has not seen."
    )
    (table,) = both.tables
    assert table.title == "against old, 95 % intervals"
    assert [row["ranker"] for row in table.rows] == ["b", "a"]
    assert table.rows[1] == {
        "ranker": "a",
        "better than old": "no",
        "by": "-0.5000",
        "low": "-0.6000",
        "high": "-0.4000",
        "predicts clicks better": "no",
        "better than as shown": "no",
    }


def test_other_features_than_the_log_has_are_refused() -> None:
    other = By()
    other.feature_names = ("bm25", "age")  # type: ignore[attr-defined]
    with pytest.raises(DataError) as caught:
        compare(UP, other, still(), propensities=THETA, assumption=UNTESTED)
    assert str(caught.value) == (
        "a ranker knows 2 features, the log has 1 or other names for them; compare on a log with the features that "
        "both were trained for"
    )
    renamed = replace(still(), feature_names=("bm25",))
    same = By()
    same.feature_names = ["bm25"]  # type: ignore[attr-defined]
    assert compare(UP, same, renamed, propensities=THETA, assumption=UNTESTED).values


def test_frames_are_sent_to_what_makes_logs_and_judged_lists_of_them() -> None:
    frame: Any = {"query": ["a"]}
    with pytest.raises(OptionError, match=r"by a ClickLog, got dict; make one with ultr\.read_log"):
        compare(By(), By(-1.0), frame)
    with pytest.raises(
        OptionError, match=r"on JudgedLists, got dict; make them with JudgedLists\.of, ultr\.read_table"
    ):
        evaluate(By(), frame)


def test_if_nobody_is_told_to_be_better_or_worse_it_is_said_first() -> None:
    unknown = Answer(CANNOT_TELL, "the log does not tell")
    found = ranked([built("a", value=unknown), built("b", value=unknown)])
    assert found.answer.startswith(
        "none is told to rank better or worse than old; they were not compared with each other."
    )
