"""The part of a log that rankers were not trained on, by the record of what they were trained on."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ultr.arrays import Integers
from ultr.counted import and_list
from ultr.data.click_log import ClickLog
from ultr.data.log_splits import Counted, hashed_queries, lists_held_out, split_pages, with_counts
from ultr.data.provenance import Lineage, Provenance
from ultr.data.split import BY_QUERY, Split
from ultr.errors import SeenDataWarning

SEEN, UNSEEN = 0, 1
"""States of a list; from 2 on they number splits by page, of which the other pages of the list are unseen."""
OTHER_DATA, UNCLEAR = "other data", "unclear"


@dataclass(frozen=True, eq=False)
class UnseenPart:
    """The part of a log that rankers can be measured on, and what must be said about it."""

    log: ClickLog
    name: str
    """A phrase such as `the 30 queries of the log that neither model was trained on`."""
    warnings: tuple[str, ...] = ()
    """Reasons why numbers measured on it are or may be too good."""
    notes: tuple[str, ...] = ()
    """Further facts that a reader of such numbers must know."""

    def warn(self) -> UnseenPart:
        """Give every warning as a `SeenDataWarning`."""
        for sentence in self.warnings:
            warnings.warn(sentence, SeenDataWarning, stacklevel=3)
        return self

    @property
    def remarks(self) -> list[str]:
        """Warnings and notes as sentences for a screen or a page."""
        return [*(f"Warning: {each}." for each in self.warnings), *(f"Note: {each}." for each in self.notes)]


def provenance_of(ranker: object) -> Provenance | None:
    """The record of a ranker, or of that of a fitted estimator; None where there is none."""
    return getattr(getattr(ranker, "ranker_", ranker), "provenance", None)


def trained_on(ranker: object, log: ClickLog) -> bool:
    """True if it is recorded that a ranker was trained on the log or a part of it."""
    provenance = provenance_of(ranker)
    if provenance is None:
        return False
    versions = _versions(log)
    return any(data.cuts_below(versions) is not None for data in provenance.data)


def unseen_part(rankers: Mapping[str, object], log: ClickLog) -> UnseenPart:
    """The part of a log that none of the rankers, given by their names, was trained on.

    The splits that were recorded at training are made again, so the answer is exact. Where a ranker was trained on
    the whole log, where nothing is left, or where the record does not tell, the log is given back with a warning.
    """
    records = {name: provenance_of(ranker) for name, ranker in rankers.items()}
    reading = _Reading(log, _versions(log))
    traces = {
        name: [reading.trace(data) for data in record.data] for name, record in records.items() if record is not None
    }
    unclear, other = (
        [name for name, several in traces.items() if any(trace.relation == relation for trace in several)]
        for relation in (UNCLEAR, OTHER_DATA)
    )
    seen = [name for name, several in traces.items() if any(not trace.states.any() for trace in several)]
    unknown = [name for name, record in records.items() if record is None]
    states, cuts = np.full(log.lists, UNSEEN), set()
    for trace in (trace for several in traces.values() for trace in several):
        # Of a list that two splits by page cut differently, nothing is left.
        both = np.where((states == UNSEEN) | (states == trace.states), trace.states, SEEN)
        states = np.where(trace.states == UNSEEN, states, both)
        cuts.add(trace.cuts)
    part = None if seen else reading.part(states, cuts)
    said = ((_SEEN, seen), (_UNCLEAR, unclear), (_UNKNOWN, unknown))
    warned = [sentence.format(names=_were(names)) for sentence, names in said if names]
    if part is None and not seen:
        warned.insert(0, _NOTHING_LEFT.format(none=_none(len(rankers))))
    notes = [_OTHER.format(names=_were(other))] if other else []
    if part is None:
        return UnseenPart(log, f"all {_queries(log)} of the log", tuple(warned), tuple(notes))
    chosen = [name for name, record in records.items() if record and reading.overlaps(record.validation, states)]
    if chosen:
        notes.append(_CHOSEN.format(names=and_list(chosen)))
    exact = [name for name in traces if name not in (*unclear, *other)]
    return UnseenPart(part, _name(part, log, exact, len(rankers), cuts), tuple(warned), tuple(notes))


_SEEN = "{names} trained on this log, so numbers measured on it are too good; use another log"
_NOTHING_LEFT = (
    "nothing of the log is left that {none} trained on, so numbers measured on it are too good; use another log, "
    "or models that were trained on the same part of it"
)
_UNCLEAR = (
    "the log and what {names} trained on come from one log, but the recorded splits do not tell what they share, so "
    "numbers may be too good; use the log that both were split from, or another one"
)
_UNKNOWN = (
    "what {names} trained on is not recorded, so numbers are too good if it was this log; train again to have it "
    "recorded, or make sure that it was another log"
)
_OTHER = (
    "{names} trained on other data than this log; whether the two share queries is not recorded, and where they do, "
    "numbers may be too good"
)
_CHOSEN = "clicks of this part chose the weights of {names}, so numbers may be a little too good"


def _name(part: ClickLog, log: ClickLog, exact: Sequence[str], count: int, cuts: Collection[Sequence[Split]]) -> str:
    """A phrase for the part that some of the rankers were certainly not trained on."""
    kinds = {(cut.by, cut.part) for several in cuts for cut in several}
    by_query = all(by in BY_QUERY for by, _ in kinds)
    amount = _queries(part) if by_query else f"{part.impressions.sum():,} pages"
    if not exact:
        return f"all {_queries(part)} of the log"
    none = _none(count) if len(exact) == count else f"{_were(exact)} not"
    if part is log:
        return f"all {amount} of the log, which {none} trained on"
    what = "end" if kinds == {("time", "kept")} else amount
    return f"the {what} of the log that {none} trained on"


class _Trace(NamedTuple):
    """The states of the lists of a log, by the lineage of some training data."""

    states: Integers
    cuts: tuple[Split, ...] = ()
    """The cuts that separate the data from the log."""
    relation: str = "exact"


@dataclass(eq=False)
class _Reading:
    """A log beside the records of what was trained on."""

    log: ClickLog
    versions: dict[str, ClickLog]
    pages: dict[Split, Counted] = field(default_factory=dict)
    """The impressions of each list and the clicks of each row that a split by page keeps from training."""
    traces: dict[Lineage, _Trace] = field(default_factory=dict)

    def trace(self, data: Lineage) -> _Trace:
        """Say what is known of the log, given that a ranker was trained on these data."""
        if data not in self.traces:
            self.traces[data] = self._trace(data)
        return self.traces[data]

    def _trace(self, data: Lineage) -> _Trace:
        cuts = data.cuts_below(self.versions)
        if cuts is not None:
            return self._cut_again(data, cuts)
        unseen = np.full(self.log.lists, UNSEEN)
        own = Lineage.of(self.log)
        if own.cuts_below({data.fingerprint}) is not None:
            return _Trace(np.full(self.log.lists, SEEN))
        theirs, ours = data.cuts_below(own.path), own.cuts_below(data.path)
        if theirs and ours and theirs[0].is_apart_from(ours[0]):
            return _Trace(unseen, cuts=theirs[:1])
        if hashed := [cut for cut in data.splits if cut.by == "hash"]:
            return self._by_hash(hashed[0])
        return _Trace(unseen, relation=OTHER_DATA if theirs is None or ours is None else UNCLEAR)

    def _by_hash(self, cut: Split) -> _Trace:
        """Say what a cut by hash of another log kept from training; all other queries may have been trained on."""
        held_out = hashed_queries(self.log, cut.share, seed=cut.seed)
        aside = held_out if cut.part == "kept" else ~held_out
        return _Trace(np.where(aside, UNSEEN, SEEN), (replace(cut, parent=self.log.fingerprint()),))

    def _cut_again(self, data: Lineage, cuts: Sequence[Split]) -> _Trace:
        """Make the recorded cuts again, as far as they can be, and see what falls off.

        A selection, or pages out of pages, only their maker knows. What the cuts before it give holds the training data
        and perhaps more, so what falls off is unseen in any case.
        """
        made: list[Split] = []
        part = self.versions[cuts[0].parent] if cuts else self.log
        numbers, states = np.arange(self.log.lists), np.full(self.log.lists, SEEN)
        for cut in cuts:
            if cut.by == "selection" or (cut.by == "page" and any(earlier.by == "page" for earlier in made)):
                break
            made.append(cut)
            if cut.by == "page":
                kept, held = split_pages(part, cut.share, seed=cut.seed)
                inner, outer = (kept, held) if cut.part == "kept" else (held, kept)
                self.pages.setdefault(cut, outer.put_into(self.log, numbers))
                states[numbers] = 2 + list(self.pages).index(cut)
                inside, part = inner.impressions > 0, with_counts(part, inner, ())
            else:
                held_out = lists_held_out(part, cut.share, by=cut.by, seed=cut.seed)
                inside = ~held_out if cut.part == "kept" else held_out
                states[numbers[~inside]] = UNSEEN
                part = part.part(inside, ())
            numbers = numbers[inside]
        # Another version of numpy may draw other numbers; then the cuts say nothing about this log.
        expected = [*(cut.parent for cut in cuts), data.fingerprint][len(made)]
        if made and part.fingerprint() != expected:
            return _Trace(np.full(self.log.lists, UNSEEN), relation=UNCLEAR)
        return _Trace(states, tuple(made))

    def part(self, states: Integers, cuts: Collection[tuple[Split, ...]]) -> ClickLog | None:
        """The unseen lists of the log, with the record of the cut if one cut gave them; None if there are none."""
        if (states == UNSEEN).all():
            return self.log
        only = next(iter(cuts)) if len(cuts) == 1 else ()
        record = only[0].opposite if len(only) == 1 else Split(self.log.fingerprint(), "selection")
        splits = (*self.log.splits, record)
        if (states <= UNSEEN).all():
            return self.log.part(states == UNSEEN, splits) if states.any() else None
        counts = Counted.of(self.log)
        for number, pages in enumerate(self.pages.values(), start=UNSEEN + 1):
            counts = pages.where(states == number, self.log.offsets, counts)
        counts = replace(counts, impressions=np.where(states == SEEN, 0, counts.impressions))
        log = replace(self.log, pair_clicks=None)
        return with_counts(log, counts, splits) if counts.impressions.any() else None

    def overlaps(self, data: Collection[Lineage], states: Integers) -> bool:
        """True if it is recorded that these data share clicks with the part of the log that has these states."""
        traces = [trace for each in data if (trace := self.trace(each)).relation == "exact"]
        # A list in a state of its own there has pages on both sides of a split that the other one does not know.
        return any(((states != SEEN) & (trace.states != UNSEEN) & (trace.states != states)).any() for trace in traces)


def _versions(log: ClickLog) -> dict[str, ClickLog]:
    """The log by its fingerprint, also without its counts of pairs, since it must lose them to be split by page."""
    plain = log if log.pair_clicks is None else replace(log, pair_clicks=None)
    return {log.fingerprint(): log, plain.fingerprint(): plain}


def _queries(log: ClickLog) -> str:
    return f"{len(np.unique(log.queries)):,} queries"


def _none(count: int) -> str:
    return {1: "the model was not", 2: "neither model was"}.get(count, "no model was")


def _were(names: Sequence[str]) -> str:
    return f"{and_list(names)} {'was' if len(names) == 1 else 'were'}"
