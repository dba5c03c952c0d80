"""The fuzzers of `make attack`: that they run, and that they would find what must not be."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import pytest
from benchmarks.attack.__main__ import attack
from benchmarks.attack.folders import Checkpoints, ClickLogs, Forests, Models
from benchmarks.attack.letor import LetorLines, slowly
from benchmarks.attack.outcome import BAD, Outcome, Target, outcome_of
from benchmarks.attack.plans import Plans
from benchmarks.attack.raw_logs import RawLogs

from ultr import files
from ultr.data import click_log
from ultr.errors import DataError


@pytest.mark.parametrize(
    ("make", "attempts"),
    [(Models, 12), (Forests, 12), (Checkpoints, 12), (ClickLogs, 12), (RawLogs, 1), (Plans, 300), (LetorLines, 50)],
)
def test_no_attempt_ends_as_none_may(make: type[Target], attempts: int, tmp_path: Path) -> None:
    tally = attack(make(tmp_path), 3, math.inf, most=attempts)  # type: ignore[call-arg]
    assert tally.tried == attempts
    assert tally.bad == []


def test_an_attempt_can_be_repeated(tmp_path: Path) -> None:
    target = Models(tmp_path)
    assert target.attempt(Random("a")) == target.attempt(Random("a"))


def test_without_a_digest_a_changed_manifest_would_be_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_digest", lambda content: "the same for all")
    tally = attack(Models(tmp_path), 0, math.inf, most=1000)
    assert tally.counts[Outcome.SILENT] > 0


def test_without_a_fingerprint_a_changed_log_would_be_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click_log, "check_fingerprint", lambda *_: None)
    tally = attack(ClickLogs(tmp_path), 0, math.inf, most=60)
    assert tally.counts[Outcome.SILENT] > 0


def test_outcomes_are_told_apart() -> None:
    def refuse(sentence: str) -> object:
        raise DataError(sentence)

    def fail() -> object:
        raise KeyError("a")

    assert outcome_of(lambda: 1, lambda found: found == 1)[0] is Outcome.SAME
    assert outcome_of(lambda: 2, lambda found: found == 1)[0] is Outcome.SILENT
    assert outcome_of(lambda: 2, lambda found: found == 1, made_up=True)[0] is Outcome.MADE_UP
    assert outcome_of(lambda: refuse("it is damaged"), bool)[0] is Outcome.REFUSED
    assert outcome_of(lambda: refuse("two\nlines"), bool)[0] in BAD
    assert outcome_of(fail, bool)[0] in BAD


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (b"1 qid:1 1:0.5\n", True),
        (b"1 qid:1 1:nan # comment\r\n0 qid:1 2:1", True),
        (b"1 qid:1 2:1 1:1\n", False),
        (b"1 qid:1\n", False),
        (b"1 qid:1 1:1\n1 qid:2 1:1\n1 qid:1 1:1\n", False),
        (b"1 qid:1 1:1_0\n", False),
        (b"-1 qid:1 1:1\n", False),
        (b"\xff qid:1 1:1\n", False),
    ],
)
def test_the_slow_parser_follows_the_grammar(text: bytes, taken: bool) -> None:  # noqa: FBT001
    assert (slowly(text) is not None) == taken
