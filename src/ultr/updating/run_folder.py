"""The folder of a run: where its settings, logs, models and ledger are, and the file that is served."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ultr.errors import DataError, OptionError
from ultr.files import new_file
from ultr.locks import alone
from ultr.updating.ledger import Ledger, LedgerEntry
from ultr.updating.settings import DAY, UpdateSettings

SETTINGS = "settings.toml"


@dataclass(frozen=True)
class RunFolder:
    """A run by its folder.

    The ledger is what holds: models and logs that it does not name are leftovers, and the served file follows it.
    """

    path: Path

    @cached_property
    def settings(self) -> UpdateSettings:
        """The settings in the folder."""
        if not (self.path / SETTINGS).is_file():
            raise OptionError(f"{self.path} is no folder of a run: it has no {SETTINGS}; begin one with --init")
        return UpdateSettings.read(self.path / SETTINGS)

    def ledger(self) -> Ledger:
        """The ledger as it is now."""
        return Ledger.read(self.path / "ledger")

    def model(self, name: str) -> Path:
        """The folder of a model."""
        return self.path / "models" / name

    def exported(self, name: str) -> Path:
        """The file that a model is served as."""
        return self.path / "models" / f"{name}.onnx"

    def log(self, name: str) -> Path:
        """The folder of a log."""
        return self.path / "logs" / name

    def checkpoint(self, name: str) -> Path:
        """The checkpoint of a training that is under way."""
        return self.path / "models" / f".{name}.checkpoint"

    def source(self, day: str) -> str:
        """The raw log of a day."""
        return self.settings.from_folder(self.path, self.settings.source).replace(DAY, day)

    def prepare_options(self, day: str) -> dict[str, Any]:
        """The options that the raw log of a day is prepared with, beside those of the log that it is added to."""
        options = {
            name: value.replace(DAY, day) if isinstance(value, str) else value
            for name, value in self.settings.prepare.items()
        }
        tables = {name: options[name] for name in ("features_from", "clicks_from") if name in options}
        return options | {name: self.settings.from_folder(self.path, value) for name, value in tables.items()}

    @property
    def served(self) -> Path:
        """The file that is served."""
        return Path(self.settings.from_folder(self.path, self.settings.served))

    def alone(self) -> AbstractContextManager[None]:
        """Be the only process that works on the run."""
        busy = f"another update of {self.path} is at work; wait until it is done"
        return alone(self.path / ".lock", busy=busy)

    def current_log(self, ledger: Ledger) -> Path:
        """The log that the next day is added to."""
        name = ledger.last.log
        return self.log(name) if name else Path(self.settings.from_folder(self.path, self.settings.log))

    def content(self, entry: LedgerEntry) -> bytes:
        """The file of the model that an entry put in place."""
        path = self.exported(entry.model)
        if digest_of_file(path) != entry.file_digest:
            raise DataError(f"{path} is missing or not the file that the ledger names; restore it, or begin a new run")
        return path.read_bytes()

    def settle(self, ledger: Ledger) -> None:
        """Finish what an earlier call was killed at: let the file be served that the ledger names.

        Who reads the file sees the old one or the new one whole. A file that nobody of the run has put there is left
        alone, and is an `OptionError`.
        """
        now, current = digest_of_file(self.served), ledger.current
        if now == current.file_digest:
            return
        if now is not None and now not in {entry.file_digest for entry in ledger.entries}:
            raise OptionError(
                f"{self.served} is not a file that this run has put there; put {self.exported(current.model)} back, "
                "or begin a new run with its model (--init --model)"
            )
        content = self.content(current)
        self.served.parent.mkdir(parents=True, exist_ok=True)
        with new_file(self.served) as draft:
            draft.write_bytes(content)
            draft.chmod(0o644)

    def clear(self, ledger: Ledger) -> None:
        """Remove models and logs that are not needed any more."""
        served = [entry.model for entry in ledger.served[-1 - self.settings.keep :]]
        models = {*served, ledger.last.candidate or ""}
        _remove(self.path / "models", {*models, *(f"{name}.onnx" for name in models)})
        _remove(self.path / "logs", {ledger.last.log})


def digest_of_file(path: Path) -> str | None:
    """A digest of the content of a file; None if there is none."""
    if not path.is_file():
        return None
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()


def _remove(folder: Path, but: Collection[str]) -> None:
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name in but:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
