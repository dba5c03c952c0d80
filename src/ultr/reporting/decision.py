"""The first screen: what changes for users, what it brings, how sure that is, what can go wrong, what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from shlex import join, quote, split
from typing import Any

import numpy as np

from ultr.bias.scalar_test import CLAIMS
from ultr.counted import counted
from ultr.evaluation.comparison import AS_SHOWN
from ultr.evaluation.relative_gain import relative_gain
from ultr.metrics.exposure import ExposureShift
from ultr.metrics.intervals import Interval
from ultr.pages import Section, Table, Verdict, sentences
from ultr.reporting.inputs import MAIN, ReportInputs
from ultr.reporting.moved import Moved

HEADS = 3
"""Head queries that are shown before and after."""
TOP = 5
"""Places of each that are shown."""
LOSERS = 5
"""Queries with the largest estimated loss that are shown."""
LARGE_SHIFT = 10.0
"""From this factor on, a document gets so much more or less exposure that a limit is worth a thought."""


@dataclass(frozen=True, eq=False)
class ExpectedGain:
    """Clicks, or value, that a ranker is expected to bring against the order that users see today."""

    verdict: Verdict
    percent: Interval | None
    """Change as a share of today's; None where there is no estimate."""
    reason: str
    """The reason why it cannot be told, if it cannot."""
    clicks: float
    effective_clicks: float
    value_of: str = ""
    """The value that it is a gain in, such as `1 click + 20 purchase`; empty if in clicks."""
    stopped: str = ""
    """Words on users who stop after a click, whose clicks say that a ranking is better and not by how much."""
    sized: bool = True
    """False if bias that differs between documents is in the estimate: it says whether, and not how much."""

    @classmethod
    def of(cls, inputs: ReportInputs) -> ExpectedGain | None:
        """The gain of the subject; None without a log that it could be measured on."""
        found = inputs.against_shown
        if found is None:
            return None
        answer, value = found.value_against_shown, found.values.get(found.names[1])
        stopped = found.assumption.stopped
        sized = answer.sized and (answer.adjusted or not found.assumption.rejected)
        return cls(
            verdict={found.names[1]: Verdict.GOOD, None: Verdict.UNKNOWN}.get(answer.winner, Verdict.BAD),
            percent=relative_gain(answer.difference, found.unseen.log, inputs.value) if sized and not stopped else None,
            reason=answer.reason if answer.winner is None else "",
            clicks=0.0 if value is None else value.clicks,
            effective_clicks=0.0 if value is None else value.effective_clicks,
            value_of=found.value_of,
            stopped=stopped,
            sized=sized,
        )

    def sentence(self, name: str) -> str:
        """The gain in a sentence that can be read once."""
        what = f"value ({self.value_of})" if self.value_of else "clicks"
        if self.stopped and self.verdict is not Verdict.UNKNOWN:
            when = "sooner" if self.verdict is Verdict.GOOD else "later"
            return f"Expected: with {name}, users find what they click {when} than with the order that they see today."
        fewer = "less" if self.value_of else "fewer"
        more = "more" if self.verdict is Verdict.GOOD else fewer
        if self.verdict is not Verdict.UNKNOWN and not self.sized:
            return (
                f"Expected: {more} {what} with {name} than with the order that users see today; by how much, this log "
                "cannot tell."
            )
        if self.verdict is Verdict.UNKNOWN or self.percent is None:
            return f"Whether {name} would bring more {what} than the order that users see today, this log cannot tell."
        low, high = sorted((abs(self.percent.low), abs(self.percent.high)))
        change = f"{low:.0%} to {high:.0%}" if f"{low:.0%}" != f"{high:.0%}" else f"{low:.1%} to {high:.1%}"
        return f"Expected: {change} {more} {what} with {name} than with the order that users see today."

    def as_json(self) -> dict[str, Any]:
        """Every number."""
        return asdict(self) | {"verdict": str(self.verdict), "value_of": self.value_of or "clicks"}


