"""Features as sent become a matrix, or a sentence that names the candidate and the feature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import chain
from math import isnan
from typing import Any, Literal

import numpy as np

from ultr.arrays import Floats
from ultr.serving.refusal import Refusal
from ultr.serving.schemas import Query, Where

Missing = Literal["refuse", "fill"]
LARGEST = float(np.finfo(np.float32).max)
_SHOWN = 60


def matrix(queries: Sequence[Query], names: Sequence[str], *, missing: Missing = "refuse") -> Floats:
    """One row per candidate, all queries below each other; what may be missing is NaN."""
    known = frozenset(names)
    try:
        rows = [_row(candidate.features, names, known, missing) for query in queries for candidate in query.candidates]
        return _floats(rows, len(names), missing)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        raise _first_refusal(queries, names, missing) from None


def _row(features: Any, names: Sequence[str], known: frozenset[str], missing: Missing) -> Sequence[Any]:
    if isinstance(features, list):
        return features
    if missing == "fill":
        if not features.keys() <= known:
            raise KeyError
        return list(map(features.get, names))
    if len(features) != len(names):
        raise KeyError
    return list(map(features.__getitem__, names))


def _floats(rows: Sequence[Sequence[Any]], width: int, missing: Missing) -> Floats:
    """The rows as one array; a `ValueError` if anything in them is not as it should be."""
    if set(map(len, rows)) - {width}:
        raise ValueError
    kinds = set(map(type, chain.from_iterable(rows)))
    if kinds - {float, int} and (missing == "refuse" or kinds - {float, int, type(None)}):
        raise TypeError
    wide = np.array(rows, dtype=np.float64).reshape(len(rows), width)
    with np.errstate(over="ignore"):
        values = wide.astype(np.float32)
    gaps = sum(row.count(None) for row in rows) if type(None) in kinds else 0
    if np.isinf(values).any() or np.isnan(values).sum() != gaps:
        raise ValueError
    return values


def _first_refusal(queries: Sequence[Query], names: Sequence[str], missing: Missing) -> Refusal:
    """The refusal for the first candidate that is wrong."""
    for number, query in enumerate(queries):
        for index, candidate in enumerate(query.candidates):
            found = _fault(candidate.features, names, missing)
            if found is not None:
                return refusal(number, query, index, *found)
    raise AssertionError("nothing is wrong with these features")


def refusal(number: int, query: Query, index: int, reason: str, fault: str, feature: str | None = None) -> Refusal:
    """A refusal for one candidate of the query with this number, which `fault` says something of."""
    name = query.candidates[index].id
    who = f"candidate {index}{_called(name)} of query {number}{_called(query.id)}"
    where = Where(query=number, query_id=query.id, candidate=index, candidate_id=name, feature=feature)
    return Refusal(422, reason, f"{who} {fault}", where=where)


def _called(name: str | int | None) -> str:
    return "" if name is None else f" ({_shown(name)})"


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "a very long number"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _fault(features: Any, names: Sequence[str], missing: Missing) -> tuple[str, str, str | None] | None:
    """A word for the metrics, the end of a sentence and the feature it is about; None if all is well."""
    if isinstance(features, dict):
        unknown = next((name for name in features if name not in set(names)), None)
        if unknown is not None:
            near = get_close_matches(unknown[:_SHOWN], names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "GET /model lists the features"
            return "unknown_feature", f"has a feature {_shown(unknown)} that the model does not know; {hint}", unknown
        absent = next((name for name in names if name not in features), None)
        if absent is not None and missing == "refuse":
            fault = f"lacks feature {absent!r}; give every feature, or start the service with --missing fill"
            return "missing_feature", fault, absent
        return _first_bad_value(features.items(), missing)
    if isinstance(features, list):
        if len(features) != len(names):
            fault = f"has {len(features)} features, the model knows {len(names)}; GET /model lists them in order"
            return "wrong_length", fault, None
        return _first_bad_value(zip(names, features, strict=True), missing)
    return "not_features", f"must have features by name or as an array, not {_kind(features)}", None


def _first_bad_value(items: Iterable[tuple[str, Any]], missing: Missing) -> tuple[str, str, str | None] | None:
    for name, value in items:
        if value is None:
            if missing == "refuse":
                fault = f"has null as feature {name!r}; give a number, or start the service with --missing fill"
                return "missing_feature", fault, name
        elif type(value) not in (float, int):
            return "not_a_number", f"has {_kind(value)} as feature {name!r}; give a number", name
        elif isinstance(value, float) and isnan(value):
            way_out = "write null if it is missing" if missing == "fill" else "give a finite number"
            return "not_finite", f"has NaN as feature {name!r}; {way_out}", name
        elif abs(value) > LARGEST:
            fault = f"has {_shown(value)} as feature {name!r}, which does not fit into 32 bits; give a smaller number"
            return "not_finite", fault, name
    return None


def _kind(value: object) -> str:
    kinds = {bool: "true or false", str: "a text", list: "an array", dict: "an object", type(None): "null"}
    return kinds.get(type(value), "a number")
