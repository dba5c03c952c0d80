"""The collapsed rows of an engine as a `ClickLog`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ultr.arrays import Floats, Integers, Strings
from ultr.data import ragged
from ultr.data.bias_factor import BiasFactor, position_factor
from ultr.data.click_log import ClickLog
from ultr.data.grades import Grades
from ultr.errors import DataError
from ultr.preparation.engine import Engine

MOST_QUERY_BYTES = 2 * 2**30
"""Query ids are kept as texts of one width; past this they are texts that should be ids."""


def number_documents(engine: Engine, shown: Any) -> Any:
    """The documents of a log in the order of their query and name: query, document, row, query_number."""
    import ibis

    pairs = shown.select("query", "document").distinct()
    return engine.keep(
        "documents",
        pairs.mutate(
            row=ibis.row_number().over(order_by=[pairs["query"], pairs.document]),
            query_number=ibis.dense_rank().over(order_by=[pairs["query"]]),
        ),
    )


def assemble(
    engine: Engine,
    shown: Any,
    documents: Any,
    *,
    factors: tuple[str, ...],
    features: Any | None,
    feature_names: tuple[str, ...],
    pairs: Any | None,
    period_names: tuple[str, ...],
    grades: Grades | None,
) -> ClickLog:
    """The log of collapsed rows; the features stay in a file of the engine's folder.

    Its order depends on the content alone: not on the order of the raw rows, and not on the engine.
    """
    import ibis

    pages = shown.select("page").distinct()
    numbers = engine.keep("list_numbers", pages.mutate(list=ibis.row_number()))
    of_factors = [f"f{i}" for i in range(len(factors))]
    joined = shown.join(numbers, "page").join(documents, ["query", "document"])
    # Few columns and narrow ones: this is all that Python ever holds of a log beside the log itself.
    wanted = joined.select("list", "row", "clicks", *of_factors, position=joined.position.cast("int32"))
    of_lists = joined.group_by("list").agg(
        impressions=joined.impressions.max(),
        query_number=joined.query_number.max(),
        length=joined.count(),
        **({"period": joined.period.max()} if period_names else {}),
    )
    shown_rows, lists = engine.fetch(wanted), engine.fetch(of_lists.order_by("list"))
    positions = shown_rows["position"].to_numpy()
    order = np.lexsort((positions, _integers(shown_rows, "list")))
    log = ClickLog(
        features=_matrix(engine, documents, features, len(feature_names)),
        documents=_integers(shown_rows, "row")[order],
        offsets=ragged.from_lengths(_integers(lists, "length")),
        factors=(
            position_factor(positions[order]),
            *(_factor(name, shown_rows[column], order) for name, column in zip(factors, of_factors, strict=True)),
        ),
        impressions=_integers(lists, "impressions"),
        clicks=_integers(shown_rows, "clicks")[order],
        queries=_integers(lists, "query_number"),
        query_ids=_queries(engine, documents),
        feature_names=feature_names,
        periods=_integers(lists, "period") if period_names else None,
        period_names=period_names,
        grades=grades,
    )
    if pairs is not None:
        log = _with_pairs(log, engine.fetch(pairs.join(numbers, "page").select("list", "first", "second", "both")))
    return log.part(_canonical(log), ())


def _canonical(log: ClickLog) -> Integers:
    """The lists ordered by query, by period and then by a mix of what they show."""
    mixed = np.zeros(len(log.documents), dtype=np.uint64)
    for column in (log.documents, *(factor.values for factor in log.factors)):
        mixed = _scrambled(mixed + column.astype(np.uint64))
    signatures = np.add.reduceat(mixed, log.offsets[:-1]) if log.lists else mixed
    periods = np.zeros_like(log.queries) if log.periods is None else log.periods
    return np.lexsort((_scrambled(signatures), signatures, periods, log.queries))


def _scrambled(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The mixing step of SplitMix64."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    scrambled: npt.NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return scrambled


def _with_pairs(log: ClickLog, table: Any) -> ClickLog:
    """The log with the counts of documents clicked together, which come by list and two positions."""
    bounds = ragged.pair_offsets(log.offsets)
    counts = np.zeros(bounds[-1], dtype=np.int64)
    lists = _integers(table, "list")
    widest = np.int64(log.positions.max(initial=0) + 1)
    places = ragged.list_numbers(log.offsets) * widest + log.positions
    first, second = (
        np.searchsorted(places, lists * widest + _integers(table, name)) - log.offsets[lists]
        for name in ("first", "second")
    )
    length = log.lengths[lists]
    counts[bounds[lists] + first * length - first * (first + 1) // 2 + second - first - 1] = _integers(table, "both")
    return replace(log, pair_clicks=counts)


def _matrix(engine: Engine, documents: Any, features: Any | None, count: int) -> Floats:
    total = engine.count(documents)
    if features is None or not count:
        return np.zeros((total, 0), dtype=np.float32)
    path = Path(engine.work) / "features.npy"
    matrix: Floats = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(total, count))
    if hasattr(os, "posix_fallocate"):
        # A mapped file is full of holes, and filling one on a full disk would kill the process.
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    keys = [key for key in ("query", "document") if key in features.columns]
    names = [f"x{i}" for i in range(count)]
    for batch in engine.batches(documents.join(features, keys).select("row", *names)):
        rows = batch.column("row").to_numpy()
        for number, name in enumerate(names):
            matrix[rows, number] = batch.column(name).to_numpy(zero_copy_only=False)
    return matrix


def _queries(engine: Engine, documents: Any) -> Strings:
    texts = documents.select("query", "query_number").distinct()
    size = engine.row(texts.aggregate(count=texts.count(), longest=texts["query"].length().max()))
    if size["count"] * size["longest"] * 4 > MOST_QUERY_BYTES:
        raise DataError(
            f"{size['count']:,} queries of up to {size['longest']:,} characters are too much to keep as ids; "
            "give a column with shorter ids of the queries"
        )
    return np.array(engine.fetch(texts.order_by("query_number"))["query"].to_pylist(), dtype=np.str_)


def _factor(name: str, column: Any, order: Integers) -> BiasFactor:
    """A column of text as a bias factor with sorted levels, its rows in this order."""
    encoded = column.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    levels = sorted(texts)
    place = {text: number for number, text in enumerate(levels)}
    numbers = np.array([place[text] for text in texts], dtype=np.int32)
    return BiasFactor(name, numbers[encoded.indices.to_numpy()[order]], tuple(levels))


def _integers(table: Any, name: str) -> npt.NDArray[np.int64]:
    values: npt.NDArray[np.int64] = table[name].to_numpy().astype(np.int64, copy=False)
    return values