def decision(inputs: ReportInputs) -> Section:
    """The facts for a person who decides whether the subject goes to users."""
    name, log = inputs.subject.name, inputs.log
    gain, moved = ExpectedGain.of(inputs), inputs.moved
    title = f"Is {name} better for users?"
    if log is None:
        return Section(
            title,
            "What it would change for users, and what that would bring, needs the clicks of users.",
            advice="Give the log with --log FOLDER.",
            parts=[_by_labels(inputs)] if inputs.leads else [],
            name="decision",
        )
    shift = inputs.shift
    losing, counted = _losing(inputs), "clicks" if inputs.value is None else "value"
    parts = [
        Section("What changes for users?", _changes(moved)),
        *([] if gain is None else [_expected(inputs, gain)]),
        *([_by_labels(inputs)] if inputs.leads else []),
        Section("What can go wrong?", _risk(shift, losing, counted), tables=_losing_table(losing, counted)),
    ]
    return Section(
        title,
        verdict=None if gain is None else gain.verdict,
        word="" if gain is None else {Verdict.GOOD: "yes", Verdict.BAD: "no"}.get(gain.verdict, "cannot tell"),
        parts=parts,
        numbers={
            "expected_gain": None if gain is None else gain.as_json(),
            "another_first": _share(moved, 1),
            "other_first_three": _share(moved, 3),
            "exposure_shift": vars(shift),
            "queries_that_lose": None if losing is None else vars(losing),
        },
        name="decision",
    )


def heads(inputs: ReportInputs) -> Section | None:
    """The queries with the most impressions, before and after; None without a log."""
    if inputs.log is None:
        return None
    found = sorted(inputs.moved, key=lambda moved: (-moved.pages, moved.query))[:HEADS]
    sides = ("today", f"by {inputs.subject.name}")
    return Section(
        "What do the most frequent queries look like, today and then?",
        "Those with several results, each with the list that was shown most for it. The share is how often a result "
        "was clicked there."
        + (
            "" if inputs.document_ids is not None else " This log has no ids of documents; they go by their rows in it."
        ),
        tables=[
            Table(
                f"query {moved.query}: {counted(moved.pages, 'impression')}, "
                + ("" if moved.pages == 1 else f"{moved.impressions:,} of them ")
                + "with this list",
                moved.rows(sides, inputs.names(moved.documents), most=TOP),
            )
            for moved in found
        ],
        numbers=[{"query": moved.query, "impressions": moved.pages, "distance": moved.distance} for moved in found],
        name="heads",
    )


def _training(inputs: ReportInputs) -> str:
    """The command that trained the subject, without its folder; the shortest one where it is not known."""
    manifest = inputs.subject.manifest
    if manifest.origin is None:
        return f"ultr train {manifest.method} --log {quote(inputs.log_name)}"
    words = split(manifest.origin.command)
    for option in ("--out", "--safe"):
        if option in words:
            del words[words.index(option) : words.index(option) + 2]
    return join(words)


def next_steps(inputs: ReportInputs) -> list[str]:
    """Things to do, in order."""
    gain, folder = ExpectedGain.of(inputs), str(inputs.subject.folder)
    if gain is None:
        return []
    shift, limit = inputs.shift, []
    if max(shift.growth, shift.fall) >= LARGE_SHIFT:
        again = f"{_training(inputs)} --safe auto --out {quote(f'{folder}-safe')}"
        limit = [f"Limit how far documents may move, if that matters: {again}"]
    if gain.verdict is Verdict.BAD:
        return ["Keep the order of today.", "Find out why: the sections below, and ultr doctor on the log."]
    if gain.verdict is Verdict.GOOD:
        measured = "look at where they click" if gain.stopped else "count their clicks"
        losers = "" if _losing(inputs) is None else ", and at those that may lose"
        return [
            f"Look at the most frequent queries below{losers}.",
            *limit,
            f"Show it to a small part of the users and {measured}: ultr export {quote(folder)}, then ultr serve.",
        ]
    return [
        "Do not replace the order of today for all users on this evidence.",
        *limit,
        "Let users decide: show both orders, each to a part of them, or log some swaps and train again.",
    ]


@dataclass(frozen=True, eq=False)
class Losing:
    """Queries that would get fewer clicks, or less value, by the estimate."""

    queries: int
    of: int
    """Queries that were looked at."""
    share_of_pages: float
    worst: Sequence[tuple[str, float, float, float]]
    """Query, pages, clicks or value a page today and expected, from the largest loss."""


def _losing(inputs: ReportInputs) -> Losing | None:
    found = inputs.against_shown
    # With trust bias taken off, there is an estimate for all queries together and none for each; and where users stop
    # after a click, a query with a better order need not get more clicks.
    if found is None or not found.values or found.value_against_shown.adjusted or found.assumption.stopping:
        return None
    log, new, old = found.unseen.log, found.values[found.names[1]], found.values[AS_SHOWN]
    change, pages = new.totals - old.totals, new.bases
    names = log.query_ids[np.unique(log.queries)]
    worst = [row for row in np.argsort(change, kind="stable")[:LOSERS] if change[row] < 0]
    return Losing(
        queries=int((change < 0).sum()),
        of=len(change),
        share_of_pages=float(pages[change < 0].sum() / pages.sum()),
        worst=[
            (
                str(names[row]),
                float(pages[row]),
                float(old.totals[row] / pages[row]),
                float(new.totals[row] / pages[row]),
            )
            for row in worst
        ],
    )


