"""The sources of judged lists: a folder of a well-known data set, or the generator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from ultr import checks
from ultr.datasets.layouts import LAYOUTS, read_layout
from ultr.datasets.letor_like import letor_like
from ultr.datasets.splits import Splits
from ultr.errors import OptionError

LETOR_LIKE = "letor-like"
QUERIES = 10_000


@dataclass(frozen=True)
class Source:
    """One fold of a data set."""

    name: str
    folder: str | None = None
    """Where its files are; None for letor-like, which is generated."""
    queries: int = QUERIES
    """Training queries of letor-like."""
    fold: int = 1
    """The folds of letor-like are generated from different seeds."""

    @classmethod
    def parse(cls, text: str) -> Source:
        """`letor-like`, `letor-like=QUERIES` or `NAME=FOLDER`."""
        name, given, value = text.partition("=")
        checks.one_of("data set", name, [LETOR_LIKE, *LAYOUTS])
        if name == LETOR_LIKE:
            if given and not value.isdecimal():
                raise OptionError(f"letor-like takes a number of queries, as in letor-like=10000, got {value!r}")
            return cls(
                name, queries=checks.integer("queries of letor-like", int(value), at_least=10) if given else QUERIES
            )
        if not value:
            raise OptionError(f"data set {name} needs its folder, as in {name}=FOLDER")
        return cls(name, value)

    def with_fold(self, fold: int) -> Source:
        """Another fold of the same data set."""
        return replace(self, fold=checks.integer("fold", fold, at_least=1))

    def read(self) -> Splits:
        """The judged lists; the last ones that were asked for are kept."""
        return _read(self)

    def fingerprint(self) -> str:
        """A short name for the exact content; generated lists are named by what they are generated from."""
        if self.folder is None:
            return f"{self.name} {self.queries} {self.fold}"
        splits = self.read()
        return " ".join(part.fingerprint() for part in (splits.train, splits.validation, splits.test))


@lru_cache(maxsize=1)
def _read(source: Source) -> Splits:
    if source.folder is None:
        return letor_like(train_queries=source.queries, seed=source.fold - 1)
    return read_layout(source.name, source.folder, fold=source.fold)
