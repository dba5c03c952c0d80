"""How rankers stand in searches that were shown in random order, each beside raw clicks by the same relevance model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.measurement import Measurement
from benchmarks.real_logs.contenders import NETWORK, RAW, TREES
from benchmarks.real_logs.judging import Judgement, by_chance, detectable, judge
from benchmarks.real_logs.printing import short, spanned, table
from benchmarks.real_logs.reading import BOOKING
from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.data.signal import CLICK
from ultr.metrics import PairedTest

CHANCE = "random order, on average"
SIGNALS = (CLICK, BOOKING)
HEADER = ("ranker", "clicks", "95 %", "seeds ±", "less raw clicks", "p", "bookings", "95 %", "less raw clicks", "p")


@dataclass(frozen=True, eq=False)
class Standings:
    """The judgement of each ranker by clicks and by bookings."""

    judged: Mapping[str, Mapping[str, Judgement]]
    """By signal and by the name of the ranker."""

    @classmethod
    def of(cls, scores: Mapping[str, Sequence[Doubles]], log: ClickLog) -> Standings:
        """Judge rankers by their scores of the shown documents of a log, one array for each seed."""
        return cls(
            {
                signal: {name: judge(each, log, signal=signal) for name, each in scores.items()}
                | {CHANCE: by_chance(log, signal=signal)}
                for signal in SIGNALS
            }
        )

    def against_raw(self, name: str, signal: str) -> PairedTest | None:
        """The lead over raw clicks by a network, or by trees for what is no network; None for raw clicks themselves."""
        raw = f"{RAW}, {NETWORK if name.endswith(NETWORK) else TREES}"
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
        cells = [name]
        for signal in SIGNALS:
            judged, lead = self.judged[signal][name], self.against_raw(name, signal)
            cells += [short(judged.interval.mean), spanned(judged.interval.low, judged.interval.high)]
            if signal == CLICK:
                cells.append(short(judged.spread) if len(judged.by_seed) > 1 else "")
            if lead is None:
                cells += ["", ""]
            else:
                span = spanned(lead.low, lead.high, signed=True)
                cells += [f"{short(lead.difference, signed=True)} ({span})", f"{lead.p_value:.2f}"]
        return cells

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
        return found
