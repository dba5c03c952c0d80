"""How rankers stand in searches that were shown in random order, each beside raw clicks by the same relevance model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.measurement import Measurement
from benchmarks.real_logs.contenders import DEBIASED, NETWORK, RAW, TREES
from benchmarks.real_logs.judging import (
    Judgement,
    WeightedJudgement,
    by_chance,
    detectable,
    judge,
    judge_weighted,
    weighted_by_chance,
)
from benchmarks.real_logs.printing import short, spanned, table
from benchmarks.real_logs.reading import BOOKING
from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.data.signal import CLICK
from ultr.metrics import Interval, PairedTest

CHANCE = "random order, on average"
SIGNALS = (CLICK, BOOKING)
HEADER = (
    *("ranker", "clicks", "95 %", "seeds ±", "less raw clicks", "p"),
    *("clicks, weighted", "less raw clicks", "bookings", "less raw clicks", "p"),
)


@dataclass(frozen=True, eq=False)
class Standings:
    """The judgement of each ranker by clicks and by bookings."""

    judged: Mapping[str, Mapping[str, Judgement]]
    """By signal and by the name of the ranker."""
    weighted: Mapping[str, WeightedJudgement]
    """By clicks over the examination of their positions."""

    @classmethod
    def of(cls, scores: Mapping[str, Sequence[Doubles]], log: ClickLog, *, examination: Doubles) -> Standings:
        """Judge rankers by their scores of the shown documents of a log, one array for each seed."""
        return cls(
            {
                signal: {name: judge(each, log, signal=signal) for name, each in scores.items()}
                | {CHANCE: by_chance(log, signal=signal)}
                for signal in SIGNALS
            },
            {name: judge_weighted(each, log, examination=examination) for name, each in scores.items()}
            | {CHANCE: weighted_by_chance(log, examination=examination)},
        )

    def against_raw(self, name: str, signal: str) -> PairedTest | None:
        """The lead over raw clicks; None for raw clicks themselves."""
        raw = _raw(name)
        return None if name == raw else self.judged[signal][name].against(self.judged[signal][raw])

    def detectable(self, signal: str) -> list[float]:
        """For each method with a relevance model of ours, the smallest gain over raw clicks that would be found."""
        names = [name for name in self.judged[signal] if name.endswith((NETWORK, TREES))]
        tests = [self.against_raw(name, signal) for name in names]
        return [detectable(test) for test in tests if test is not None]

    def print(self) -> None:
        """The table, and what it could have found."""
        table(HEADER, [self._row(name) for name in self.judged[CLICK]])
        print()
        for signal in SIGNALS:
            found = self.detectable(signal)
            print(
                f"A gain over raw clicks that {signal}s find with a chance of 80 %: {short(float(np.median(found)))} "
                f"(by method {spanned(min(found), max(found))})"
            )

    def _row(self, name: str) -> list[str]:
        clicks, bookings = (self.judged[signal][name] for signal in SIGNALS)
        spread = short(clicks.spread) if len(clicks.by_seed) > 1 else ""
        cells = [name, short(clicks.interval.mean), spanned(clicks.interval.low, clicks.interval.high), spread]
        cells += _lead(self.against_raw(name, CLICK))
        weighted = self.weighted[name]
        lead = weighted.against(self.weighted[_raw(name)])
        cells += [short(weighted.interval.mean), "" if name == _raw(name) else _with_span(lead.mean, lead)]
        return [*cells, short(bookings.interval.mean), *_lead(self.against_raw(name, BOOKING))]

    def measurements(self) -> list[Measurement]:
        """All numbers of the table."""
        found = []
        for signal in SIGNALS:
            for name, judged in self.judged[signal].items():
                words, mean = f"Expedia, {name}: nDCG@10 of {signal}s in random searches", judged.interval
                found.append(Measurement(words, mean.mean, "nDCG@10", mean.low, mean.high))
                if lead := self.against_raw(name, signal):
                    words = f"{words}, less raw clicks"
                    found.append(Measurement(words, lead.difference, "nDCG@10", lead.low, lead.high))
            gains = self.detectable(signal)
            words = f"Expedia: gain over raw clicks that {signal}s find with a chance of 80 %"
            found.append(Measurement(words, float(np.median(gains)), "nDCG@10", min(gains), max(gains)))
        for name, weighted in self.weighted.items():
            words = f"Expedia, {name}: discount of a click weighted by inverse examination"
            mean, ahead = weighted.interval, weighted.against(self.weighted[_raw(name)])
            found.append(Measurement(words, mean.mean, "nDCG@10", mean.low, mean.high))
            found.append(Measurement(f"{words}, less raw clicks", ahead.mean, "nDCG@10", ahead.low, ahead.high))
        return found


def _raw(name: str) -> str:
    """Raw clicks by the same relevance model: by the same library, by a network, or by trees."""
    if name.endswith(DEBIASED):
        return name.removesuffix(DEBIASED)
    return f"{RAW}, {NETWORK if name.endswith(NETWORK) else TREES}"


def _lead(test: PairedTest | None) -> list[str]:
    return ["", ""] if test is None else [_with_span(test.difference, test), f"{test.p_value:.2f}"]


def _with_span(difference: float, span: PairedTest | Interval) -> str:
    return f"{short(difference, signed=True)} ({spanned(span.low, span.high, signed=True)})"
