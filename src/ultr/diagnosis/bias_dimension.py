"""The dimension of bias: one number for each position, or a vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ultr.arrays import Doubles
from ultr.bias.rank_test import RankTest
from ultr.bias.scalar_test import ScalarTest, scalar_test
from ultr.data.click_log import ClickLog
from ultr.pages import Section, Table, Verdict, figures, sentences

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
KEEP = "train without naming a method, which keeps of vectors what the log bears"


@dataclass(frozen=True)
class BiasDimension:
    """The test of the examination hypothesis, and what follows from it."""

    scalar: ScalarTest

    @classmethod
    def of(cls, log: ClickLog, *, scores: Doubles | None = None, draws: int = 199, seed: int = 0) -> BiasDimension:
        """The test of a log: by its grades if it has some, else by scores, else by clicks alone."""
        labels = None if log.grades is None else log.grades.values
        return cls(scalar_test(log, labels=labels, scores=scores, samples=draws, seed=seed))

    @property
    def suggested(self) -> int:
        """The dimension of `Vectorization` to take: one more than the rank that was found, but not fewer than three."""
        return SMALLEST if self.scalar.test is None else max(SMALLEST, self.scalar.test.dimension + 1)

    @property
    def rank(self) -> int:
        """The dimension that the clicks ask for: the rank that was found, or 1 where nothing speaks against it."""
        return self.scalar.test.dimension if self.scalar.test is not None and self.scalar.rejected else 1

    def section(self, identified: int | None = None, *, differing: Sequence[str] = ()) -> Section:
        """The answer on whether relevance times observation, two numbers, describes the clicks.

        `identified` is the largest dimension that the links between bias values support; None if nobody asked.
        `differing` are factors whose values have position curves of their own, which this test does not look at.
        """
        found = self.scalar
        test = found.test
        answer = [found.words, *(caveat.partition(";")[0] for caveat in found.caveats), self._beyond(identified)]
        if test is None:
            return self._section(Verdict.UNKNOWN, answer, [f"{KEEP}, or log some swaps"])
        if found.rejected:
            ratio = test.singular_values[1] / test.singular_values[0]
            answer[0] += (
                f"; the matrix of click rates has rank {test.dimension} beyond noise, and its second singular value is "
                f"{ratio:.3f} of the first"
            )
            advice = [
                f"take Vectorization, or the default, which corrects by it, with dimension {self.suggested}, one more "
                "than the rank, since it adds where relevance and observation multiply; methods with one number for "
                "each position err"
            ]
            return self._section(Verdict.CAREFUL, answer, advice)
        if differing:
            answer.append(
                f"that is about all pages together, and position bias is not the same for every {differing[0]}"
            )
        if found.rejected is None:
            return self._section(Verdict.UNKNOWN, answer, [f"{KEEP}, or log more"])
        return self._section(Verdict.CAREFUL if differing else Verdict.GOOD, answer, [])

    def _beyond(self, identified: int | None) -> str:
        """A sentence if the suggested dimension is for a larger rank than the links identify."""
        rank = self.suggested - 1
        if identified is None or rank <= identified:
            return ""
        return (
            f"dimension {self.suggested} is for click rates of rank {rank}, and the links between bias values identify "
            f"{f'rank {identified} only' if identified else 'none'}: documents with similar features must tell the rest"
        )

    def _section(self, verdict: Verdict, answer: list[str], advice: list[str]) -> Section:
        test = self.scalar.test
        return Section(
            name="scalar",
            title="Is one number for each position enough?",
            verdict=verdict,
            answer=sentences(answer),
            advice=sentences(advice),
            numbers=self._numbers(),
            tables=() if test is None else (self._what(test), _rates(test)),
            figures={}
            if test is None
            else {
                "click rates by relevance group and position": partial(
                    figures.rate_map, test.rates, ylabel="relevance group", positions=test.positions
                ),
                "singular values over the first": partial(
                    figures.singular_values, test.singular_values / test.singular_values[0]
                ),
            },
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
                "positions": list(test.positions),
                "singular_values": test.singular_values.tolist(),
            }
        return numbers

    def _what(self, test: RankTest) -> Table:
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
        cells = {name: [text] for name, text in rows.items()}
        return Table.of_cells("what the test rests on", "", cells, ["value"], folded=True)


def _rates(test: RankTest) -> Table:
    cells = {str(group): [f"{rate:.3f}" for rate in rates] for group, rates in enumerate(test.rates, start=1)}
    places = [str(place) for place in test.positions or range(1, test.rates.shape[1] + 1)]
    title = "click rates by relevance group and position, of documents with a click"
    return Table.of_cells(title, "group", cells, places, folded=True)
