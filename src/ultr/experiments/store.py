"""Finished runs in a folder, found again by what decided them."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from inspect import getfile
from pathlib import Path

import numpy as np

from ultr.arrays import Doubles, fingerprint
from ultr.clicks.registry import CLICK_MODELS
from ultr.data.array_file import read_array
from ultr.datasets.source import Source
from ultr.errors import DataError
from ultr.experiments.run import Found, Run
from ultr.files import new_folder, read_json, write_json
from ultr.version import __version__

FORMAT = "ultr run 1"
_DECIDING = (
    *("arrays.py", "seeding.py", "data", "datasets", "clicks", "metrics", "losses", "relevance", "simulation"),
    *("scoring", "bias", "train", "methods", "evaluation/judged.py", "experiments/run.py"),
)
"""The parts of the package that decide what a run gives; tables and commands may change without running it again."""
_NOT_DECIDING = {"bias/rank_test.py", "bias/scalar_test.py"}
"""Files among them that examine a log, which no run does."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of a finished run."""

    run: Run
    values: Doubles
    """[measures, queries], NaN where a query has no relevant document."""
    seconds: float
    model: Path
    """The folder of the trained ranker, where one was trained."""
    validation: float | None = None
    """The value of validation that chose its weights."""


@dataclass(frozen=True)
class Store:
    """A folder of finished runs."""

    folder: Path

    def key(self, run: Run) -> str:
        """The name of a run: its content, its data and the code that runs it."""
        content = [run.content(), _fingerprint(run.source), code_version()]
        if (library := run.contender.library) is not None:
            content.append(str(import_module(library).__version__))
        if run.sees_clicks and not CLICK_MODELS.is_built_in(run.clicks):
            # Those that are built in are part of the code version.
            code = Path(getfile(CLICK_MODELS[run.clicks])).read_bytes()
            content.append(blake2b(code, digest_size=8).hexdigest())
        return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=12).hexdigest()

    def checkpoint(self, run: Run) -> Path:
        """The file in which a run that is not finished keeps its state."""
        return self.folder / f".{self.key(run)}.checkpoint"

    def write(self, run: Run, found: Found) -> None:
        """Keep what a run gave, if nobody else has done so in the meantime."""
        folder = self.folder / self.key(run)
        if folder.exists():
            return
        with new_folder(folder, shared=True) as draft:
            values = np.stack([found.evaluation.values[measure] for measure in run.measures])
            np.save(draft / "values.npy", values, allow_pickle=False)
            if found.ranker is not None:
                found.ranker.save(draft / "model")
            write_json(
                draft / "manifest.json",
                {
                    "format": FORMAT,
                    "run": str(run),
                    "content": run.content(),
                    "data": _fingerprint(run.source),
                    "code": code_version(),
                    "version": __version__,
                    "seconds": found.seconds,
                    "validation": found.validation,
                    "values": fingerprint(values),
                },
                sealed=True,
            )
        self.checkpoint(run).unlink(missing_ok=True)

    def read(self, run: Run) -> Outcome | None:
        """Result of a run; None if it has not been finished yet."""
        folder = self.folder / self.key(run)
        if not folder.exists():
            return None
        manifest = read_json(folder / "manifest.json")
        try:
            values = np.asarray(read_array(folder / "values.npy"))
            # Runs of before there were digests have none.
            if manifest.get("values") not in (None, fingerprint(values)):
                raise ValueError("the digest of values.npy is another")
            return Outcome(run, values, float(manifest["seconds"]), folder / "model", manifest["validation"])
        except (OSError, ValueError, EOFError, KeyError, TypeError) as error:
            raise DataError(f"the run kept in {folder} is damaged ({error}); remove it to run it again") from error


@cache
def code_version() -> str:
    """A short name for the code that decides what a run gives, and for the libraries that compute it."""
    libraries = " ".join(version(name) for name in ("torch", "numpy", "scikit-learn"))
    digest = blake2b(libraries.encode(), digest_size=8)
    root = Path(str(files("ultr")))
    for part in _DECIDING:
        path = root / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            if (name := file.relative_to(root).as_posix()) not in _NOT_DECIDING:
                digest.update(name.encode() + b"\0" + _statements(file).encode())
    return digest.hexdigest()


def _statements(file: Path) -> str:
    """What the code of a file does: neither comments nor docstrings nor line breaks."""
    tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        if hasattr(node, "body") and isinstance(node.body, list):
            node.body = [each for each in node.body if not _is_text(each)]
    return ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    """True for a docstring, of a field too."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@cache
def _fingerprint(source: Source) -> str:
    return source.fingerprint()
