"""What a study prints: headings, tables in Markdown, the words of the doctor and of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from ultr.data.click_log import ClickLog
from ultr.diagnosis.diagnosis import diagnose
from ultr.evaluation.comparison import QUESTIONS, compare
from ultr.methods.ranker import Ranker


def heading(text: str) -> None:
    print(f"\n## {text}\n", flush=True)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    print("\n".join(f"| {' | '.join(line)} |" for line in lines), flush=True)


def short(value: float, *, signed: bool = False) -> str:
    """Three digits behind the point, without the zero in front.

    >>> short(0.3704), short(-0.0123, signed=True)
    ('.370', '-.012')
    """
    text = f"{value:+.3f}" if signed else f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def spanned(low: float, high: float, *, signed: bool = False) -> str:
    """An interval."""
    return f"{short(low, signed=signed)} to {short(high, signed=signed)}"


def print_diagnosis(log: ClickLog) -> None:
    """What `ultr doctor` says, without its tables."""
    found = diagnose(log)
    print(found.headline)
    for finding in found.findings:
        print(f"- {finding.verdict}: {finding.title} {finding.answer}")
    for step in found.steps:
        print(f"- to do: {step}")


def print_comparison(first: Ranker, second: Ranker, log: ClickLog, *, names: tuple[str, str]) -> None:
    """What `ultr compare` says, without its tables."""
    found = compare(first, second, log, names=names)
    print(f"{names[1]} beside {names[0]}, compared on {found.unseen.name}:")
    for field, question in QUESTIONS.items():
        answer = getattr(found, field)
        print(f"- {question.format(a=names[0])}: {answer.verdict} ({answer.reason})")
