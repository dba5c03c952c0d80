"""Features as sent become a matrix, or a sentence that names the candidate and the feature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import chain
from math import isnan
from typing import Any, Literal, get_args

import numpy as np

from ultr.arrays import Floats
from ultr.data.categories import OTHER, UNSEEN
from ultr.scoring import Scorer
from ultr.serving.refusal import Refusal
from ultr.serving.schemas import Query, Where

Missing = Literal["as-trained", "refuse", "fill"]
MISSING: tuple[Missing, ...] = get_args(Missing)
LARGEST = float(np.finfo(np.float32).max)
Fault = tuple[str, str, str | None]
"""A word for the metrics, the end of a sentence and the feature it is about."""
_SHOWN = 60


class FeatureRules:
    """The features that a model takes: their order, which may be missing, and which are categorical."""

    def __init__(self, scorer: Scorer, missing: Missing = "as-trained") -> None:
        names = self.names = scorer.card.feature_names
        self.known = frozenset(names)
        self.fills = missing == "fill"
        """True: a name that is left out is a missing feature."""
        allowed: dict[Missing, Iterable[str]] = {"as-trained": scorer.card.missing, "refuse": (), "fill": names}
        self.may_miss = frozenset(allowed[missing])
        self.policy = missing
        self.codes = scorer.codes
        """The code of each value of each categorical feature, by its column."""
        self.unseen = 0
        """Values of categorical features that were never seen in training, so far."""

    def matrix(self, queries: Sequence[Query]) -> Floats:
        """One row per candidate, all queries below each other; what is missing is NaN."""
        try:
            return self._floats([self._row(each.features) for query in queries for each in query.candidates])
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):
            raise _first_refusal(queries, self) from None

    def texts_of(self, features: Any) -> Iterable[str]:
        """The values of a candidate's categorical features."""
        if isinstance(features, list):
            values = [features[column] for column in self.codes]
        else:
            values = [features.get(self.names[column]) for column in self.codes]
        return [value for value in values if isinstance(value, str)]

    def _row(self, features: Any) -> Sequence[Any]:
        if isinstance(features, list):
            row = features
        elif self.fills:
            if not features.keys() <= self.known:
                raise KeyError
            row = list(map(features.get, self.names))
        else:
            if len(features) != len(self.names):
                raise KeyError
            row = list(map(features.__getitem__, self.names))
        return self._encoded(row) if self.codes else row

    def _encoded(self, row: Sequence[Any]) -> Sequence[Any]:
        """A row with the codes of its categories."""
        encoded = list(row)
        for column, codes in self.codes.items():
            value = encoded[column]
            if value is None:
                continue
            if (text := _text(value)) is None:
                raise TypeError
            code = codes.get(text)
            if code is None:
                self.unseen += 1
                code = codes.get(OTHER, UNSEEN)
            encoded[column] = code
        return encoded

    def _floats(self, rows: Sequence[Sequence[Any]]) -> Floats:
        """The rows as one array; a `ValueError` if anything in them is not as it should be."""
        width = len(self.names)
        if set(map(len, rows)) - {width}:
            raise ValueError
        kinds = set(map(type, chain.from_iterable(rows)))
        if kinds - {float, int, type(None)} or (type(None) in kinds and not self.may_miss):
            raise TypeError
        wide = np.array(rows, dtype=np.float64).reshape(len(rows), width)
        with np.errstate(over="ignore"):
            values = wide.astype(np.float32)
        gaps = sum(row.count(None) for row in rows) if type(None) in kinds else 0
        if np.isinf(values).any() or np.isnan(values).sum() != gaps:
            raise ValueError
        if gaps and len(self.may_miss) < width:
            full = [column for column, name in enumerate(self.names) if name not in self.may_miss]
            if np.isnan(values[:, full]).any():
                raise ValueError
        return values


def _first_refusal(queries: Sequence[Query], rules: FeatureRules) -> Refusal:
    """The refusal for the first candidate that is wrong."""
    for number, query in enumerate(queries):
        for index, candidate in enumerate(query.candidates):
            found = _fault(candidate.features, rules)
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


def _fault(features: Any, rules: FeatureRules) -> Fault | None:
    """The first thing that is wrong with the features of a candidate; None if all is well."""
    names = rules.names
    if isinstance(features, dict):
        unknown = next((name for name in features if name not in rules.known), None)
        if unknown is not None:
            near = get_close_matches(unknown[:_SHOWN], names, n=1)
            first = f"{unknown[:_SHOWN]}[0]"
            hint = f"did you mean {near[0]!r}?" if near else "GET /model lists the features"
            hint = f"give its numbers one by one, as {first!r} and so on" if first in rules.known else hint
            return "unknown_feature", f"has a feature {_shown(unknown)} that the model does not know; {hint}", unknown
        absent = next((name for name in names if name not in features), None)
        if absent is not None and not rules.fills:
            null = ", null if it is missing" if absent in rules.may_miss else ""
            fault = f"lacks feature {absent!r}; give every feature{null}, or start the service with --missing fill"
            return "missing_feature", fault, absent
        return _first_bad_value(features.items(), rules)
    if isinstance(features, list):
        if len(features) != len(names):
            fault = f"has {len(features)} features, the model knows {len(names)}; GET /model lists them in order"
            return "wrong_length", fault, None
        return _first_bad_value(zip(names, features, strict=True), rules)
    return "not_features", f"must have features by name or as an array, not {_kind(features)}", None


def _first_bad_value(items: Iterable[tuple[str, Any]], rules: FeatureRules) -> Fault | None:
    categorical = {rules.names[column] for column in rules.codes}
    for name, value in items:
        if value is None:
            if name not in rules.may_miss:
                never = ", which was never missing in training" if rules.policy == "as-trained" else ""
                what = "a value" if name in categorical else "a number"
                fault = f"has null as feature {name!r}{never}; give {what}, or start the service with --missing fill"
                return "missing_feature", fault, name
        elif name in categorical:
            if _text(value) is None:
                fault = f"has {_kind(value)} as feature {name!r}, which is categorical; give a text"
                return "not_a_category", fault, name
        elif type(value) not in (float, int):
            return "not_a_number", f"has {_kind(value)} as feature {name!r}; give a number", name
        elif isinstance(value, float) and isnan(value):
            way_out = "write null if it is missing" if name in rules.may_miss else "give a finite number"
            return "not_finite", f"has NaN as feature {name!r}; {way_out}", name
        elif abs(value) > LARGEST:
            fault = f"has {_shown(value)} as feature {name!r}, which does not fit into 32 bits; give a smaller number"
            return "not_finite", fault, name
    return None


def _text(value: object) -> str | None:
    """A value of a category as a text, an integer (1.0 is one in JSON) as it is written; None if it is no value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**63 or value % 1:
        return None
    return str(int(value))


def _kind(value: object) -> str:
    kinds = {bool: "true or false", str: "a text", list: "an array", dict: "an object", type(None): "null"}
    return kinds.get(type(value), "a number")
