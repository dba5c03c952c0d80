"""Whether one number for each position is enough, or bias must be a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ultr.arrays import Doubles
from ultr.bias.rank_test import RankTest
from ultr.bias.scalar_test import ScalarTest, scalar_test
from ultr.data.click_log import ClickLog
from ultr.diagnosis.finding import Finding, FindingTable, Verdict, sentences

SMALLEST = 3
"""Too small a dimension costs far more than too large a one, and `Vectorization` needs one more than the rank of click
rates, since it adds where relevance and observation multiply: see "Choosing without labels" in docs/experiments.md."""
_GROUPS = {
    "labels": "documents by label",
    "documents by label": "documents by label, each compared with itself at other positions",
    "documents by score": "documents by the model's score, each compared with itself at other positions",
    "documents by clicks": "documents by their clicks in one half of the lists, each compared with itself at other "
    "positions in the other half",
}


@dataclass(frozen=True)
class Dimension:
    """The test of the examination hypothesis, and what follows from it."""

    scalar: ScalarTest

    @classmethod
    def of(cls, log: ClickLog, *, scores: Doubles | None = None, draws: int = 199, seed: int = 0) -> Dimension:
        """The test of a log: by its grades if it has some, else by scores, else by clicks alone."""
        labels = None if log.grades is None else log.grades.values
        return cls(scalar_test(log, labels=labels, scores=scores, samples=draws, seed=seed))

    @property
    def suggested(self) -> int:
        """The dimension of `Vectorization` to take: one more than the rank that was found, but not fewer than three."""
        return SMALLEST if self.scalar.test is None else max(SMALLEST, self.scalar.test.dimension + 1)

    def finding(self) -> Finding:
        """Whether relevance times observation, two numbers, describes the clicks."""
        found = self.scalar
        test = found.test
        if test is None:
            answer = [f"it cannot be tested: {(found.reason or '').partition(';')[0]}"]
            return self._finding(Verdict.UNKNOWN, answer, ["take vectors to be safe, or log some swaps"])
        p = f"p = {test.p_values[0]:.3f}"
        caveats = [caveat.partition(";")[0] for caveat in found.caveats]
        if found.answer == "no":
            ratio = test.singular_values[1] / test.singular_values[0]
            answer = [
                f"click rates are not relevance times observation ({p}): groups of documents lose clicks by position "
                f"in different ways; the matrix has rank {test.dimension} beyond noise, and its second singular value "
                f"is {ratio:.3f} of the first"
            ]
            advice = [
                f"train Vectorization, with dimension {self.suggested}; methods with one propensity a position err"
            ]
            return self._finding(Verdict.CAREFUL, [*answer, *caveats], advice)
        power = f"trust bias as it was published would have been found with a chance of {test.power or 0:.0%}"
        if found.answer == "yes":
            return self._finding(Verdict.GOOD, [f"nothing speaks against it ({p}), and {power}", *caveats], [])
        answer = [f"nothing speaks against it ({p}), but {power} only, so that says little", *caveats]
        return self._finding(Verdict.UNKNOWN, answer, ["take vectors to be safe, or log more"])

    def _finding(self, verdict: Verdict, answer: list[str], advice: list[str]) -> Finding:
        test = self.scalar.test
        return Finding(
            name="scalar",
            question="Is one number for each position enough?",
            verdict=verdict,
            answer=sentences(answer),
            advice=sentences(advice),
            numbers=self._numbers(),
            tables=() if test is None else (self._what(test), _rates(test)),
        )

    def _numbers(self) -> dict[str, Any]:
        found, test = self.scalar, self.scalar.test
        numbers: dict[str, Any] = {
            "scalar_is_enough": found.answer,
            "suggested_dimension": self.suggested,
            "grouping": found.grouping,
            "documents": found.documents,
            "impressions": found.impressions,
            "clicks": found.clicks,
            "reason": found.reason,
            "caveats": list(found.caveats),
            "dispersion": None if found.dispersion is None else vars(found.dispersion),
        }
        if test is not None:
            numbers |= {
                "p_values": list(test.p_values),
                "deviances": list(test.deviances),
                "rank": test.dimension,
                "power": test.power,
                "rates": test.rates.tolist(),
                "singular_values": test.singular_values.tolist(),
            }
        return numbers

    def _what(self, test: RankTest) -> FindingTable:
        found = self.scalar
        rows = {
            "groups": _GROUPS[found.grouping or "labels"],
            "documents": f"{found.documents:,}",
            "impressions of them": f"{found.impressions:,}",
            "clicks on them": f"{found.clicks:,}",
            "chance to find trust bias": f"{test.power or 0:.0%}",
        }
        if found.dispersion is not None:
            rows["variance of clicks over that of independent ones"] = f"{found.dispersion.phi:.2f}"
        for rank, p in enumerate(test.p_values, start=1):
            rows[f"rank {rank} against {rank + 1}"] = f"p = {p:.3f}"
        return FindingTable("what the test rests on", [{"": name, "value": text} for name, text in rows.items()])


def _rates(test: RankTest) -> FindingTable:
    rows = [
        {"group": str(group), **{str(place): f"{rate:.3f}" for place, rate in enumerate(rates, start=1)}}
        for group, rates in enumerate(test.rates, start=1)
    ]
    return FindingTable("click rates by relevance group (the lowest first) and position", rows)
