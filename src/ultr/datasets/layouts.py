"""How the well-known data sets lie in their folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ultr import checks
from ultr.data.judged import concatenate
from ultr.datasets.cache import read_judged
from ultr.datasets.splits import Splits
from ultr.errors import DataError, OptionError

SUFFIXES = ("", ".gz", ".bz2", ".xz")


@dataclass(frozen=True)
class Arrangement:
    """The files of each part; `{0}` is the number of the fold, `{1}` that of the next one round, and so on."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]

    def of_fold(self, fold: int, *, folds: int) -> Arrangement:
        """The file names of one fold.

        >>> Arrangement(("S{0}", "S{1}", "S{2}"), ("S{3}",), ("S{4}",)).of_fold(4, folds=5)
        Arrangement(train=('S4', 'S5', 'S1'), validation=('S2',), test=('S3',))
        """
        numbers = [(fold - 1 + step) % folds + 1 for step in range(folds)]
        return Arrangement(
            train=tuple(name.format(*numbers) for name in self.train),
            validation=tuple(name.format(*numbers) for name in self.validation),
            test=tuple(name.format(*numbers) for name in self.test),
        )


@dataclass(frozen=True)
class Layout:
    """A data set: what its files are called and what they hold."""

    name: str
    features: int
    max_label: int
    arrangements: tuple[Arrangement, ...]
    """The ways in which the files are handed round; the first one that is complete is read."""
    folds: int = 1
    """1 if the data set has a single split."""


_ONE_FILE_A_PART = Arrangement(("train.txt",), ("vali.txt",), ("test.txt",))
_SAMPLE = Arrangement(("sample/train.txt",), ("sample/vali.txt",), ("sample/test.txt",))
_FOLDS = Arrangement(("Fold{0}/train.txt",), ("Fold{0}/vali.txt",), ("Fold{0}/test.txt",))
_ROTATED = Arrangement(("S{0}.txt", "S{1}.txt", "S{2}.txt"), ("S{3}.txt",), ("S{4}.txt",))

LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("yahoo", 700, 4, (Arrangement(("set1.train.txt",), ("set1.valid.txt",), ("set1.test.txt",)),)),
        Layout("istella-s", 220, 4, (_ONE_FILE_A_PART, _SAMPLE)),
        Layout("mslr", 136, 4, (_FOLDS,), folds=5),
        Layout("mslr-web10k", 136, 4, (_FOLDS,), folds=5),
        Layout("mslr-web30k", 136, 4, (_FOLDS,), folds=5),
        Layout("mq2007", 46, 2, (_FOLDS, _ROTATED), folds=5),
        Layout("mq2008", 46, 2, (_FOLDS, _ROTATED), folds=5),
        Layout("tiangong-st", 33, 4, (Arrangement(("train.txt",), ("valid.txt",), ("test.txt",)),)),
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
    for arrangement in layout.arrangements:
        names = arrangement.of_fold(fold, folds=layout.folds)
        parts = [[_existing(folder, file) for file in part] for part in (names.train, names.validation, names.test)]
        if all(path is not None for part in parts for path in part):
            return [[path for path in part if path is not None] for part in parts]
        files = [*names.train, *names.validation, *names.test]
        missing.append(", ".join(file for file in files if _existing(folder, file) is None))
    raise DataError(
        f"{folder} does not hold {layout.name}: missing {' or else '.join(missing)} "
        f"(each also tried with {', '.join(SUFFIXES[1:])}); put the files there or give another folder"
    )


def _existing(folder: Path, file: str) -> Path | None:
    candidates = (folder / f"{file}{suffix}" for suffix in SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)
