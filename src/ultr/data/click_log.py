"""The collapsed click log: one row for each distinct shown list, with click and impression counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from ultr import checks
from ultr.arrays import Floats, Integers, Mask, Strings, fingerprint
from ultr.data import ragged
from ultr.errors import DataError
from ultr.files import new_folder, read_json, write_json
from ultr.seeding import generator

FORMAT = "ultr click log 1"
SPLITS = ("query", "page")
MOST_OF_A_LIST = 10**9
"""As many as numpy's hypergeometric numbers go to."""
_ARRAYS = ("features", "documents", "offsets", "impressions", "clicks", "queries", "query_ids")


@dataclass(frozen=True, eq=False)
class BiasFactor:
    """A categorical cause of bias: what was so for each shown document."""

    name: str
    values: Integers
    """int32 [shown documents], an index into `levels`."""
    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or self.values.dtype.kind not in "iu":
            raise DataError(f"the values of bias factor {self.name!r} must be a flat array of integers")
        if len(self.values) and not 0 <= self.values.min() <= self.values.max() < len(self.levels):
            raise DataError(f"the values of bias factor {self.name!r} must index its {len(self.levels)} levels")


def position_factor(positions: Integers, *, count: int | None = None) -> BiasFactor:
    """The bias factor `position` from positions as shown, which start at 1."""
    if len(positions) and positions.min() < 1:
        raise DataError(f"positions start at 1, got {positions.min()}")
    count = int(positions.max(initial=1)) if count is None else count
    return BiasFactor("position", (positions - 1).astype(np.int32), tuple(str(i + 1) for i in range(count)))


def _factor(name: str, values: object) -> BiasFactor:
    levels, numbers = np.unique(np.asarray(values, dtype=np.str_), return_inverse=True)
    return BiasFactor(name, numbers.astype(np.int32), tuple(levels.tolist()))


