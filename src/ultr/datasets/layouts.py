"""The well-known data sets: the names of their files, and their splits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ultr import checks
from ultr.data.judged import concatenate
from ultr.datasets.cache import read_judged
from ultr.datasets.splits import Splits
from ultr.errors import DataError, OptionError

SUFFIXES = ("", ".gz", ".bz2", ".xz")


Arrangement: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""The files of the training, validation and test part; `{0}` is the number of the fold, `{1}` that of the next one."""


@dataclass(frozen=True)
class Layout:
    """A data set: the names of its files and what they hold."""

    name: str
    features: int
    max_label: int
    arrangements: tuple[Arrangement, ...]
    """The ways in which the files are handed round; the first one that is complete is read."""
    folds: int = 1
    """1 if the data set has a single split."""

    def files(self, fold: int) -> list[list[list[str]]]:
        """The names of the files of one fold, by arrangement and part.

        >>> LAYOUTS["mq2007"].files(4)[1]
        [['S4.txt', 'S5.txt', 'S1.txt'], ['S2.txt'], ['S3.txt']]
        """
        numbers = [(fold - 1 + step) % self.folds + 1 for step in range(self.folds)]
        return [[[name.format(*numbers) for name in part] for part in parts] for parts in self.arrangements]


_ONE_FILE_A_PART = (("train.txt",), ("vali.txt",), ("test.txt",))
_SAMPLE = (("sample/train.txt",), ("sample/vali.txt",), ("sample/test.txt",))
_FOLDS = (("Fold{0}/train.txt",), ("Fold{0}/vali.txt",), ("Fold{0}/test.txt",))
_ROTATED = (("S{0}.txt", "S{1}.txt", "S{2}.txt"), ("S{3}.txt",), ("S{4}.txt",))

LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("yahoo", 700, 4, ((("set1.train.txt",), ("set1.valid.txt",), ("set1.test.txt",)),)),
        Layout("istella-s", 220, 4, (_ONE_FILE_A_PART, _SAMPLE)),
        Layout("mslr", 136, 4, (_FOLDS,), folds=5),
        Layout("mslr-web10k", 136, 4, (_FOLDS,), folds=5),
        Layout("mslr-web30k", 136, 4, (_FOLDS,), folds=5),
        Layout("mq2007", 46, 2, (_FOLDS, _ROTATED), folds=5),
        Layout("mq2008", 46, 2, (_FOLDS, _ROTATED), folds=5),
        Layout("tiangong-st", 33, 4, ((("train.txt",), ("valid.txt",), ("test.txt",)),)),
    )
}


def read_layout(name: str, folder: str | Path, *, fold: int = 1, cache: str | Path | None = "default") -> Splits:
    """The splits of a well-known data set in a folder.

    Args:
        name: One of `LAYOUTS`.
        folder: Where the files are; each may be compressed with gzip, bzip2 or xz.
        fold: Which fold, from 1, of a data set that has several.
        cache: As for `read_judged`.

    """
    layout = LAYOUTS[checks.one_of("layout", name, LAYOUTS)]
    checks.integer("fold", fold, at_least=1)
    if fold > layout.folds:
        known = f"folds 1 to {layout.folds}" if layout.folds > 1 else "no folds, so fold must stay 1"
        raise OptionError(f"{name} has {known}, got fold {fold}")
    found = _find(layout, Path(folder), fold)
    train, validation, test = (
        concatenate(
            [read_judged(path, cache=cache, features=layout.features, max_label=layout.max_label) for path in paths]
        )
        for paths in found
    )
    title = f"{name} fold {fold}" if layout.folds > 1 else name
    return Splits(title, train=train, validation=validation, test=test)


def _find(layout: Layout, folder: Path, fold: int) -> list[list[Path]]:
    """The files of the training, validation and test part."""
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}; give the folder that holds the files of {layout.name}")
    missing = []
    for parts in layout.files(fold):
        found = {file: _existing(folder, file) for part in parts for file in part}
        if None not in found.values():
            return [[path for file in part if (path := found[file])] for part in parts]
        missing.append(", ".join(file for file, path in found.items() if path is None))
    raise DataError(
        f"{folder} does not hold {layout.name}: missing {' or else '.join(missing)} "
        f"(each also tried with {', '.join(SUFFIXES[1:])}); put the files there or give another folder"
    )


def _existing(folder: Path, file: str) -> Path | None:
    candidates = (folder / f"{file}{suffix}" for suffix in SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)
