"""The features of a log as a matrix in a file, and the names of its documents beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ultr.arrays import Floats, Integers
from ultr.data.categories import OTHER, encode
from ultr.preparation.documents import DocumentTable
from ultr.preparation.engine import Engine
from ultr.preparation.feature_columns import CATEGORY

RARE_DOCUMENTS = 10
"""A category with fewer documents becomes `other`, so that what was never seen has something to be like."""


def categories_of(engine: Engine, documents: DocumentTable, used: Integers) -> dict[str, tuple[str, ...]]:
    """The values of each categorical feature that the documents in use have, sorted, rare ones being `other`."""
    found = {}
    for cell, name in zip(documents.cells, documents.feature_names, strict=True):
        if any(column.kind == CATEGORY and column.name == name for column in documents.columns):
            table = engine.fetch(documents.table.select("row", cell).filter(documents.table[cell].notnull()))
            texts = np.array(table[cell].to_pylist(), dtype=object)
            texts = texts[used[table["row"].to_numpy()] >= 0]
            values, counts = np.unique(texts.astype(np.str_), return_counts=True)
            common = values[counts >= RARE_DOCUMENTS].tolist()
            rare = [OTHER] if len(common) < len(values) else []
            found[name] = tuple(sorted({*common, *rare}))
    return found


def write_documents(
    engine: Engine,
    documents: DocumentTable,
    used: Integers,
    categories: Mapping[str, tuple[str, ...]],
    *,
    matrix: Path,
    names: Path | None,
) -> Floats:
    """Write the features in use as a matrix, and which document each of its rows is; `used` has their numbers."""
    import pyarrow
    from pyarrow import parquet

    total = int(used.max(initial=-1)) + 1
    features = _new_matrix(matrix, total, len(documents.cells))
    texts = {
        name: cell for name, cell in zip(documents.feature_names, documents.cells, strict=True) if name in categories
    }
    kept = ["low", "high"] if "low" in documents.table.columns else []
    table = documents.table.select("row", "query", "document", *documents.cells, *kept)
    writer = None
    try:
        for batch in engine.batches(table.order_by("row") if names else table):
            numbers = used[batch.column("row").to_numpy()]
            there = numbers >= 0
            for place, (name, cell) in enumerate(zip(documents.feature_names, documents.cells, strict=True)):
                column = pyarrow.chunked_array([batch.column(cell)])
                values = encode(column, categories[name])[0] if name in categories else column.to_numpy()
                features[numbers[there], place] = values[there]
            if names is not None:
                mask = pyarrow.array(there)
                row = pyarrow.array(numbers[there])
                columns: dict[str, Any] = {"row": row}
                columns |= {each: batch.column(each).filter(mask) for each in ("query", "document")}
                columns |= {f"category {name}": batch.column(cell).filter(mask) for name, cell in texts.items()}
                columns |= {each: batch.column(each).filter(mask) for each in kept}
                piece = pyarrow.table(columns)
                writer = writer or parquet.ParquetWriter(names, piece.schema)
                writer.write_table(piece)
    finally:
        if writer is not None:
            writer.close()
    return features


def _new_matrix(path: Path, rows: int, columns: int) -> Floats:
    if not rows or not columns:
        return np.zeros((rows, columns), dtype=np.float32)
    matrix: Floats = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, columns))
    if hasattr(os, "posix_fallocate"):
        # A mapped file is full of holes, and filling one on a full disk would kill the process.
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return matrix
