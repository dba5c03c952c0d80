"""Users who look at nothing further after a click."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ultr.bias.stopping import Stopping
from ultr.data.click_log import ClickLog
from ultr.pages import Section, Verdict, sentences

WIDE = 0.25
"""With a larger standard error, the log does not tell how many users stop."""


@dataclass(frozen=True)
class StoppingUsers:
    """The share of users who stop, or None where the log does not tell."""

    stopping: Stopping | None

    @classmethod
    def of(cls, log: ClickLog, *, seed: int = 0) -> StoppingUsers:
        """The users of a log."""
        return cls(Stopping.of(log, seed=seed))

    @property
    def known(self) -> float:
        """The share to reckon with; 0 unless it is beyond doubt that users stop."""
        return 0.0 if self.stopping is None else self.stopping.known

    def section(self) -> Section:
        """The answer on whether users stop after a click."""
        name, question, found = "stopping", "Do users stop after a click?", self.stopping
        if found is None:
            answer = (
                "the log does not tell: there are fewer queries than features and positions, or no list was shown "
                "twice, or hardly one without a click"
            )
            return Section(question, sentences([answer]), Verdict.UNKNOWN, name=name)
        numbers = asdict(found) | {"known": found.known}
        if found.known:
            told = (
                "the first click is the last one: lists come up to one click per impression, and hardly one has more"
                if found.known == 1 and found.once
                else f"{max(found.lower, 0):.0%} to {min(found.upper, 1):.0%} look at nothing further after a click"
            )
            answers = [
                told,
                "clicks below documents that are clicked much are few because few users are left, and a method that "
                "knows positions alone takes that for irrelevance",
            ]
            advice = (
                "Take the default, which counts clicks among the users who are left, or ultr train vectorization --set "
                "stopping=auto; the other methods do not."
            )
            return Section(question, sentences(answers), Verdict.CAREFUL, advice, numbers=numbers, name=name)
        if found.error > WIDE:
            answer = "the log has too few queries or clicks to tell whether less is clicked below clicked documents"
            return Section(question, sentences([answer]), Verdict.UNKNOWN, numbers=numbers, name=name)
        answer = (
            "nothing says so: position and features explain how little is clicked below documents that are clicked much"
        )
        return Section(question, sentences([answer]), Verdict.GOOD, numbers=numbers, name=name)
