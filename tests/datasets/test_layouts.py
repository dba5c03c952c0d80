from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ultr.data.judged import JudgedLists
from ultr.datasets.layouts import LAYOUTS, read_layout
from ultr.datasets.splits import Splits
from ultr.errors import DataError, OptionError

PUBLISHED = {
    "yahoo": (700, 4, 1),
    "istella-s": (220, 4, 1),
    "mslr": (136, 4, 5),
    "mslr-web10k": (136, 4, 5),
    "mslr-web30k": (136, 4, 5),
    "mq2007": (46, 2, 5),
    "mq2008": (46, 2, 5),
    "tiangong-st": (33, 4, 1),
}
FILES = {
    "yahoo": ["set1.train.txt", "set1.valid.txt", "set1.test.txt"],
    "istella-s": ["train.txt", "vali.txt", "test.txt"],
    "mslr": ["Fold2/train.txt", "Fold2/vali.txt", "Fold2/test.txt"],
    "mslr-web10k": ["Fold2/train.txt", "Fold2/vali.txt", "Fold2/test.txt"],
    "mslr-web30k": ["Fold2/train.txt", "Fold2/vali.txt", "Fold2/test.txt"],
    "mq2007": ["Fold2/train.txt", "Fold2/vali.txt", "Fold2/test.txt"],
    "mq2008": ["Fold2/train.txt", "Fold2/vali.txt", "Fold2/test.txt"],
    "tiangong-st": ["train.txt", "valid.txt", "test.txt"],
}
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def fill(folder: Path, files: list[str], *, suffix: str = "") -> None:
    """Write files with one document each, whose query id is the name of the file."""
    for file in files:
        path = folder / f"{file}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(COMPRESS[suffix](f"1 qid:{file} 1:0.5\n".encode()))


def sources(splits: Splits) -> list[list[str]]:
    return [part.query_ids.tolist() for part in (splits.train, splits.validation, splits.test)]


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("name", FILES)
def test_every_layout_reads_its_files(name: str, suffix: str, tmp_path: Path) -> None:
    fill(tmp_path, FILES[name], suffix=suffix)
    features, max_label, folds = PUBLISHED[name]
    splits = read_layout(name, tmp_path, fold=2 if folds > 1 else 1, cache=None)
    assert sources(splits) == [[file] for file in FILES[name]]
    assert splits.name == (f"{name} fold 2" if folds > 1 else name)
    for part in (splits.train, splits.validation, splits.test):
        assert part.features.shape == (1, features)
        assert part.max_label == max_label


def test_every_layout_has_a_test() -> None:
    assert set(LAYOUTS) == set(FILES) == set(PUBLISHED)
    assert {name: (layout.features, layout.max_label, layout.folds) for name, layout in LAYOUTS.items()} == PUBLISHED


def test_istella_may_lie_in_its_sample_folder(tmp_path: Path) -> None:
    files = ["sample/train.txt", "sample/vali.txt", "sample/test.txt"]
    fill(tmp_path, files)
    assert sources(read_layout("istella-s", tmp_path, cache=None)) == [[file] for file in files]


@pytest.mark.parametrize(
    ("fold", "expected"),
    [
        (1, [["S1.txt", "S2.txt", "S3.txt"], ["S4.txt"], ["S5.txt"]]),
        (2, [["S2.txt", "S3.txt", "S4.txt"], ["S5.txt"], ["S1.txt"]]),
        (3, [["S3.txt", "S4.txt", "S5.txt"], ["S1.txt"], ["S2.txt"]]),
        (4, [["S4.txt", "S5.txt", "S1.txt"], ["S2.txt"], ["S3.txt"]]),
        (5, [["S5.txt", "S1.txt", "S2.txt"], ["S3.txt"], ["S4.txt"]]),
    ],
)
@pytest.mark.parametrize("name", ["mq2007", "mq2008"])
def test_letor_parts_rotate_with_the_fold(name: str, fold: int, expected: list[list[str]], tmp_path: Path) -> None:
    fill(tmp_path, [f"S{part}.txt" for part in range(1, 6)])
    assert sources(read_layout(name, tmp_path, fold=fold, cache=None)) == expected


def test_a_missing_file_is_named_with_what_was_tried(tmp_path: Path) -> None:
    fill(tmp_path, ["S1.txt", "S2.txt", "S4.txt", "S5.txt", "Fold1/train.txt"])
    with pytest.raises(DataError) as caught:
        read_layout("mq2007", tmp_path, cache=None)
    message = str(caught.value)
    assert str(tmp_path) in message
    assert "missing Fold1/vali.txt, Fold1/test.txt or else S3.txt " in message
    assert ".gz, .bz2, .xz" in message


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no folder .*nowhere; give the folder"):
        read_layout("yahoo", tmp_path / "nowhere")


def test_an_unknown_layout_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"yahoo, istella-s, .* did you mean 'mq2007'"):
        read_layout("mq207", tmp_path)


@pytest.mark.parametrize(
    ("name", "fold", "words"),
    [
        ("yahoo", 2, "yahoo has no folds, so fold must stay 1, got fold 2"),
        ("mq2007", 6, "mq2007 has folds 1 to 5, got fold 6"),
        ("mq2007", 0, "fold must be an integer of at least 1, got 0"),
    ],
)
def test_a_fold_that_does_not_exist_is_refused(name: str, fold: int, words: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=words):
        read_layout(name, tmp_path, fold=fold)


def test_labels_and_features_beyond_the_layout_are_refused(tmp_path: Path) -> None:
    fill(tmp_path, FILES["tiangong-st"])
    (tmp_path / "valid.txt").write_bytes(b"5 qid:1 1:1\n")
    with pytest.raises(DataError, match=r"valid\.txt, line 1: the label '5' is above 4"):
        read_layout("tiangong-st", tmp_path, cache=None)
    (tmp_path / "valid.txt").write_bytes(b"4 qid:1 34:1\n")
    with pytest.raises(DataError, match=r"valid\.txt, line 1: .* 33 known features"):
        read_layout("tiangong-st", tmp_path, cache=None)


def test_the_cache_is_used(tmp_path: Path) -> None:
    fill(tmp_path, FILES["yahoo"])
    read_layout("yahoo", tmp_path, cache=tmp_path / "cache")
    assert len(list((tmp_path / "cache" / "judged").iterdir())) == 3


def test_splits_with_different_features_are_refused() -> None:
    one = JudgedLists.of(features=np.ones((1, 1)), labels=[1], offsets=[0, 1])
    two = JudgedLists.of(features=np.ones((1, 2)), labels=[1], offsets=[0, 1])
    with pytest.raises(DataError, match="the test part of mixed has 2 features, the training part 1"):
        Splits("mixed", train=one, validation=one, test=two)


@pytest.mark.parametrize(("name", "queries", "documents"), [("mq2007", 1692, 59135), ("mq2008", 784, 15211)])
def test_shared_letor_data_has_the_sizes_of_its_readme(
    name: str, queries: int, documents: int, shared_data: Path, tmp_path: Path
) -> None:
    splits = read_layout(name, shared_data / name, fold=3, cache=tmp_path)
    parts = (splits.train, splits.validation, splits.test)
    assert sum(part.queries for part in parts) == queries
    assert sum(part.documents for part in parts) == documents
