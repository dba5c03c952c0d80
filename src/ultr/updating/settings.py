"""The settings of a run: what is read, how it is trained on, what is served, and where the gate stands."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ultr import checks
from ultr.errors import DataError, OptionError
from ultr.files import new_file, parse_toml
from ultr.methods import flat_options
from ultr.methods import method as method_of
from ultr.methods.estimator import Estimator
from ultr.relevance.trees import Trees

DAY = "{day}"
"""The mark that stands for the day in the name of its raw log."""
_SCHEME = re.compile(r"[a-z0-9+]+:", re.IGNORECASE)


class UpdateSettings(BaseModel):
    """Settings of a run, as its `settings.toml` has them; paths are seen from its folder."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    log: str
    """Click log that the run began with, prepared with `--periods day`."""
    source: str
    """Raw log of a day, as `ultr prepare` reads it, with {day} in the place of the date."""
    served: str
    """File that is served, which `ultr serve` watches."""
    days: int = Field(default=28, ge=1)
    """Days that the click log keeps."""
    method: str = "auto"
    """Method that trains."""
    options: dict[str, Any] = {}
    """Its options, as `ultr train --set` takes them."""
    prepare: dict[str, Any] = {}
    """Options of `ultr prepare` that every day needs beside those of the first log, such as columns."""
    warm_steps: int | None = Field(default=None, ge=1)
    """Steps of a training that begins with the served ranker's weights; by default as many as of any other."""
    reserve: float = Field(default=0.2, gt=0, lt=1)
    """Share of the queries that no ranker of the run is trained on; the same ones every day."""
    compare_days: int = Field(default=7, ge=1)
    """Last days of the log whose clicks on reserved queries the rankers are compared by."""
    tolerance: float = Field(default=0.01, ge=0, allow_inf_nan=False)
    """Loss of clicks that the lower bound of the gain may show, as a share of the clicks on the compared pages."""
    largest_shift: float = Field(default=1.5, ge=1)
    """Largest median factor by which the exposure of documents may move against what is served."""
    keep: int = Field(default=5, ge=1)
    """Models that were served before and are kept for a rollback."""
    seed: int = Field(default=0, ge=0)
    """Seed of training, splits and intervals."""

    @classmethod
    def of(cls, content: dict[str, Any], *, where: str) -> UpdateSettings:
        """Checked settings; `where` names them in errors."""
        for name in content:
            checks.one_of(f"a setting in {where}", name, cls.model_fields)
        try:
            settings = cls.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"])
            raise OptionError(f"{name} in {where} does not fit: {first['msg'].lower()}") from error
        if DAY not in settings.source:
            raise OptionError(f"source in {where} must have {DAY} in the place of the date, got {settings.source!r}")
        settings.estimator()
        return settings

    @classmethod
    def read(cls, path: Path) -> UpdateSettings:
        """The settings of a file."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"cannot read {path} ({error}); restore the settings of the run") from error
        content = parse_toml(text, path)
        # A file that was cut off must not count as one with defaults; `write` leaves out no setting with a value.
        if missing := [name for name in cls.model_fields if name not in content and name != "warm_steps"]:
            raise DataError(f"{path} has no {missing[0]}, which it was written with; restore the settings of the run")
        return cls.of(content, where=str(path))

    def write(self, path: Path) -> None:
        """Write the settings as TOML, each with its description, whole or not at all."""
        lines: list[str] = []
        tables = {"options": self.options, "prepare": self.prepare}
        for name, value in self.model_dump(exclude=set(tables)).items():
            written = f"# {name} =" if value is None else f"{name} = {_toml(value)}"
            lines += [f"# {_described(name)}", written]
        for name, values in tables.items():
            lines += ["", f"# {_described(name)}", f"[{name}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in values.items()]
        with new_file(path) as draft:
            draft.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def estimator(self, *, warm: bool = False) -> Estimator:
        """A new estimator by the method and its options; a warm one has the steps of a warm start."""
        kind = method_of(self.method)
        types = flat_options.types(kind, self.options.get("relevance"))
        chosen: dict[str, Any] = {"seed": self.seed}
        for name, value in self.options.items():
            checks.one_of(f"option of method {self.method}", name, types)
            try:
                chosen[name] = TypeAdapter(types[name]).validate_python(value)
            except ValidationError as error:
                why = error.errors()[0]["msg"].lower()
                raise OptionError(f"option {name} of method {self.method} cannot be {value!r}: {why}") from error
        made = flat_options.estimator(kind, chosen)
        if warm and self.warm_steps is not None and not isinstance(made.relevance, Trees):
            made.set_params(relevance__steps=self.warm_steps)
        return made

    def from_folder(self, run: Path, text: str) -> str:
        """A path of the settings as the current folder sees it."""
        return text if _SCHEME.match(text) else os.path.normpath(run / text)


def seen_from_run(run: Path, text: str) -> str:
    """A path as the settings of a run have it; a query or a table of a database stays as it is."""
    return text if _SCHEME.match(text) else os.path.relpath(text, run)


def _described(name: str) -> str:
    return " ".join((UpdateSettings.model_fields[name].description or "").split())


def _toml(value: Any) -> str:
    """A value as TOML writes it; texts, numbers and lists of them are written as in JSON."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(each)}" for name, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
