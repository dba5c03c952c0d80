"""The options of a preparation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ultr import checks
from ultr.data.grades import written
from ultr.errors import OptionError
from ultr.preparation.columns import UBI, Columns, read_columns
from ultr.preparation.engine import DUCKDB, check_memory

MEMORY = "4GB"
RARE = 100
PERIODS = 10
MOST_PERIODS = 1_000


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `prepare` and `read_log`; columns that are not named are guessed from usual names."""

    query: str | None = None
    document: str | None = None
    position: str | None = None
    click: str | None = None
    impression: str | Sequence[str] | None = None
    """Column that tells one result page from another; several together if one does not."""
    time: str | None = None
    """Time of the page: timestamps, dates, numbers, or text of these; a page's time is the smallest of its rows.

    Not a cause of bias: the same list in two periods of time is two rows of the log, which can then be split by time.
    """
    periods: int = PERIODS
    """Number of periods that the time is cut into, with about as many pages each."""
    label: str | None = None
    """A judge's label of the document, as a number or a text; to examine the log by, never to train on."""
    unjudged: Sequence[object] = ()
    """Labels that say that there is none, such as `-1`."""
    factors: Sequence[str] = ()
    """Columns that are causes of bias, beside the position."""
    features: Sequence[str] = ()
    """Columns of features, by name or by pattern such as `bm25_*`."""
    features_from: Any = None
    """A second table with the features, joined by query and document."""
    columns: str | Path | None = None
    """A TOML file with the names, or yandex, sogou, trec2014 or ubi; what is named beside it counts more."""
    positions_from: int | None = None
    """The number of the first position in the log, by default 1."""
    engine: str = DUCKDB
    """`duckdb`, `spark`, or the connection string of another Ibis back end."""
    memory: str = MEMORY
    """Memory that the engine may use before it spills to disk."""
    rare: int = RARE
    """A value of a bias factor with fewer impressions than this becomes the level `other`."""
    pairs: bool = False
    """Also count which documents were clicked together, which `PairDebias` needs."""
    strict: bool = False
    """Stop at the first row that would be put aside."""

    @classmethod
    def of(cls, given: dict[str, Any]) -> Options:
        """Checked options; an unknown name is an `OptionError` that lists them all."""
        for name in given:
            checks.one_of("an option of a preparation", name, [field.name for field in fields(cls)])
        options = cls(**given)
        checks.integer("rare", options.rare, at_least=0)
        if checks.integer("periods", options.periods, at_least=2) > MOST_PERIODS:
            raise OptionError(f"periods must be at most {MOST_PERIODS:,}, got {options.periods:,}")
        check_memory(options.memory)
        if options.positions_from is not None:
            checks.integer("positions_from", options.positions_from, at_least=0)
        for name in ("factors", "features"):
            value = getattr(options, name)
            if value is None or isinstance(value, str) or not all(isinstance(each, str) for each in value):
                raise OptionError(f"{name} must be a list of columns, got {value!r}")
        if isinstance(options.unjudged, str):
            raise OptionError(f"unjudged must be a list of labels, got the text {options.unjudged!r}")
        factors = [*options.factors]
        if len(set(factors)) < len(factors):
            raise OptionError(f"a bias factor is given twice: {', '.join(factors)}")
        if "position" in factors:
            raise OptionError("the position is a bias factor in any case; leave it out of the factors")
        return options

    @property
    def ubi(self) -> bool:
        """True if the log is one of OpenSearch's User Behavior Insights."""
        return str(self.columns) == UBI

    def named(self) -> Columns:
        """The columns as far as they are named."""
        single = ("query", "document", "position", "click", "time", "label", "positions_from")
        return (Columns() if self.columns is None else read_columns(self.columns)).with_given(
            **{name: getattr(self, name) for name in single},
            impression=(self.impression,) if isinstance(self.impression, str) else tuple(self.impression or ()),
            unjudged=tuple(written(each) for each in self.unjudged),
            factors=tuple(self.factors),
            features=tuple(self.features),
        )
