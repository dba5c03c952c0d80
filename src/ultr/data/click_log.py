"""The collapsed click log: one row for each distinct shown list, with click and impression counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ultr import checks
from ultr.arrays import Counts, Floats, Integers, Mask, Strings
from ultr.data import ragged
from ultr.data.bias_factor import BiasFactor, factor_of, position_factor
from ultr.data.categories import Categories, recode
from ultr.data.cells import Cells
from ultr.data.collapsing import collapsed, with_pairs
from ultr.data.column_names import check_texts
from ultr.data.gathering import gather, new_array, take
from ultr.data.grades import Grades
from ultr.data.log_checks import check_log, trusted, whole_numbers
from ultr.data.log_fingerprint import check_fingerprint, is_small, log_fingerprint
from ultr.data.log_folder import read_fields, read_manifest, write_log
from ultr.data.log_splits import lists_held_out, split_pages, with_counts
from ultr.data.named_features import column_order
from ultr.data.notebook_tables import log_as_html
from ultr.data.placements import Placements
from ultr.data.signal import CLICK, Signal
from ultr.data.split import HELD_OUT, SPLITS, Split
from ultr.data.totals import Totals, totals
from ultr.errors import DataError
from ultr.files import new_folder


def _periods(values: object) -> tuple[Integers, tuple[str, ...]]:
    try:
        names, numbers = np.unique(np.asarray(values), return_inverse=True)
    except TypeError as error:
        raise DataError("the periods of a click log must be all numbers, all dates or all texts") from error
    return numbers, tuple(str(name) for name in names)


def _numbered(values: BiasFactor | Integers | None, count: int | None) -> tuple[Integers | None, int]:
    """Numbers from 0, and how many there can be."""
    if isinstance(values, BiasFactor):
        return values.values, len(values.levels)
    if values is None:
        return None, 1
    return values, int(values.max(initial=-1)) + 1 if count is None else count


@dataclass(frozen=True, eq=False)
class ClickLog:
    """Shown lists with their clicks, identical impressions summed up.

    The documents of list `i` are the rows `offsets[i]:offsets[i + 1]` of `documents`, `clicks` and the factors, and
    it has one number of `impressions` and one query; `documents` points into the rows of `features`. The first
    factor is always the position, and the documents of a list stand from the top down. `of` builds a log from plain
    arrays. `periods` and `grades` are there to examine a log and to split it; nothing is trained on them.

    A log is checked where it comes from outside: by `of`, `load`, this constructor and `dataclasses.replace`. What is
    made from a checked log, such as a part of it, is not checked again.
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
    periods: Integers | None = None
    """int64 [lists], in which part of the log's time the impressions were, from 0, the earliest; None = not known.

    Impressions of the same list in two periods are two rows.
    """
    period_names: tuple[str, ...] = ()
    """The time at which each period begins."""
    grades: Grades | None = None
    """The judge's label of each document, a row of `features`; None = there are none."""
    signals: tuple[Signal, ...] = ()
    """What users did beside the click, such as purchases."""
    categories: Categories = field(default_factory=dict)
    """The values of each categorical feature by its name; `features` holds their numbers, NaN = missing."""
    placements: Placements | None = None
    """The probability with which exploration placed each shown document; None = not logged."""
    splits: tuple[Split, ...] = ()
    """How this log was cut out of larger ones, from the first log down; no part of the fingerprint."""

    def __post_init__(self) -> None:
        check_log(self)

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
        periods: object | None = None,
        grades: Iterable[object] | None = None,
        signals: Mapping[str, object] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        placement_propensities: object | None = None,
        base_positions: object | None = None,
        **factors: object,
    ) -> ClickLog:
        """A collapsed log from anything numpy understands.

        Each list `i` shows the rows `documents[offsets[i]:offsets[i + 1]]` of `features`. `clicks`, `positions`
        (from 1; by default the order within the list) and any further bias factor, given by its name, have one
        value for each of these; more than 100 different numbers are kept in bins (see `numeric_factor`, which may be
        given in their place). `impressions` (by default 1) and `queries` (by default a new one for each list)
        have one for each list. With `pairs`, it is also counted which documents were clicked together; a row must
        then be one impression, or several with the same clicks. `periods` have one value for each list, anything
        that sorts by time, such as a day; `grades` have one for each row of `features`, see `Grades.of`. `signals`
        are counts of other signals by name, such as `{"purchase": [...]}`, one for each shown document. `categories`
        are the values of categorical features by name, of which `features` hold the places. `placement_propensities`
        and `base_positions`, one for each shown document, say how exploration placed it, see `Placements`.

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
        bounds = whole_numbers("offsets", offsets)
        shown = whole_numbers("documents", documents)
        ragged.check_offsets(bounds, len(shown), what="shown documents")
        numbers = ragged.list_numbers(bounds)
        places: Integers = np.arange(len(shown)) - bounds[:-1][numbers] + 1
        if positions is not None:
            places = whole_numbers("positions", positions)
            if places.shape != shown.shape:
                raise DataError(f"{len(shown)} shown documents, but {len(places)} positions")
        counted = {name: np.asarray(values) for name, values in (signals or {}).items()}
        made = {name: factor_of(name, values) for name, values in factors.items()}
        levels = {name: factor.values for name, factor in made.items()}
        placed = None if placement_propensities is None else Placements.of(placement_propensities, base_positions)
        chances = {} if placed is None else {"placement_propensities": placed.propensities}
        for name, values in {"clicks": clicks, **counted, **levels, **chances}.items():
            if np.asarray(values).shape != shown.shape:
                raise DataError(f"{name} must have one value for each of {len(shown)} shown documents")
        order = np.lexsort((places, numbers))
        lists = len(bounds) - 1
        texts = [str(query) for query in (range(lists) if queries is None else queries)]
        check_texts(texts, what="queries")
        ids, query_numbers = np.unique(np.array(texts, dtype=np.str_), return_inverse=True)
        period_numbers, period_names = (None, ()) if periods is None else _periods(periods)
        log = cls(
            features=matrix,
            documents=shown[order],
            offsets=bounds,
            factors=(
                position_factor(places[order]),
                *(replace(factor, values=factor.values[order]) for factor in made.values()),
            ),
            impressions=whole_numbers("impressions", np.ones(lists) if impressions is None else impressions),
            clicks=whole_numbers("clicks", clicks)[order],
            queries=query_numbers,
            query_ids=ids,
            feature_names=tuple(
                (str(i + 1) for i in range(matrix.shape[-1])) if feature_names is None else feature_names
            ),
            periods=period_numbers,
            period_names=period_names,
            grades=None if grades is None else Grades.of(grades),
            signals=tuple(Signal(name, values[order]) for name, values in counted.items()),
            categories={name: tuple(values) for name, values in (categories or {}).items()},
            placements=None if placed is None else Placements(placed.propensities[order], placed.bases[order]),
        )
        return (with_pairs(log) if pairs else log).collapse()

    def __repr__(self) -> str:
        return (
            f"ClickLog({self.lists:,} lists of {len(np.unique(self.queries)):,} queries, "
            f"{self.impressions.sum():,} impressions, {self.clicks.sum():,} clicks, "
            f"factors {', '.join(factor.name for factor in self.factors)})"
        )

    def _repr_html_(self) -> str:
        return log_as_html(self)

    @property
    def lists(self) -> int:
        """The number of distinct shown lists."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Integers:
        """The number of documents of each list."""
        return np.diff(self.offsets)

    def signal(self, name: str) -> Integers:
        """The totals of a signal of each shown document; `click` is one, too."""
        known = {CLICK: self.clicks} | {signal.name: signal.totals for signal in self.signals}
        return known[checks.one_of("signal", name, known)]

    @property
    def position(self) -> BiasFactor:
        """The position of each shown document as a bias factor, the first one."""
        return self.factors[0]

    @property
    def positions(self) -> Integers:
        """The position of each shown document, from 1."""
        return self.position.values + 1

    def totals(
        self,
        cells: BiasFactor | Integers | None = None,
        *,
        count: int | None = None,
        groups: Integers | None = None,
        group_count: int | None = None,
        weights: Counts | None = None,
    ) -> Totals:
        """How often documents were shown and clicked, [cells], [groups, cells] or [groups].

        `cells` is a bias factor, or a number for each shown document, below `count`; `groups` has a number for each
        list, below `group_count`; by default there are as many as occur. What has a number below 0 is left out.
        `weights` says how often each list counts. The log is read a span of lists at a time.

        >>> log = ClickLog.of(features=[[0.1], [0.7]], documents=[0, 1, 1], offsets=[0, 2, 3], clicks=[0, 1, 1])
        >>> log.totals(log.position).rates.tolist()
        [0.5, 1.0]
        """
        numbers, levels = _numbered(cells, count)
        if numbers is not None and numbers.shape != self.documents.shape:
            raise DataError(f"{len(self.documents)} shown documents, but {len(numbers)} cells")
        group_numbers, found = _numbered(groups, group_count)
        return totals(
            numbers,
            self.offsets,
            self.impressions,
            self.clicks,
            count=levels,
            groups=group_numbers,
            group_count=found,
            weights=weights,
        )

    def documents_within(self, groups: Integers) -> Integers:
        """[shown documents], a number for each document of each group of lists: group * documents + document."""
        numbers = new_array(len(self.documents), np.int64)
        for span in ragged.spans(self.offsets):
            numbers[span.rows] = span.spread(groups) * len(self.features) + self.documents[span.rows]
        return numbers

    def cells(
        self,
        levels: BiasFactor | Integers | None = None,
        *,
        count: int | None = None,
        documents: Integers | None = None,
        fewest_positions: int = 1,
        fewest_clicks: int = 0,
    ) -> Cells:
        """How often each document was shown under each of some levels, and clicked; see `Cells.of`.

        `levels` are those of a bias factor, by default of the position, or a number for each shown document, below
        `count`. `documents` says for each shown document which it is; by default its row of the features.
        """
        numbers, known = _numbered(self.position if levels is None else levels, count)
        assert numbers is not None
        return Cells.of(
            self.documents if documents is None else documents,
            numbers,
            self.impressions,
            self.clicks,
            count=known,
            offsets=self.offsets,
            fewest_positions=fewest_positions,
            fewest_clicks=fewest_clicks,
        )

    def select(self, lists: Integers | Mask) -> ClickLog:
        """Only these lists (numbers or a mask), in this order; features and factor levels stay whole.

        Large arrays are put into temporary files without a name, so that they take no memory of their own.
        """
        return self.part(lists, (*self.splits, Split(self.fingerprint(), "selection")))

    def part(self, lists: Integers | Mask, splits: tuple[Split, ...]) -> ClickLog:
        """The same as `select`, for those who know how the lists were cut out."""
        chosen = ragged.chosen(lists)
        placements = self.placements
        rows = (
            self.documents,
            self.clicks,
            *(factor.values for factor in self.factors),
            *(signal.totals for signal in self.signals),
            *(() if placements is None else (placements.propensities, placements.bases)),
        )
        offsets, (documents, clicks, *rest) = gather(rows, chosen, self.offsets)
        values, rest = rest[: len(self.factors)], rest[len(self.factors) :]
        sums, placed = rest[: len(self.signals)], rest[len(self.signals) :]
        pair_clicks = None
        if self.pair_clicks is not None:
            pair_clicks = gather([self.pair_clicks], chosen, ragged.pair_offsets(self.offsets))[1][0]
        return trusted(
            self,
            documents=documents,
            offsets=offsets,
            factors=tuple(trusted(f, values=taken) for f, taken in zip(self.factors, values, strict=True)),
            impressions=take(self.impressions, chosen),
            clicks=clicks,
            queries=take(self.queries, chosen),
            signals=tuple(trusted(s, totals=taken) for s, taken in zip(self.signals, sums, strict=True)),
            pair_clicks=pair_clicks,
            periods=None if self.periods is None else take(self.periods, chosen),
            placements=None if placements is None else trusted(placements, propensities=placed[0], bases=placed[1]),
            splits=splits,
        )

    def with_features(self, names: Sequence[str], *, what: str = "the log") -> ClickLog:
        """The same log with these features in this order, found by name; others than these are a `DataError`."""
        order = column_order(self.feature_names, names, what=what)
        if tuple(names) == self.feature_names:
            return self
        return trusted(self, features=self.features[:, order], feature_names=tuple(names))

    def with_categories(self, categories: Categories, *, what: str = "the log") -> ClickLog:
        """The same log with the codes that a ranker has for the values of its categorical features."""
        features = recode(self.features, self.feature_names, self.categories, categories, what=what)
        return self if features is self.features else trusted(self, features=features, categories=categories)

    def split(self, held_out: float = HELD_OUT, *, by: str = "query", seed: int = 0) -> tuple[ClickLog, ClickLog]:
        """The log without a share of its queries, pages or time, and that share.

        By `query`, no query is on both sides. By `page`, each impression is put aside with chance `held_out`, so that
        a list with many impressions is on both sides. A summed row does not say which of its clicks came together, so
        each document's clicks are shared out on their own: out of n pages with c clicks, m pages get a hypergeometric
        number of them. That is exact for each document, but not for pairs of them, so a log with `pair_clicks` is
        refused. By `time`, the last periods are put aside, as many whole ones as come nearest to that share of the
        impressions, at least one and not all; nothing is drawn. By `hash`, about that share of the queries is, by a
        digest of their ids, so that a query is on the same side in every log. Both parts know their cut (`splits`).
        """
        checks.share("held_out", held_out)
        # Nothing is drawn by time, so splits with two seeds are one.
        drawn_with = 0 if checks.one_of("by", by, SPLITS) == "time" else int(seed)
        split = Split(self.fingerprint(), by, float(held_out), drawn_with)  # type: ignore[arg-type]
        kept, held = (*self.splits, split), (*self.splits, split.opposite)
        if by == "page":
            left, taken = split_pages(self, held_out, seed=seed)
            return with_counts(self, left, kept), with_counts(self, taken, held)
        lists = lists_held_out(self, held_out, by=by, seed=seed)
        return self.part(~lists, kept), self.part(lists, held)

    def collapse(self) -> ClickLog:
        """Sum the rows that show the same documents under the same bias factors to the same query in one period.

        Rows with different placements stay apart.
        """
        return collapsed(self)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the log as a folder of memory-mappable arrays and a manifest."""
        with new_folder(folder, overwrite=overwrite) as draft:
            self.write(draft)

    def write(self, folder: Path) -> None:
        """Write the same files into a folder that is there; `save` is for one that is to appear whole."""
        write_log(self, folder)

    @classmethod
    def load(cls, folder: str | Path) -> ClickLog:
        """Read a saved log; its arrays stay on disk until they are used.

        Its fingerprint must be the one in its manifest. That of a small log is computed at once, that of a large one
        when it is asked for, which all do that train on it, split it or examine it.
        """
        try:
            manifest = read_manifest(Path(folder))
            log = cls(**read_fields(Path(folder), manifest))
        except DataError as error:
            prefix = "" if str(folder) in str(error) else f"{folder}: "
            raise DataError(f"{prefix}{error}") from error
        if manifest.fingerprint is not None:
            vars(log)["_promised"] = manifest.fingerprint, Path(folder)
            if is_small(log):
                log.fingerprint()
        return log

    def fingerprint(self) -> str:
        """A short name for the exact content; it is computed once, so arrays must not be changed in place.

        For a log that was loaded, a `DataError` if it is not the one that its folder promises.
        """
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        found = log_fingerprint(self)
        if (promised := vars(self).get("_promised")) is not None:
            check_fingerprint(found, *promised)
        return found

    def optional(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that not every log has, by the names of their files."""
        grades = None if self.grades is None else self.grades.values
        arrays: dict[str, npt.NDArray[Any] | None] = {
            "pair_clicks": self.pair_clicks,
            "periods": self.periods,
            "grades": grades,
        }
        arrays |= {f"signal-{number}": signal.totals for number, signal in enumerate(self.signals)}
        if self.placements is not None:
            arrays |= {"placement-propensities": self.placements.propensities, "base-positions": self.placements.bases}
        return {name: array for name, array in arrays.items() if array is not None}
