"""The folder of a search: what was tried, as JSON, and the models of the first and of the best settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any, ClassVar

from pydantic import TypeAdapter, ValidationError

from ultr.errors import DataError
from ultr.files import read_json, write_json
from ultr.methods.ranker import Ranker
from ultr.methods.registry import load
from ultr.relevance.kinds import with_tuples

TRIALS, FIRST, BEST = "trials.json", "first", "best"


@dataclass(frozen=True)
class TriedSettings:
    """Settings that were tried."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    settings: Mapping[str, Any]
    """Values of options by name."""
    log_likelihood: float | None
    """Mean log-probability of a held-out click among the documents of its list; None: training failed."""
    lead: float | None
    """Its lead over the first settings."""
    error: float | None
    """Standard error of the lead, over queries."""
    seconds: float
    """Time of training."""


@dataclass(frozen=True)
class SearchFolder:
    """The folder of one search, which goes on from there when it is started again."""

    path: Path
    run: str
    """A digest of all that decides the search."""

    def tried(self) -> list[TriedSettings]:
        """The settings that were tried before; a `DataError` if they belong to another search or are damaged."""
        file = self.path / TRIALS
        if not file.is_file():
            return []
        content = read_json(file)
        if not isinstance(content, dict) or content.get("run") != self.run:
            raise DataError(f"{self.path} holds another search, or one on other data; remove it to start anew")
        try:
            found = TypeAdapter(list[TriedSettings]).validate_python(content["tried"])
        except (ValidationError, KeyError) as error:
            raise DataError(f"{file} is damaged; remove {self.path} to start anew") from error
        return [replace(each, settings=with_tuples(each.settings)) for each in found]

    def keep(self, tried: Sequence[TriedSettings], *, models: Mapping[str, Ranker]) -> None:
        """Write the models, `first` or `best`, and then all that was tried."""
        self.path.mkdir(parents=True, exist_ok=True)
        for name, ranker in models.items():
            ranker.save(self.path / name, overwrite=True)
        write_json(self.path / TRIALS, {"run": self.run, "tried": [asdict(each) for each in tried]}, sealed=True)

    def model(self, name: str) -> Ranker:
        """The model of the `first` or of the `best` settings."""
        return load(self.path / name)

    def remove(self) -> None:
        """Remove the files of the search, and nothing else."""
        for name in (FIRST, BEST):
            rmtree(self.path / name, ignore_errors=True)
        (self.path / TRIALS).unlink(missing_ok=True)
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()
