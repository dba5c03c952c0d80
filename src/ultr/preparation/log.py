"""From a raw click log to a collapsed one: `prepare` writes a folder, `read_log` gives the log itself."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ultr.arrays import Integers
from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.data.missing_values import missing_shares
from ultr.errors import DataError, OptionError
from ultr.files import new_folder, write_json
from ultr.preparation import assembly, growth, reasons, rejected
from ultr.preparation.collapse import (
    Collapsed,
    clicked_together,
    collapse,
    kept_pages,
    page_table,
    without_repeated_rows,
)
from ultr.preparation.columns import Columns
from ultr.preparation.documents import DocumentTable, joined_documents, numbered, shown_documents, with_rows
from ultr.preparation.engine import Engine, connect
from ultr.preparation.feature_matrix import categories_of, write_documents
from ultr.preparation.labels import grades_of, labels_of
from ultr.preparation.options import Options
from ultr.preparation.robots import marked, without_few
from ultr.preparation.sources import name_of, open_table
from ultr.preparation.summary import PutAside, Summary, Tally, in_words
from ultr.preparation.survey import Surveyed, survey
from ultr.preparation.times import day_begins, period_begins
from ultr.preparation.times import names as names_of

REJECTED = "rejected.parquet"
"""The file of the rows that are put aside."""
Told = Callable[[str], None]


@dataclass(frozen=True)
class Prepared:
    """A collapsed log and what became of every raw row."""

    log: ClickLog
    summary: Summary


def prepare(
    log: object,
    out: str | Path | None = None,
    *,
    overwrite: bool = False,
    append: str | Path | None = None,
    last: int | None = None,
    told: Told | None = None,
    **options: Any,
) -> Prepared:
    """Collapse a raw click log into the folder `out`, and tell what became of every row.

    `log` is a path (Parquet, CSV, TSV, JSON lines; a folder or a pattern), a query, a table of a database, or a frame
    of pandas, polars or Arrow, with one row for each shown document or for each result page. The options are the fields
    of `ultr.preparation.options.Options`: names of columns (`query="qid"`), `factors=[...]` and so on.

    The folder is that of `ClickLog.load`, with `summary.json`, `rejected.parquet` (the rows that were put aside, each
    with its reason) and `documents.parquet` (which document each row of the features is).

    With `append`, the folder of a log that was prepared with `periods="day"`, the days of `log` are added to it: the
    same log, bit for bit, as if all days had been prepared at once. Its options are taken over, and `out` is that
    folder unless it is given. With `last`, only so many days are kept. `told` is called with what was found out about
    the columns before the work begins.
    """
    grown = None if append is None else growth.Grown.load(append)
    if out is None and grown is None:
        raise OptionError("give the folder for the click log, as out or --out")
    target = Path(out if out is not None else str(append))
    chosen = Options.of(options if grown is None else grown.options(options))
    if last is not None and not chosen.by_day:
        raise OptionError("--last keeps days, so the log needs --time COLUMN and --periods day")
    with new_folder(target, overwrite=overwrite or out is None) as draft:
        work = draft / ".work"
        work.mkdir()
        with connect(chosen.engine, work, memory=chosen.memory) as engine:
            prepared = _Preparation(engine, log, chosen, draft, grown, last, told).run()
        prepared.log.write(draft)
        write_json(draft / "summary.json", prepared.summary.as_json(), sealed=True)
        shutil.rmtree(work)
    return replace(prepared, log=ClickLog.load(target))


def read_log(log: object, **options: Any) -> ClickLog:
    """The collapsed log of a raw one, in memory; the options are those of `prepare`.

    Rows that are put aside are a warning; `strict=True` makes them an error, and `prepare` keeps them in a file.

    >>> import pyarrow
    >>> pages = {"query": ["a", "a", "b"], "docs": [["x", "y"], ["x", "y"], ["z", "x"]], "clicks": ["10", "01", "10"]}
    >>> read_log(pyarrow.table(pages))
    ClickLog(2 lists of 2 queries, 3 impressions, 3 clicks, factors position)
    """
    chosen = Options.of(options)
    with tempfile.TemporaryDirectory(prefix="ultr-") as work:
        with connect(chosen.engine, Path(work), memory=chosen.memory) as engine:
            prepared = _Preparation(engine, log, chosen, None).run()
        for line in prepared.summary.warnings():
            warnings.warn(f"{line}; ultr.prepare keeps them in a file", stacklevel=2)
        return trusted(prepared.log, features=np.array(prepared.log.features))


@dataclass(frozen=True)
class _Preparation:
    """One log on its way; each step is a method, and `run` puts them in order."""

    engine: Engine
    log: object
    options: Options
    folder: Path | None
    """Where the rows that are put aside and the names of the documents go."""
    grown: growth.Grown | None = None
    last: int | None = None
    told: Told | None = None

    def run(self) -> Prepared:
        """The log and its summary; the features are in a file of the folder."""
        engine, options = self.engine, self.options
        found = self._survey()
        labels = self._labels(found)
        every = page_table(engine, found.rows)
        read = RowsRead.of(engine, every)
        named = every.filter(every.page.notnull()) if read.nameless else every
        pages, robots = marked(engine, found.rows, named, options.robots, drop=options.drop_robots)
        pages = without_few(engine, pages, of_query=options.fewest_pages, of_user=options.fewest_user_pages)
        begins = self._begins(kept_pages(pages)) if found.columns.time else []
        on_pages = partial(found.rows_on, engine)
        collapsed = collapse(engine, found.rows, pages, rows_on=on_pages, begins=begins)
        collapsed = without_repeated_rows(engine, found.rows, collapsed, begins)
        documents = self._documents(found, collapsed.shown, labels)
        account = self._account(found, read, collapsed, documents)
        _check_kept(engine.source, account, strict=options.strict)

        raw = assembly.raw_log(account.kept, documents.count, found.layout.factors, names_of(begins))
        if options.pairs:
            pairs = engine.fetch(clicked_together(engine, found.rows, collapsed))
            raw = assembly.with_pairs(raw, account.kept.ids, pairs)
        raw, used = assembly.compacted(self._joined(raw, documents))
        log, factors = assembly.merged_levels(raw, rare=options.rare)
        grades, conflicting = (None, 0) if labels is None else grades_of(engine, documents, used)
        log = replace(assembly.in_order(log), grades=grades, **self._features(documents, used))
        _check_use(log, engine.source, found.columns, account)
        if self.folder is not None:
            start = 1 if found.layout.pages else found.columns.first_position
            old = None if self.grown is None else self.grown.folder / REJECTED
            path = self.folder / REJECTED
            rejected.write_aside(engine, account.aside, found.columns, path, positions_from=start, old=old)
            if options.by_day:
                # What follows from where the log comes from follows again from the days that are added.
                asked = replace(found.columns, **{role: getattr(options, role) for role in found.opened.roles})
                growth.keep_growing(self.folder, raw, options, asked, documents.columns)
        summary = Summary(
            source=engine.source,
            engine=engine.name,
            columns=replace(found.columns, features=()),
            one_row_a_page=found.layout.pages,
            rows=account.rows,
            pages=account.pages,
            clicks=account.clicks,
            empty_pages=account.pages.kept - account.clicked_pages,
            reasons=account.reasons,
            factors=tuple(factors),
            lists=log.lists,
            queries=len(log.query_ids),
            documents=len(log.features),
            features=len(log.feature_names),
            missing=missing_shares(log.features, log.feature_names),
            unusable=self._unusable(found, account),
            changed=documents.changed,
            categories={name: len(values) for name, values in log.categories.items()},
            several_clicks=read.several,
            null_is_no_click=found.layout.null_is_no_click,
            signals={signal.name: int(signal.totals.sum()) for signal in log.signals},
            robots=robots,
            hints=(*found.hints, *_of_positions(log)),
            periods=log.period_names,
            grades=() if grades is None else grades.levels,
            judged=0 if grades is None else int((grades.values >= 0).sum()),
            conflicting_labels=conflicting,
            placed=assembly.placed(log),
            elsewhere=found.opened.elsewhere,
            notes=found.opened.notes,
        )
        return Prepared(log, summary if self.grown is None else self.grown.summary + summary)

    def _survey(self) -> Surveyed:
        self.engine.source = name_of(self.log)
        found = survey(self.engine, self.log, self.options, self.grown)
        if self.told is not None:
            self.told(found.in_words())
        return found

    def _begins(self, pages: Any) -> list[Any]:
        if self.options.by_day:
            return day_begins(self.engine, pages)
        return period_begins(self.engine, pages, count=int(self.options.periods))

    def _labels(self, found: Surveyed) -> Any | None:
        if found.columns.label is None:
            return None
        old = None if self.grown is None else self.grown.labels(self.engine)
        return labels_of(self.engine, found.rows, found.columns.label, what=self.engine.source, old=old)

    def _documents(self, found: Surveyed, shown: Any, labels: Any | None) -> DocumentTable:
        columns = found.layout.features
        if self.options.features_from is not None:
            second = open_table(self.engine, self.options.features_from)
            what = f"the table of features, {name_of(self.options.features_from)},"
            wanted = replace(found.columns, features=self.options.features)
            pairs, columns = joined_documents(self.engine, shown, second, wanted, what=what)
        else:
            pairs = shown_documents(shown, columns)
        old = None if self.grown is None else self.grown.documents(self.engine, columns)
        return numbered(self.engine, pairs, columns, labels=labels, old=old)

    def _account(self, found: Surveyed, read: RowsRead, collapsed: Collapsed, documents: DocumentTable) -> Account:
        """Which rows are kept, which are put aside, and why; every one of them is one or the other."""
        engine, pages, members = self.engine, collapsed.pages, collapsed.members
        engine.make_room()
        shown = self._fetched(found, collapsed, documents, several=read.several > 0)
        faults = shown.list_faults()
        fine = assembly.integers(shown.rows, "fault") == reasons.KEPT
        full = np.zeros(len(faults), dtype=np.bool_)
        full[shown.list_numbers[fine]] = True
        kept = shown.select(fine, full & (faults == reasons.KEPT))
        wrong = {int(number): int(fault) for number, fault in zip(shown.ids, faults, strict=True) if fault}
        spoiled = documents.table.filter(documents.table.fault != reasons.KEPT)
        spoiled = engine.keep(spoiled.select("query", "document", "fault").distinct())
        suspect = np.union1d(shown.ids[faults != reasons.KEPT], shown.ids[shown.list_numbers[~fine]])
        suspects = engine.keep(rejected.pages_with_faults(pages, members, suspect))
        rows = found.rows_on(engine, suspects, nameless=read.nameless)
        aside = engine.keep(rejected.rows_aside(rows, pages, members, wrong, spoiled))
        why = rejected.by_reason(engine, aside)
        impressions = assembly.integers(kept.lists, "impressions")
        kept_rows = int(impressions[kept.list_numbers].sum())
        kept_clicks = int(assembly.integers(kept.rows, "clicks").sum())
        lost = sum(each.rows for each in why), sum(each.clicks for each in why)
        repeated = read.rows - kept_rows - lost[0], read.clicks - kept_clicks - lost[1]
        assert min(repeated) >= 0, "a row is kept and put aside"
        assert repeated[0] == 0 or collapsed.again, "a row is neither kept nor put aside"
        return Account(
            kept=kept,
            aside=aside,
            reasons=why,
            rows=Tally(read.rows, kept_rows, repeated[0]),
            clicks=Tally(read.clicks, kept_clicks, repeated[1]),
            pages=Tally(engine.count(pages), int(impressions.sum())),
            clicked_pages=rejected.clicked_pages(engine, pages, members, aside, wrong),
        )

    def _fetched(
        self, found: Surveyed, collapsed: Collapsed, documents: DocumentTable, *, several: bool
    ) -> assembly.Shown:
        joined = with_rows(collapsed.shown, documents)
        # Few columns and narrow ones: this is all that Python ever holds of a log beside the log itself.
        cells = [f"f{i}" for i in range(len(found.layout.factors))]
        placed = [each for each in ("p0", "p1") if each in joined.columns]
        signals = {name: f"s{number}" for number, name in enumerate(found.columns.signals)}
        if several:
            signals[assembly.EVENTS] = "events"
        sums = signals.values()
        wanted = joined.select(
            "list", "row", "first", "fault", "clicks", *sums, *cells, *placed, position=joined.position.cast("int32")
        )
        return assembly.Shown.of(self.engine.fetch(wanted), self.engine.fetch(collapsed.lists), signals)

    def _joined(self, raw: ClickLog, documents: DocumentTable) -> ClickLog:
        """The log with the one that it is added to, its last days if these are asked for."""
        if self.grown is not None:
            growth.check_new_days(self.grown.raw, raw.period_names, source=self.engine.source, folder=self.grown.folder)
            raw = growth.joined(self.grown.raw, raw, documents.old_rows(self.engine, len(self.grown.raw.features)))
        return raw if self.last is None else growth.last_days(raw, self.last)

    def _features(self, documents: DocumentTable, used: Integers) -> dict[str, Any]:
        """The fields of the log that say what its documents are."""
        categories = categories_of(self.engine, documents, used)
        folder = self.folder
        features = write_documents(
            self.engine,
            documents,
            used,
            categories,
            matrix=(self.engine.work if folder is None else folder) / "features.npy",
            names=None if folder is None else folder / "documents.parquet",
        )
        return {"features": features, "feature_names": documents.feature_names, "categories": categories}

    def _unusable(self, found: Surveyed, account: Account) -> dict[str, int]:
        """The rows with a value that is no number, by feature, the most first."""
        features = found.layout.features
        if not any(each.reason == reasons.NOT_FINITE.text for each in account.reasons) or not features:
            return {}
        counts = {f"n{i}": each.unusable(found.table).cast("int64").sum() for i, each in enumerate(features)}
        row = self.engine.counts(found.table.aggregate(**counts))
        named = {each.name: row[f"n{i}"] for i, each in enumerate(features)}
        return {name: count for name, count in sorted(named.items(), key=lambda item: -item[1]) if count}


@dataclass(frozen=True)
class RowsRead:
    """Numbers of raw rows."""

    rows: int
    clicks: int
    """Rows with a click."""
    several: int
    """Rows with more than one."""
    nameless: bool
    """True if there are rows without an impression."""

    @classmethod
    def of(cls, engine: Engine, pages: Any) -> RowsRead:
        """The rows of all pages; none at all are a `DataError`."""
        found = engine.counts(
            pages.aggregate(
                rows=pages.rows.sum(),
                clicks=pages.all_clicks.sum(),
                several=pages.several.sum(),
                nameless=pages.page.isnull().any(),
            )
        )
        if not found["rows"]:
            raise DataError(f"{engine.source} has no rows; check the path")
        return cls(found["rows"], found["clicks"], found["several"], bool(found["nameless"]))


@dataclass(frozen=True)
class Account:
    """What becomes of the rows of a log."""

    kept: assembly.Shown
    aside: Any
    """The rows that are put aside, as a table of the engine."""
    reasons: tuple[PutAside, ...]
    rows: Tally
    clicks: Tally
    pages: Tally
    clicked_pages: int
    """Pages with a click on a row that is kept."""


def _of_positions(log: ClickLog) -> tuple[str, ...]:
    """A hint where nothing was shown at the first position."""
    first = int(log.positions.min())
    if first == 1:
        return ()
    return (f"nothing was shown at position 1, the first is {first}; if positions begin there, see --positions-from",)


def _check_kept(source: str, account: Account, *, strict: bool) -> None:
    parts, rows = in_words(account.reasons), account.rows
    if not rows.kept:
        zero = any(each.reason == reasons.BELOW_ONE.text for each in account.reasons)
        hint = "; if positions start at 0, give --positions-from 0" if zero else "; check the columns"
        raise DataError(f"no row of {source} can be kept ({parts}){hint}")
    if strict and rows.aside:
        raise DataError(
            f"{rows.aside:,} of {rows.read:,} rows of {source} have a fault ({parts}); "
            "mend them, or leave --strict out to put them aside"
        )


def _check_use(log: ClickLog, source: str, columns: Columns, account: Account) -> None:
    """Raise a `DataError` for a log that nothing can be learned from."""
    # Perhaps the rest was put aside, and that is what has to be mended.
    also = ""
    if account.reasons:
        also = f" ({account.rows.aside:,} of {account.rows.read:,} rows were put aside, {in_words(account.reasons)})"
    if not log.clicks.any():
        raise DataError(f"{source} has no click in the rows that are kept; check the column {columns.click!r}{also}")
    if (log.clicks == np.repeat(log.impressions, log.lengths)).all():
        raise DataError(
            f"every document of {source} was clicked whenever it was shown, so rows without a click are missing; "
            f"give all rows that were shown, or check the column {columns.click!r}{also}"
        )
    if (log.positions == log.positions[0]).all():
        where = f" {columns.position!r}" if columns.position else "s of positions and documents"
        raise DataError(
            f"all documents of {source} were shown at position {log.positions[0]}, "
            f"so position bias cannot be told from relevance; check the column{where}{also}"
        )
    if len(log.query_ids) == 1:
        raise DataError(
            f"{source} has one query only, {str(log.query_ids[0])[:100]!r}, and a ranker is learned from many; "
            f"check the column {columns.query!r}{also}"
        )
