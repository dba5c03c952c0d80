"""The outcomes of an attack, and how many there were of each."""

from __future__ import annotations

import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Protocol, TypeVar

from ultr.errors import UltrError

LONGEST_SENTENCE = 2_000
Found = TypeVar("Found")


class Outcome(Enum):
    """The end of one attempt."""

    REFUSED = "refused"
    """In one sentence."""
    SAME = "same"
    """Read as if nothing had happened."""
    MADE_UP = "made up"
    """Read as what it says it is: somebody made it so, with the digests that belong to it."""
    SILENT = "silent"
    """Read as something else, without a word."""
    TRACEBACK = "traceback"
    """An error that is none of ours, or a refusal that is no sentence."""


BAD = (Outcome.SILENT, Outcome.TRACEBACK)


class Target(Protocol):
    """Something that is attacked; an attempt depends on nothing but its random generator."""

    name: str
    share: float
    """Its part of the time, where that of others is 1."""

    def attempt(self, random: Random) -> tuple[Outcome, str]:
        """Attack once: the outcome, and in words what was done."""


@dataclass
class Tally:
    """The attempts on one target."""

    name: str
    counts: Counter[Outcome] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)
    """What was done and what happened, of the attempts that must not end so."""
    seconds: float = 0.0

    @property
    def tried(self) -> int:
        """The number of attempts."""
        return sum(self.counts.values())


class TooSlowError(BaseException):
    """An attempt hangs. Nobody who catches what a file may raise is to catch this."""


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise a `TooSlowError` if the block takes longer."""

    def stop(*_: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome_of(
    read: Callable[[], Found], same: Callable[[Found], bool], *, made_up: bool = False
) -> tuple[Outcome, str]:
    """The outcome of reading something that was attacked, and the message that goes with it.

    `same` says if what was read is what it was before the attack; for what somebody made up, anything is fine.
    """
    try:
        found = read()
        if made_up:
            return Outcome.MADE_UP, ""
        return (Outcome.SAME, "") if same(found) else (Outcome.SILENT, "read as something else")
    except UltrError as error:
        text = str(error)
        if "\n" in text or len(text) > LONGEST_SENTENCE:
            return Outcome.TRACEBACK, f"no sentence: {text[:200]!r}"
        return Outcome.REFUSED, text
    except Exception:
        return Outcome.TRACEBACK, traceback.format_exc()
