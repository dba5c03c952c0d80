"""The reader of LETOR / SVMlight text: `<label> qid:<id> <feature>:<value> ... # comment`."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ultr import checks
from ultr.arrays import Floats, Integers
from ultr.data.judged import JudgedLists
from ultr.datasets.svmlight_block import parse_block
from ultr.datasets.svmlight_lines import HIGHEST_LABEL, Block, Limits
from ultr.datasets.text_blocks import BLOCK_BYTES, read_blocks
from ultr.errors import DataError, OptionError

MAX_FEATURE = 100_000
_MOST_THREADS = 4
_KEPT_BYTES = 1 << 23
_FREE_BYTES = 1 << 28
_MOST_EXPANSION = 64


def read_svmlight(
    path: str | Path,
    *,
    features: int | None = None,
    max_label: int | None = None,
    max_feature: int = MAX_FEATURE,
) -> JudgedLists:
    """The judged lists in a file, which may be compressed with gzip, bzip2 or xz.

    Features that a line leaves out are 0. Peak memory is about that of the result.

    Args:
        path: The file, in the grammar of `ultr.datasets.svmlight_lines`.
        features: The number of columns; by default the highest feature id in the file.
        max_label: The highest grade of the data set, at most 31; by default the highest in the file.
        max_feature: The highest feature id to believe if `features` is not given.

    Raises:
        DataError: The file cannot be read or a line of it is wrong; the sentence names both.

    """
    if features is not None:
        checks.integer("features", features, at_least=1)
    if max_label is not None and checks.integer("max_label", max_label, at_least=0) > HIGHEST_LABEL:
        raise OptionError(f"max_label must be at most {HIGHEST_LABEL}, got {max_label!r}")
    limits = Limits(
        feature=checks.integer("max_feature", max_feature, at_least=1) if features is None else features,
        label=HIGHEST_LABEL if max_label is None else max_label,
        known_features=features is not None,
    )
    table = _GrowingLists(path, width=features)
    for block in _parsed_blocks(path, limits):
        table.append(block)
    return table.finish(max_label)


def _parsed_blocks(path: str | Path, limits: Limits) -> Iterator[Block]:
    """The blocks of the file in order, parsed by threads while this one decompresses."""
    # Freeing one large array makes glibc keep the memory of the next ones: a fifth less time, all of it page faults.
    np.empty(_KEPT_BYTES, dtype=np.uint8)
    threads = min(_MOST_THREADS, os.cpu_count() or 1)
    waiting: deque[Future[Block]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="svmlight") as pool:
        for line, text in read_blocks(path):
            waiting.append(pool.submit(parse_block, text, path=path, line=line, limits=limits))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class _GrowingLists:
    """The documents read so far, in arrays that grow."""

    def __init__(self, path: str | Path, *, width: int | None) -> None:
        self._path = path
        self._known_width = width is not None
        self._width = width or 0
        self._widest_line = 0
        self._blocks = 0
        self._documents = 0
        self._features: Floats = np.zeros((0, self._width), dtype=np.float32)
        self._labels: list[Integers] = []
        self._starts: list[int] = []
        self._query_ids: list[str] = []
        self._known_ids: set[str] = set()

    def append(self, block: Block) -> None:
        """Add the documents of the next block."""
        self._blocks += 1
        self._add_queries(block)
        documents = self._documents + len(block.labels)
        widest = int(block.columns.max(initial=0))
        if widest > self._width:
            self._width = widest
            first = np.searchsorted(block.offsets, block.columns.argmax(), side="right") - 1
            self._widest_line = int(block.lines[first])
        if not self._known_width:
            self._check_size(documents=documents)
        self._make_room(documents)
        _fill(self._features[self._documents : documents], block)
        self._labels.append(block.labels)
        self._documents = documents

    def finish(self, max_label: int | None) -> JudgedLists:
        """All documents as judged lists."""
        if not self._documents:
            raise DataError(f"{self._path} holds no documents; give a file with lines of data")
        if not self._width:
            raise DataError(f"{self._path} holds no features on any line; write them as <id>:<value>")
        self._features.resize((self._documents, self._width), refcheck=False)
        labels = np.concatenate(self._labels)
        return JudgedLists(
            features=self._features,
            labels=labels,
            offsets=np.array([*self._starts, self._documents], dtype=np.int64),
            query_ids=np.array(self._query_ids, dtype=np.str_),
            feature_names=tuple(str(column) for column in range(1, self._width + 1)),
            max_label=int(labels.max()) if max_label is None else max_label,
        )

    def _add_queries(self, block: Block) -> None:
        for query_id, start in zip(block.query_ids, block.query_starts.tolist(), strict=True):
            if self._query_ids and self._query_ids[-1] == query_id:
                continue
            if query_id in self._known_ids:
                raise DataError(
                    f"{self._path}, line {block.lines[start]}: query {query_id!r} comes again after other queries; "
                    "keep the lines of a query together or rename one"
                )
            self._known_ids.add(query_id)
            self._query_ids.append(query_id)
            self._starts.append(self._documents + start)

    def _check_size(self, *, documents: int) -> None:
        """Refuse a matrix out of proportion to the text, as one stray feature id makes it."""
        size = documents * self._width * self._features.itemsize
        if size > _FREE_BYTES + _MOST_EXPANSION * BLOCK_BYTES * self._blocks:
            raise DataError(
                f"{self._path}, line {self._widest_line}: feature id {self._width} makes {documents:,} documents take "
                f"{size / 1e9:.1f} GB, far more than the text; mend a stray id or give features={self._width}"
            )

    def _make_room(self, documents: int) -> None:
        """Room for so many rows and for all columns."""
        rows, columns = self._features.shape
        if columns < self._width:
            wider = np.zeros((documents, self._width), dtype=np.float32)
            wider[: self._documents, :columns] = self._features[: self._documents]
            self._features = wider
        elif rows < documents:
            # Growing in place moves pages instead of copying them; an eighth more keeps the number of moves low.
            self._features.resize((documents + documents // 8, columns), refcheck=False)


def _fill(rows: Floats, block: Block) -> None:
    """Write the pairs of the block into its rows, which are zero."""
    width = int(block.columns.max(initial=0))
    if len(block.columns) == len(rows) * width:  # ids rise, so every document has all of them
        rows[:, :width] = block.values.reshape(len(rows), width)
    else:
        numbers = np.repeat(np.arange(len(rows)), np.diff(block.offsets))
        rows[numbers, block.columns - 1] = block.values
