"""The first screen of a report: what its words rest on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.reporting.runs import by_clicks, by_labels, log, saved

from ultr.data.signal import Signal
from ultr.evaluation.comparison import AS_SHOWN
from ultr.metrics.exposure import ExposureShift
from ultr.metrics.intervals import Interval
from ultr.pages import Verdict
from ultr.reporting import ReportInputs
from ultr.reporting.decision import ExpectedGain, decision, heads, next_steps


def gain(verdict: Verdict, *ends: float) -> ExpectedGain:
    return ExpectedGain(verdict, Interval(*ends) if ends else None, "too little support", 100.0, 50.0)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (gain(Verdict.GOOD, 0.06, 0.04, 0.09), "Expected: 4% to 9% more clicks with model than with the order"),
        (gain(Verdict.BAD, -0.06, -0.09, -0.04), "Expected: 4% to 9% fewer clicks with model than with the order"),
        (gain(Verdict.GOOD, 0.012, 0.011, 0.013), "Expected: 1.1% to 1.3% more clicks"),
        (gain(Verdict.UNKNOWN, 0.06, -0.04, 0.09), "Whether model would bring more clicks"),
        (gain(Verdict.UNKNOWN), "Whether model would bring more clicks"),
    ],
)
def test_the_gain_is_one_sentence_in_per_cent(found: ExpectedGain, words: str) -> None:
    assert found.sentence("model").startswith(words)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> ReportInputs:
    models = saved(tmp_path_factory.mktemp("models"), "vectors", "raw", graded=False)
    return ReportInputs(models, log=log(graded=False), samples=10, draws=19, log_name="log")


def test_the_share_is_that_of_the_clicks_of_today(inputs: ReportInputs) -> None:
    found, compared = ExpectedGain.of(inputs), inputs.against_shown
    assert found is not None
    assert compared is not None
    part, lead = compared.unseen.log, compared.value_against_shown.difference
    assert lead is not None
    assert found.percent is not None
    today = part.clicks.sum() / part.impressions.sum()
    assert found.percent.mean == pytest.approx(lead.mean / today)
    assert today == pytest.approx(compared.values[AS_SHOWN].value, rel=0.01)
    assert found.clicks == compared.values["vectors"].clicks


def test_without_a_rival_the_gain_is_the_same(inputs: ReportInputs) -> None:
    alone = replace(inputs, models=inputs.models[:1])
    one, other = ExpectedGain.of(alone), ExpectedGain.of(inputs)
    assert one is not None
    assert other is not None
    assert one.percent is not None
    assert other.percent is not None
    assert one.percent.mean == pytest.approx(other.percent.mean, rel=0.2)


def test_what_changes_is_counted_in_pages(inputs: ReportInputs) -> None:
    clicks, ranker = log(graded=False), inputs.subject.ranker
    pages = another = other_three = 0
    for query in np.unique(clicks.queries):
        lists = np.flatnonzero(clicks.queries == query)
        each = lists[np.argmax(clicks.impressions[lists])]
        documents = clicks.documents[clicks.offsets[each] : clicks.offsets[each + 1]]
        order = np.argsort(-ranker.score(clicks.features[documents]).astype(np.float64), kind="stable")
        pages += clicks.impressions[each]
        another += clicks.impressions[each] * (order[0] != 0)
        other_three += clicks.impressions[each] * (set(order[:3].tolist()) != {0, 1, 2})
    numbers = decision(inputs).numbers
    assert numbers["another_first"] == pytest.approx(another / pages)
    assert numbers["other_first_three"] == pytest.approx(other_three / pages)


def test_queries_that_lose_are_those_whose_value_falls(inputs: ReportInputs) -> None:
    compared, losing = inputs.against_shown, decision(inputs).numbers["queries_that_lose"]
    assert compared is not None
    change = compared.values["vectors"].totals - compared.values[AS_SHOWN].totals
    assert losing["queries"] == (change < 0).sum()
    assert losing["of"] == len(change)
    pages = compared.values["vectors"].bases
    assert losing["share_of_pages"] == pytest.approx(pages[change < 0].sum() / pages.sum())
    worst = [new - old for _, pages, old, new in losing["worst"] for old, new in [(old * pages, new * pages)]]
    assert worst == pytest.approx(sorted(change[change < 0])[:5])


def test_the_most_frequent_queries_are_shown_with_ids_and_titles(inputs: ReportInputs) -> None:
    whole = log(graded=False)
    clicks = whole.select(np.random.default_rng(0).random(whole.lists) < 0.7)  # so that some are more frequent
    ids = np.array([f"sku-{row}" for row in range(len(clicks.features))])
    titles = {f"sku-{row}": f"Thing {row}" for row in range(0, len(ids), 2)}
    section = heads(replace(inputs, log=clicks, document_ids=ids, titles=titles))
    assert section is not None
    totals = np.bincount(clicks.queries, clicks.impressions)
    names = [str(clicks.query_ids[query]) for query in range(len(totals))]
    wanted = sorted(names, key=lambda name: (-totals[names.index(name)], name))[:3]
    assert [each["query"] for each in section.numbers] == wanted
    assert [each["impressions"] for each in section.numbers] == sorted(totals.astype(int).tolist(), reverse=True)[:3]
    for table in section.tables:
        assert len(table.rows) == 5
        for row in table.rows:
            number = int(row["today"].rpartition("sku-")[2].rstrip(")"))
            assert row["today"] == (f"sku-{number}" if number % 2 else f"Thing {number} (sku-{number})")


@pytest.mark.parametrize("page", [by_labels, by_clicks])
def test_the_first_screen_comes_first_and_the_rest_is_folded(page: object) -> None:
    found = page()  # type: ignore[operator]
    assert [section.name for section in found.sections[:2]] == ["decision", "heads"]
    assert [section.folded for section in found.sections] == [False, False, *[True] * (len(found.sections) - 2)]
    assert found.steps


def test_without_a_log_the_screen_asks_for_it(tmp_path: Path) -> None:
    bare = ReportInputs(saved(tmp_path, "vectors"))
    assert decision(bare).advice == "Give the log with --log FOLDER."
    assert heads(bare) is None
    assert next_steps(bare) == []


@pytest.mark.parametrize(("growth", "fall", "limited"), [(9.99, 1.0, False), (10.0, 1.0, True), (1.0, 10.0, True)])
def test_a_large_shift_suggests_a_limit(inputs: ReportInputs, growth: float, fall: float, *, limited: bool) -> None:
    moved = replace(inputs)
    moved.__dict__["shift"] = ExposureShift(growth, fall, 1.5)
    moved.__dict__["against_shown"] = inputs.against_shown
    assert any("--safe" in step for step in next_steps(moved)) == limited


@pytest.mark.parametrize(
    ("verdict", "when"), [(Verdict.GOOD, "sooner"), (Verdict.BAD, "later"), (Verdict.UNKNOWN, "cannot tell")]
)
def test_where_users_stop_after_a_click_no_clicks_are_promised(
    inputs: ReportInputs, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, when: str
) -> None:
    compared = inputs.against_shown
    assert compared is not None
    stop = replace(inputs)
    stop.__dict__["against_shown"] = replace(compared, assumption=replace(compared.assumption, stopping=0.4))
    measured = ExpectedGain.of(stop)
    assert measured is not None
    assert measured.percent is None
    found = replace(measured, verdict=verdict)
    monkeypatch.setattr(ExpectedGain, "of", lambda _: found)
    parts = {each.title: each.answer for each in decision(stop).parts}
    said = parts["Do users find sooner, and how sure is that?"]
    assert when in said.partition(".")[0]
    assert "%" not in said.partition(".")[0]
    assert ("About 40% of the users stop after a click" in said) is (verdict is not Verdict.UNKNOWN)
    # By the clicks of single queries nothing can be said of them, either.
    assert "fewer clicks" not in parts["What can go wrong?"]
    assert not any("count their clicks" in step for step in next_steps(stop))


def test_steps_follow_the_verdict(inputs: ReportInputs, monkeypatch: pytest.MonkeyPatch) -> None:
    firsts = {
        Verdict.GOOD: "Look at the most frequent queries below, and at those that may lose.",
        Verdict.BAD: "Keep the order of today.",
        Verdict.UNKNOWN: "Do not replace the order of today for all users on this evidence.",
    }
    for verdict, first in firsts.items():
        monkeypatch.setattr(ExpectedGain, "of", lambda _, verdict=verdict: gain(verdict, 0.1, 0.0, 0.2))
        assert next_steps(inputs)[0] == first


def test_a_ranker_by_value_is_told_by_value_where_the_log_has_its_signals(inputs: ReportInputs) -> None:
    assert inputs.log is not None
    model, *others = inputs.models
    valued = replace(model, ranker=replace(model.ranker, options={**model.ranker.options, "value": {"purchase": 2.0}}))
    bought = replace(inputs.log, signals=(Signal("purchase", inputs.log.clicks // 2),))
    asked = replace(inputs, models=(valued, *others), log=bought)
    found, compared = ExpectedGain.of(asked), asked.against_shown
    assert found is not None
    assert found.percent is not None
    assert compared is not None
    lead, part = compared.value_against_shown.difference, compared.unseen.log
    assert lead is not None
    assert found.percent.mean == pytest.approx(lead.mean / (2 * part.signal("purchase").sum() / part.impressions.sum()))
    assert "value (2 purchase)" in found.sentence("vectors")
    parts = {each.title: each.answer for each in decision(asked).parts}
    assert "What follows a click is assumed" in parts["How much more value, and how sure is that?"]
    assert "less value; for a single query" in parts["What can go wrong?"]
    nothing = replace(asked, log=replace(bought, signals=(Signal("purchase", np.zeros_like(bought.clicks)),)))
    silent = ExpectedGain.of(nothing)
    assert silent is not None
    assert (silent.verdict, silent.percent) == (Verdict.UNKNOWN, None)
    without = {each.title: each.answer for each in decision(replace(asked, log=inputs.log)).parts}
    assert "ranks by a value that this log has no signals of" in without["How many more clicks, and how sure is that?"]


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (Verdict.GOOD, "Expected: 4% to 9% more value (1 cart) with"),
        (Verdict.BAD, "Expected: 4% to 9% less value (1 cart)"),
    ],
)
def test_a_gain_in_value_says_so(verdict: Verdict, words: str) -> None:
    assert replace(gain(verdict, 0.06, 0.04, 0.09), value_of="1 cart").sentence("model").startswith(words)