def _losing_table(losing: Losing | None, counted: str) -> Sequence[Table]:
    if losing is None or not losing.worst:
        return ()
    rows = [
        {"query": query, "pages": f"{pages:,.0f}", f"{counted} a page today": f"{old:.2f}", "expected": f"{new:.2f}"}
        for query, pages, old, new in losing.worst
    ]
    return [Table("queries that may lose most", rows, folded=True)]


def _changes(moved: Sequence[Moved]) -> str:
    if not any(each.distance for each in moved):
        return "Nothing: the order is the same for every query that was looked at."
    return (
        f"On {_share(moved, 1):.0%} of pages another result stands first, and on {_share(moved, 3):.0%} the first "
        f"three are not the same three. ({counted(len(moved), 'query', 'queries')} with several results, each with the "
        "list that was shown most for it.)"
    )


def _share(moved: Sequence[Moved], top: int) -> float:
    """Share of pages whose first places hold other documents, each query counted by all of its pages."""
    pages = sum(each.pages for each in moved)
    other = sum(each.pages for each in moved if set(each.order[:top].tolist()) != set(range(len(each.order[:top]))))
    return other / max(pages, 1)


def _expected(inputs: ReportInputs, gain: ExpectedGain) -> Section:
    found = inputs.against_shown
    assert found is not None
    said = [gain.sentence(inputs.subject.name)]
    if gain.verdict is Verdict.UNKNOWN:
        said.append(sentences([gain.reason]))
    elif gain.stopped:
        said.append(sentences([gain.stopped]))
    elif not gain.sized:
        said.append(
            "Groups of documents lose clicks by position in different ways, as where users trust high places, so that "
            "differences look larger than they are; with more pages, the log may say by how much."
        )
    elif gain.percent is not None:
        said.append(f"The best estimate is {gain.percent.mean:+.0%}; 19 such ranges in 20 hold the truth.")
    if gain.clicks:
        said.append(
            f"It rests on {gain.clicks:,.0f} clicks of {found.unseen.name}, as good as {gain.effective_clicks:,.0f} "
            "clicks of equal weight: each counts by how seldom its place is looked at. No user has seen the new order "
            "yet."
        )
    if (rejected := found.assumption.rejected) is not False:
        allowed = ", which the estimate allows for as far as the log shows it"
        so = f" to describe these users{allowed if gain.sized else ''}"
        said.append(sentences([CLAIMS[rejected] + (so if rejected else "")]))
    asked = "How much more value" if gain.value_of else "How many more clicks"
    if gain.stopped:
        asked = "Do users find sooner"
    elif not gain.sized:
        asked = "Is there more value" if gain.value_of else "Are there more clicks"
    if gain.value_of:
        said.append("What follows a click is assumed not to depend on the place of the click.")
    elif inputs.subject.ranker.options.get("value"):
        said.append(f"{inputs.subject.name} ranks by a value that this log has no signals of; this is about clicks.")
    return Section(f"{asked}, and how sure is that?", " ".join(said), advice=" ".join(found.unseen.remarks))


def _by_labels(inputs: ReportInputs) -> Section:
    """The lead over the others by labels."""
    own = inputs.evaluations[inputs.subject.name].mean(MAIN)
    said = [
        f"{'better' if test.difference > 0 else 'worse'} than {other} by "
        f"{abs(test.difference) / (own - test.difference):.1%}"
        + ("" if test.low > 0 or test.high < 0 else ", which may be chance")
        for other, test in inputs.leads.items()
    ]
    text = f"By {MAIN} on {inputs.judged_name}, {inputs.subject.name} is {'; '.join(said)}."
    return Section("What do people say who judged results?", text)


def _risk(shift: ExposureShift, losing: Losing | None, counted: str) -> str:
    said = (
        f"In the most frequent list of each query, half of the results get at most {shift.median:.1f} times as much or "
        f"as little attention as today; the one that rises most gets {shift.growth:.1f} times as much, the one that "
        f"falls most 1/{shift.fall:.1f}."
    )
    if losing is not None and losing.of:
        said += (
            f" By the same estimate, {losing.queries:,} of {losing.of:,} queries, with {losing.share_of_pages:.0%} of "
            f"the pages, would get {'less' if counted == 'value' else 'fewer'} {counted}; for a single query that is a "
            "guess."
        )
    return said
