"""The ledger of a run: one file for each decision, which say together what is served."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ultr.errors import DataError
from ultr.files import as_json, read_json, write_json

FIRST, PROMOTED, KEPT, ROLLED_BACK = "first", "promoted", "kept", "rolled back"


class LedgerEntry(BaseModel):
    """A decision, with all that it rests on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["ultr ledger 1"] = "ultr ledger 1"
    number: int
    """From 1 on."""
    decision: Literal["first", "promoted", "kept", "rolled back"]
    reason: str
    day: str
    """Last day of the log that decided."""
    at: str
    """Time of the decision, in UTC."""
    model: str
    """Name of the model that is served from now on."""
    file_digest: str
    """Digest of its file."""
    log: str
    """Name of the log that the next day is added to."""
    candidate: str | None = None
    """Name of the model that was trained for it."""
    data: dict[str, Any] = {}
    """Days, counts and fingerprint of the log."""
    training: dict[str, Any] = {}
    """Method, weights, and what they began with."""
    judgement: dict[str, Any] = {}
    """Measurements that the gate went by."""
    doctor: dict[str, str] = {}
    """Verdicts of the doctor by name."""
    settings: dict[str, Any] = {}
    versions: dict[str, str] = {}
    previous: str | None = None
    """Digest of the entry before."""

    def digest(self) -> str:
        """A digest of all that it says."""
        return blake2b(self.model_dump_json().encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Ledger:
    """The entries of a run from the first to the last."""

    folder: Path
    entries: tuple[LedgerEntry, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Ledger:
        """The entries in a folder; one that is missing, damaged or changed is a `DataError`."""
        entries: list[LedgerEntry] = []
        for number, path in enumerate(sorted(folder.glob("[0-9]*.json")), start=1):
            try:
                entry = LedgerEntry.model_validate(read_json(path))
            except ValidationError as error:
                raise _damaged(folder, f"{path.name}: {error.errors()[0]['msg'].lower()}") from error
            if path.name != _name(number) or entry.number != number:
                raise _damaged(folder, f"{_name(number)} is missing")
            if entry.previous != (entries[-1].digest() if entries else None):
                raise _damaged(folder, f"{path.name} does not follow {_name(number - 1)}")
            entries.append(entry)
        return cls(folder, tuple(entries))

    @property
    def last(self) -> LedgerEntry:
        """The last entry."""
        if not self.entries:
            raise _damaged(self.folder, "it has no entry")
        return self.entries[-1]

    @property
    def served(self) -> tuple[LedgerEntry, ...]:
        """Entries that put a model in place: the last one what is served, those before what was, oldest first.

        A rollback takes the last one away.
        """
        found: list[LedgerEntry] = []
        for entry in self.entries:
            if entry.decision in (FIRST, PROMOTED):
                found.append(entry)
            elif entry.decision == ROLLED_BACK:
                del found[-1:]
        return tuple(found)

    @property
    def current(self) -> LedgerEntry:
        """The entry that put in place what is served."""
        if not self.served:
            raise _damaged(self.folder, "it names no model that is served")
        return self.served[-1]

    @property
    def kept_in_a_row(self) -> int:
        """Decisions since the last one that was not to keep the served model."""
        others = [number for number, entry in enumerate(self.entries, start=1) if entry.decision != KEPT]
        return len(self.entries) - max(others, default=0)

    def decided(self, day: str) -> LedgerEntry | None:
        """The decision on a day; None if there is none."""
        return next((entry for entry in self.entries if entry.day == day and entry.decision != ROLLED_BACK), None)

    def next_entry(self, **content: Any) -> LedgerEntry:
        """The entry that follows the last one."""
        previous = self.entries[-1].digest() if self.entries else None
        whole = content | {"number": len(self.entries) + 1, "previous": previous}
        # As it will be read back: JSON has neither tuples nor NaN.
        return LedgerEntry.model_validate_json(as_json(whole))

    def append(self, entry: LedgerEntry) -> Ledger:
        """Write an entry, whole or not at all; the ledger with it."""
        write_json(self.folder / _name(entry.number), entry.model_dump(), sealed=True)
        return Ledger(self.folder, (*self.entries, entry))


def _name(number: int) -> str:
    return f"{number:06d}.json"


def _damaged(folder: Path, why: str) -> DataError:
    return DataError(f"the ledger {folder} is damaged ({why}); restore it from a copy, or begin a new run")
