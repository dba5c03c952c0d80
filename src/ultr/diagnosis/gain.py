"""The gain to expect from debiasing, before anything is trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ultr.bias.correction import Correction, correction
from ultr.counted import counted
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.pages import Section, Verdict, sentences

LITTLE, CLEAR = 0.1, 0.3
"""Shares of debiased scores that are new and reliable, from which on debiasing may pay and should pay."""
HARDLY, PERHAPS, YES = "will hardly pay", "may pay a little", "should pay"
IN_SIMULATIONS = {HARDLY: (0.00, 0.01), PERHAPS: (0.00, 0.03), YES: (0.01, 0.07)}
"""What the default gained over raw clicks, in nDCG@10, in eight of ten simulated logs of which the same was said."""
NOISY = 0.3
"""Below this reliability, changes by debiasing are mostly noise."""
APART = 0.5
"""Below this correlation, halves have most of what they say at all by chance, and what they say of raw clicks, too."""


@dataclass(frozen=True)
class Gain:
    """The correction that debiasing would make, or the reason why it is not known."""

    correction: Correction | None
    problem: str = ""

    @classmethod
    def of(cls, log: ClickLog, *, stopping: float = 0.0, seed: int = 0) -> Gain:
        """The correction of a log, of whose users a share stops after a click; not known for one without features."""
        try:
            return cls(correction(log, stopping=stopping, seed=seed))
        except DataError as error:
            return cls(None, str(error))

    @property
    def hardly(self) -> bool:
        """True if it is known that debiasing changes next to nothing beyond noise."""
        return self.correction is not None and self.correction.new < LITTLE

    def headline(self, *, told: bool = True) -> str:
        """One sentence on whether debiasing will pay; empty if that is not known.

        `told` is False if nothing in the log tells bias from relevance: then a change may be for the worse.
        """
        if self.correction is None:
            return ""
        if not (told or self.hardly):
            return "Debiasing would change the order; whether for the better, this log does not tell."
        answer = HARDLY if self.hardly else PERHAPS if self.correction.new < CLEAR else YES
        low, high = (f"{gain:+.2f}".replace("0.", ".") if gain else "0" for gain in IN_SIMULATIONS[answer])
        return f"Debiasing {answer}: nDCG@10 {low} to {high} in 8 of 10 simulated logs like it."

    def section(self, *, told: bool = True) -> Section:
        """The answer on whether debiasing will pay; `told` as for the headline."""
        name, question = "gain", "Will debiasing pay?"
        found = self.correction
        if found is None:
            return Section(question, sentences([self.problem]), Verdict.UNKNOWN, name=name)
        answer = [
            f"of what debiased clicks say about the order of documents, {found.new:.0%} is more than noise and "
            "not what raw clicks say anyway",
            f"two halves of the {found.queries:,} queries, debiased apart, "
            f"{'agree' if found.agreement > 0 else 'do not agree'} on what raw clicks do not say, with a correlation "
            f"of {found.agreement:.2f}, and debiased scores correlate with raw ones by {found.known:.2f} "
            f"(linear rankers, {counted(found.clicks, 'click')})",
        ]
        verdict, advice = Verdict.GOOD, ""
        if self.hardly:
            verdict = Verdict.CAREFUL
            # Where nothing but noise is new, debiased scores are near raw ones if there is nothing to correct, as in a
            # random order, or if both are noise of the same clicks: then the halves say different things altogether.
            if found.reliable < NOISY and (1 - found.known**2 >= LITTLE or found.halves < APART):
                answer.append("what debiasing changes is mostly noise")
                advice = "Log more queries and clicks, or swaps; until then expect no more than from raw clicks."
            else:
                answer.append("raw clicks rank nearly as debiased ones do")
                advice = (
                    "Expect no more than from raw clicks: the old ranker was good, or its order owes little to the "
                    "features, as a random one does."
                )
        elif not told:
            verdict = Verdict.UNKNOWN
            answer.append(
                "but swaps do not tell bias from relevance in this log, so that the change may be for the worse"
            )
            advice = "Keep a ranker by raw clicks beside, and let users decide between the two."
        numbers = asdict(found) | {"new": found.new}
        return Section(question, sentences(answer), verdict, advice, numbers=numbers, name=name)