@dataclass(frozen=True, eq=False)
class ClickLog:
    """Shown lists with their clicks, identical impressions summed up.

    The documents of list `i` are the rows `offsets[i]:offsets[i + 1]` of `documents`, `clicks` and the factors, and
    it has one number of `impressions` and one query; `documents` points into the rows of `features`. The first
    factor is always the position, and the documents of a list stand from the top down. `of` builds a log from plain
    arrays.
    """

    features: Floats
    """float32 [documents, features]; may be memory-mapped."""
    documents: Integers
    """int64 [shown documents], rows of `features`."""
    offsets: Integers
    """int64 [lists + 1]."""
    factors: tuple[BiasFactor, ...]
    impressions: Integers
    """int64 [lists], how often the list was shown."""
    clicks: Integers
    """int64 [shown documents], how many of those impressions clicked the document."""
    queries: Integers
    """int64 [lists], the query of each list as an index into `query_ids`."""
    query_ids: Strings
    feature_names: tuple[str, ...]
    pair_clicks: Integers | None = None
    """int64 [pairs], in how many impressions both documents of a pair were clicked; None = not counted.

    The pairs of a list are (0, 1), (0, 2), ..., (1, 2), ... of its documents from the top, see `ragged.pair_members`.
    """

    def __post_init__(self) -> None:
        for name in ("documents", "offsets", "impressions", "clicks", "queries"):
            array = getattr(self, name)
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise DataError(f"{name} of a click log must be a flat array of integers, got {array.dtype}")
        shown = len(self.documents)
        ragged.check_offsets(self.offsets, shown, what="shown documents")
        if not self.factors or self.factors[0].name != "position":
            raise DataError("the first bias factor of a click log must be the position")
        if len({factor.name for factor in self.factors}) < len(self.factors):
            raise DataError("two bias factors of a click log have the same name")
        for name, values in [("clicks", self.clicks), *((f.name, f.values) for f in self.factors)]:
            if len(values) != shown:
                raise DataError(f"{shown} shown documents, but {len(values)} values of {name}")
        if len(self.impressions) != self.lists or len(self.queries) != self.lists:
            raise DataError(f"impressions and queries must have one value for each of {self.lists} lists")
        downwards = np.diff(self.factors[0].values) > 0
        downwards[self.offsets[1:-1][(self.offsets[1:-1] > 0) & (self.offsets[1:-1] < shown)] - 1] = True
        if not downwards.all():
            raise DataError("the documents of a list must stand from the top down, one at a position")
        if shown and not 0 <= self.documents.min() <= self.documents.max() < len(self.features):
            raise DataError(f"documents must be rows of the {len(self.features)} feature vectors")
        if self.lists and not 0 <= self.queries.min() <= self.queries.max() < len(self.query_ids):
            raise DataError(f"queries must index the {len(self.query_ids)} query ids")
        if self.lists and self.impressions.min() < 1:
            raise DataError("a list must have at least one impression")
        if (self.clicks < 0).any() or (self.clicks > np.repeat(self.impressions, self.lengths)).any():
            raise DataError("a document cannot have fewer than no clicks or more clicks than impressions")
        if self.features.ndim != 2 or self.features.shape[1] != len(self.feature_names):
            raise DataError(f"{self.features.shape} features, but {len(self.feature_names)} feature names")
        if self.pair_clicks is not None:
            self._check_pairs(self.pair_clicks)

    def _check_pairs(self, both: Integers) -> None:
        if both.ndim != 1 or both.dtype.kind not in "iu":
            raise DataError(f"pair_clicks of a click log must be a flat array of integers, got {both.dtype}")
        pairs = ragged.pair_offsets(self.offsets)
        if len(both) != pairs[-1]:
            raise DataError(f"{pairs[-1]} pairs of documents, but {len(both)} values of pair_clicks")
        first, second = (self.clicks[rows] for rows in ragged.pair_members(self.offsets))
        if (both < 0).any() or (both > np.minimum(first, second)).any():
            raise DataError("two documents cannot have fewer than no clicks together or more than either has alone")
        if (first + second - both > np.repeat(self.impressions, np.diff(pairs))).any():
            raise DataError("two documents have so many clicks that more of them must have been together")

    @classmethod
    def of(
        cls,
        *,
        features: object,
        documents: object,
        offsets: object,
        clicks: object,
        positions: object | None = None,
        impressions: object | None = None,
        queries: Iterable[object] | None = None,
        feature_names: Iterable[str] | None = None,
        pairs: bool = False,
        **factors: object,
    ) -> ClickLog:
        """A collapsed log from anything numpy understands.

        Each list `i` shows the rows `documents[offsets[i]:offsets[i + 1]]` of `features`. `clicks`, `positions`
        (from 1; by default the order within the list) and any further bias factor, given by its name, have one
        value for each of these; `impressions` (by default 1) and `queries` (by default a new one for each list)
        have one for each list. With `pairs`, it is also counted which documents were clicked together; a row must
        then be one impression, or several with the same clicks.

        Two impressions of one list on a phone, with a click on its second document, and one on a desk:

        >>> ClickLog.of(
        ...     features=[[0.1], [0.7], [0.4]],
        ...     documents=[2, 0, 2, 0, 2, 0],
        ...     offsets=[0, 2, 4, 6],
        ...     clicks=[0, 1, 0, 0, 1, 0],
        ...     queries=["shoes", "shoes", "shoes"],
        ...     device=["phone", "phone", "phone", "phone", "desk", "desk"],
        ... )
        ClickLog(2 lists of 1 queries, 3 impressions, 2 clicks, factors position, device)
        """
        matrix = np.asarray(features, dtype=np.float32)
        bounds = np.asarray(offsets, dtype=np.int64)
        shown = np.asarray(documents, dtype=np.int64)
        ragged.check_offsets(bounds, len(shown), what="shown documents")
        numbers = ragged.list_numbers(bounds)
        places = np.arange(len(shown)) - bounds[:-1][numbers] + 1
        if positions is not None:
            places = np.asarray(positions, dtype=np.int64)
            if places.shape != shown.shape:
                raise DataError(f"{len(shown)} shown documents, but {len(places)} positions")
        for name, values in {"clicks": clicks, **factors}.items():
            if np.asarray(values).shape != shown.shape:
                raise DataError(f"{name} must have one value for each of {len(shown)} shown documents")
        order = np.lexsort((places, numbers))
        lists = len(bounds) - 1
        ids, query_numbers = np.unique(
            np.array([str(query) for query in (range(lists) if queries is None else queries)], dtype=np.str_),
            return_inverse=True,
        )
        log = cls(
            features=matrix,
            documents=shown[order],
            offsets=bounds,
            factors=(
                position_factor(places[order]),
                *(_factor(name, np.asarray(values)[order]) for name, values in factors.items()),
            ),
            impressions=np.asarray(np.ones(lists) if impressions is None else impressions, dtype=np.int64),
            clicks=np.asarray(clicks, dtype=np.int64)[order],
            queries=query_numbers,
            query_ids=ids,
            feature_names=tuple(
                (str(i + 1) for i in range(matrix.shape[-1])) if feature_names is None else feature_names
            ),
        )
        return (log._with_pairs() if pairs else log).collapse()

    def __repr__(self) -> str:
        return (
            f"ClickLog({self.lists:,} lists of {len(np.unique(self.queries)):,} queries, "
            f"{self.impressions.sum():,} impressions, {self.clicks.sum():,} clicks, "
            f"factors {', '.join(factor.name for factor in self.factors)})"
        )

    @property
    def lists(self) -> int:
        """The number of distinct shown lists."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Integers:
        """The number of documents of each list."""
        return np.diff(self.offsets)

    @property
    def positions(self) -> Integers:
        """The position of each shown document, from 1."""
        return self.factors[0].values + 1

    def select(self, lists: Integers | Mask) -> ClickLog:
        """Only these lists (numbers or a mask), in this order; features and factor levels stay whole."""
        chosen = ragged.chosen(lists)
        rows = ragged.rows_of(chosen, self.offsets)
        return replace(
            self,
            documents=self.documents[rows],
            offsets=ragged.from_lengths(self.lengths[chosen]),
            factors=tuple(replace(factor, values=factor.values[rows]) for factor in self.factors),
            impressions=self.impressions[chosen],
            clicks=self.clicks[rows],
            queries=self.queries[chosen],
            pair_clicks=None if self.pair_clicks is None else self.pair_clicks[self._pairs_of(chosen)],
        )

    def split(self, held_out: float = 0.1, *, by: str = "query", seed: int = 0) -> tuple[ClickLog, ClickLog]:
        """The log without a share of its queries or pages, and those queries or pages.

        By `query`, no query is on both sides. By `page`, each impression is put aside with chance `held_out`, so that
        a list with many impressions is on both sides. A summed row does not say which of its clicks came together, so
        each document's clicks are shared out on their own: out of n pages with c clicks, m pages get a hypergeometric
        number of them. That is exact for each document, but not for pairs of them, so a log with `pair_clicks` is
        refused. A collapsed log has no time, so it cannot be split by time.
        """
        checks.share("held_out", held_out)
        if checks.one_of("by", by, SPLITS) == "page":
            return self._split_pages(held_out, seed=seed)
        queries = np.unique(self.queries)
        count = round(held_out * len(queries))
        if not 0 < count < len(queries):
            raise DataError(
                f"cannot hold out a share of {held_out:g} of {len(queries)} queries; "
                "hold out another share, or validate by labels or not at all"
            )
        chosen = generator(seed, "held-out queries").permutation(queries)[:count]
        aside = np.isin(self.queries, chosen)
        return self.select(~aside), self.select(aside)

    def _split_pages(self, held_out: float, *, seed: int) -> tuple[ClickLog, ClickLog]:
        if self.pair_clicks is not None:
            raise DataError(
                "a log that counts which documents were clicked together cannot be split by page, since it does not "
                "say on which pages; split it by query, or leave pair_clicks out"
            )
        if self.impressions.max(initial=0) >= MOST_OF_A_LIST:
            raise DataError(f"a list with {MOST_OF_A_LIST:,} impressions or more cannot be split by page")
        random = generator(seed, "held-out pages")
        aside = random.binomial(self.impressions, held_out)
        if not 0 < aside.sum() < self.impressions.sum():
            raise DataError(
                f"cannot hold out a share of {held_out:g} of {self.impressions.sum()} pages; hold out another share"
            )
        skips = np.repeat(self.impressions, self.lengths) - self.clicks
        clicks = random.hypergeometric(self.clicks, skips, np.repeat(aside, self.lengths))
        kept = replace(self, impressions=np.maximum(self.impressions - aside, 1), clicks=self.clicks - clicks)
        held = replace(self, impressions=np.maximum(aside, 1), clicks=clicks)
        return kept.select(aside < self.impressions), held.select(aside > 0)

    def collapse(self) -> ClickLog:
        """Sum the rows that show the same documents under the same bias factors to the same query."""
        keys = np.stack([self.documents, *(factor.values for factor in self.factors)], axis=1).astype(np.int64)
        ends = self.offsets.tolist()
        seen: dict[tuple[int, bytes], int] = {}
        target = np.array(
            [
                seen.setdefault((query, keys[start:end].tobytes()), len(seen))
                for query, start, end in zip(self.queries.tolist(), ends[:-1], ends[1:], strict=True)
            ],
            dtype=np.int64,
        )
        firsts = np.unique(target, return_index=True)[1]
        merged = self.select(firsts)
        clicks, impressions = np.zeros_like(merged.clicks), np.zeros_like(merged.impressions)
        np.add.at(clicks, ragged.rows_of(target, merged.offsets), self.clicks)
        np.add.at(impressions, target, self.impressions)
        pair_clicks = None
        if self.pair_clicks is not None:
            pair_clicks = np.zeros_like(merged.pair_clicks)
            np.add.at(pair_clicks, merged._pairs_of(target), self.pair_clicks)
        return replace(merged, clicks=clicks, impressions=impressions, pair_clicks=pair_clicks)

    def _pairs_of(self, lists: Integers) -> Integers:
        return ragged.rows_of(lists, ragged.pair_offsets(self.offsets))

    def _with_pairs(self) -> ClickLog:
        """The same log with its pairs counted; rows with the same clicks are summed, which keeps the pairs few."""
        often = np.repeat(self.impressions, self.lengths)
        unclear = np.flatnonzero((self.clicks > 0) & (self.clicks < often))
        if len(unclear):
            number = ragged.list_numbers(self.offsets)[unclear[0]]
            raise DataError(
                f"a document of list {number} was clicked in {self.clicks[unclear[0]]} of {often[unclear[0]]} "
                "impressions, so it is not known which documents were clicked together; "
                "give each impression a row of its own"
            )
        clicked = BiasFactor("clicked in this row", (self.clicks > 0).astype(np.int32), ("no", "yes"))
        patterns = replace(self, factors=(*self.factors, clicked)).collapse()
        first, second = (patterns.clicks[rows] for rows in ragged.pair_members(patterns.offsets))
        return replace(patterns, factors=patterns.factors[:-1], pair_clicks=np.minimum(first, second))

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the log as a folder of memory-mappable arrays and a manifest."""
        with new_folder(folder, overwrite=overwrite) as draft:
            self.write(draft)

    def write(self, folder: Path) -> None:
        """Write the same files into a folder that is there; `save` is for one that is to appear whole."""
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)
        for number, factor in enumerate(self.factors):
            np.save(folder / f"factor-{number}.npy", factor.values, allow_pickle=False)
        if self.pair_clicks is not None:
            np.save(folder / "pair_clicks.npy", self.pair_clicks, allow_pickle=False)
        manifest = _Manifest(
            format=FORMAT,
            factors=tuple(_Factor(name=factor.name, levels=factor.levels) for factor in self.factors),
            feature_names=self.feature_names,
            pair_clicks=self.pair_clicks is not None,
        )
        write_json(folder / "manifest.json", manifest.model_dump(exclude_defaults=True))

    @classmethod
    def load(cls, folder: str | Path) -> ClickLog:
        """Read a saved log; its arrays stay on disk until they are used."""
        folder = Path(folder)
        manifest = _read_manifest(folder)
        names = (*_ARRAYS, "pair_clicks") if manifest.pair_clicks else _ARRAYS
        arrays = {name: _map(folder / f"{name}.npy") for name in names}
        factors = tuple(
            BiasFactor(factor.name, _map(folder / f"factor-{number}.npy"), factor.levels)
            for number, factor in enumerate(manifest.factors)
        )
        try:
            return cls(factors=factors, feature_names=manifest.feature_names, **arrays)
        except DataError as error:
            raise DataError(f"{folder}: {error}") from error

    def fingerprint(self) -> str:
        """A short name for the exact content."""
        values = [factor.values for factor in self.factors]
        pairs = [] if self.pair_clicks is None else [self.pair_clicks]
        names = [np.array([factor.name, *factor.levels]) for factor in self.factors]
        arrays = [getattr(self, name) for name in _ARRAYS]
        return fingerprint(*arrays, *values, *names, np.array(self.feature_names), *pairs)


class _Factor(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    levels: tuple[str, ...]


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    format: str
    factors: tuple[_Factor, ...]
    feature_names: tuple[str, ...]
    pair_clicks: bool = False


def _read_manifest(folder: Path) -> _Manifest:
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}; give the folder of a saved click log")
    try:
        manifest = _Manifest.model_validate(read_json(folder / "manifest.json"))
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise DataError(
            f"{folder} is not a click log: its manifest is wrong at {where!r}; write the log again"
        ) from error
    if manifest.format != FORMAT:
        raise DataError(f"{folder} is not a click log that this version reads; simulate or prepare it again")
    return manifest


def _map(path: Path) -> npt.NDArray[Any]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} is missing or damaged ({error}); write the click log again") from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path} is not a .npy array; write the click log again")
    return array
