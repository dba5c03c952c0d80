"""`ultr compare --interleaved`: which of two rankers users vote for in the lists that they have made together."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from ultr.cli import output
from ultr.errors import DataError, OptionError

if TYPE_CHECKING:
    from ultr.preparation.interleaved_lists import InterleavedLists


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
    section = compare(found, names=names).section(found, others, action=action)
    if json:
        output.print_json({"interleaved": str(folder)} | section.numbers)
    else:
        output.print_section(section)


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
    from ultr.preparation.interleaved_lists import SHORT

    found = [pair for pair in pairs if (pair.old, pair.new) == digests]
    if not found:
        raise DataError(
            f"{folder} has no list of {digests[0][:SHORT]} and {digests[1][:SHORT]}, the digests of these files; "
            f"it has those of {', '.join(pair.short for pair in pairs)}"
        )
    return found[0], [pair for pair in pairs if pair is not found[0]]
