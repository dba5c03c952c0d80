"""`ultr compare --interleaved`: which of two rankers won the lists that they have made together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ultr.cli import output
from ultr.errors import DataError, OptionError

if TYPE_CHECKING:
    from ultr.evaluation.interleaved import InterleavedComparison
    from ultr.preparation.interleaved_lists import InterleavedLists

_SHORT = 8
"""Letters of a digest that are shown."""


def compare_interleaved(
    folder: Path, models: Sequence[Path], *, action: str, minutes: float, per_client: bool, json: bool
) -> None:
    """Print who won, by how much, and how much is missing."""
    from ultr.evaluation.interleaved import compare_interleaved as compare
    from ultr.preparation.interleaved_lists import read_interleaved

    digests = _digests(models)
    pairs = read_interleaved(folder, action=action, minutes=minutes, per_client=per_client)
    found, others = _chosen(pairs, digests, folder)
    names = (str(models[0]), str(models[1])) if models else ("old", "new")
    comparison = compare(found, names=names)
    if json:
        output.print_json(_content(comparison, found, others, folder, action=action, per_client=per_client))
        return
    _print(comparison, found, others, unit="clients" if per_client else "lists", action=action)


def _digests(models: Sequence[Path]) -> tuple[str, str] | None:
    """The digests of the two files, if they are given."""
    if not models:
        return None
    if len(models) != 2:
        raise OptionError("give both files, the old one and the new one, or none to take the last pair of the folder")
    try:
        first, second = (blake2b(path.read_bytes(), digest_size=16).hexdigest() for path in models)
    except OSError as error:
        raise DataError(
            f"cannot read {error.filename}: {error.strerror}; give the files that `ultr serve` was given"
        ) from error
    return first, second


def _chosen(
    pairs: list[InterleavedLists], digests: tuple[str, str] | None, folder: Path
) -> tuple[InterleavedLists, list[InterleavedLists]]:
    """The pair that is asked for, by default the last one, and the others."""
    if digests is None:
        return pairs[-1], pairs[:-1]
    found = [pair for pair in pairs if (pair.old, pair.new) == digests]
    if not found:
        known = ", ".join(f"{pair.old[:_SHORT]} and {pair.new[:_SHORT]}" for pair in pairs)
        raise DataError(
            f"{folder} has no list of {digests[0][:_SHORT]} and {digests[1][:_SHORT]}, the digests of these files; "
            f"it has those of {known}"
        )
    return found[0], [pair for pair in pairs if pair is not found[0]]


def _print(
    comparison: InterleavedComparison,
    found: InterleavedLists,
    others: list[InterleavedLists],
    *,
    unit: str,
    action: str,
) -> None:
    output.echo(f"{comparison.answer.verdict}: {comparison.answer.reason}")
    if comparison.difference is not None:
        difference = comparison.difference
        ends = "" if math.isnan(difference.low) else f" ({difference.low:+.4f} to {difference.high:+.4f})"
        what = f"{action} events" if action != "click" else "clicks"
        output.echo(
            f"Of {what} that give credit, new won {difference.mean:+.4f} per list more than old{ends}: "
            f"{comparison.clicks:,} on {comparison.lists:,} {unit}."
        )
        output.echo("95 % intervals, which hold at all looks together: look as often as you like, stop at a winner.")
    if comparison.lists_needed is not None:
        if math.isinf(comparison.lists_needed):
            output.echo("However many more there are, at this share nobody wins.")
        else:
            output.echo(
                f"If this goes on, about {comparison.lists_needed:,.0f} more interleaved {unit}, "
                f"with {comparison.clicks_needed:,.0f} such clicks, make a winner."
            )
    output.echo(f"old is the model {found.old}, new is {found.new}.")
    for sentence in _remarks(found, others):
        output.echo(sentence)


def _remarks(found: InterleavedLists, others: list[InterleavedLists]) -> list[str]:
    remarks = []
    if found.young:
        remarks.append(f"{found.young:,} lists are too young to count: what users do with them may be on its way.")
    if found.repeated:
        remarks.append(f"{found.repeated:,} lists are left out because several have the same query_id.")
    if others:
        pairs = ", ".join(f"{pair.old[:_SHORT]} and {pair.new[:_SHORT]} ({pair.lists:,})" for pair in others)
        remarks.append(f"Lists of other pairs are in the folder: {pairs}; give both files to choose one.")
    return remarks


def _content(
    comparison: InterleavedComparison,
    found: InterleavedLists,
    others: list[InterleavedLists],
    folder: Path,
    *,
    action: str,
    per_client: bool,
) -> dict[str, Any]:
    never = {
        field: None if number is None or math.isinf(number) else number
        for field, number in (
            ("lists_needed", comparison.lists_needed),
            ("clicks_needed", comparison.clicks_needed),
        )
    }
    return {
        "interleaved": str(folder),
        "old": found.old,
        "new": found.new,
        "action": action,
        "unit": "client" if per_client else "list",
        **asdict(comparison),
        **never,
        "young": found.young,
        "repeated": found.repeated,
        "other_pairs": [{"old": pair.old, "new": pair.new, "lists": pair.lists} for pair in others],
    }
