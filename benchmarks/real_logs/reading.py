"""The raw files of the two logs as click logs.

Expedia (ICDM 2013): one row for each hotel of a search, `random_bool` = 1 where the site showed the hotels in random
order. trivago (RecSys 2019): one row for each hotel of a result list, with the device; or the public file, one row for
each action of a session. Each may be a part or the whole of the public files, and several of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from ultr.arrays import Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.errors import DataError

EXPEDIA, TRIVAGO = "expedia", "trivago"
"""Folders of the files."""
AFTERWARDS = ("click_bool", "booking_bool", "gross_bookings_usd")
"""Columns of Expedia that are known only after the list was shown."""
NO_FEATURES = (
    *("srch_id", "date_time", "position", "random_bool", *AFTERWARDS),
    *("prop_id", "site_id", "srch_destination_id", "visitor_location_country_id", "prop_country_id"),
)
"""Columns of Expedia that are not learned from: the display, the outcome, and identifiers, which are no quantities."""
BOOKING = "booking"
SHOWN = ("serp", "city", "item_id", "device", "position", "price", "click")
ACTIONS = ("action_type", "reference", "city", "device", "impressions", "prices")
"""Columns of trivago's public file."""
CLICKOUTS = """
    SELECT serp, city, unnest(hotels)::BIGINT AS item_id, device, generate_subscripts(hotels, 1) AS position,
           unnest(string_split(prices, '|'))::DOUBLE AS price, (unnest(hotels) = reference)::INT AS click
    FROM (SELECT *, row_number() OVER () AS serp, string_split(impressions, '|') AS hotels
          FROM rows WHERE action_type = 'clickout item' AND list_contains(string_split(impressions, '|'), reference))
"""
"""A row for each hotel of the lists in trivago's public file one of whose hotels was clicked."""

Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class ShownLists:
    """A click log whose documents are the rows of a raw file, and columns of that file beside it."""

    log: ClickLog
    """Every shown hotel is a document of its own, with the features that it had in that search."""
    columns: Mapping[str, npt.NDArray[Any]]
    """[documents], one value for each row of `log.features`."""

    def of_rows(self, name: str) -> npt.NDArray[Any]:
        """A column in the order of the log's shown documents."""
        return self.columns[name][self.log.documents]

    def identities(self, *names: str) -> Integers:
        """A number for each shown document, equal where all of these columns are."""
        numbers = np.zeros(len(self.log.documents), dtype=np.int64)
        for name in names:
            values, codes = np.unique(self.of_rows(name), return_inverse=True)
            numbers = np.unique(numbers * len(values) + codes, return_inverse=True)[1]
        return numbers


def read_expedia(folder: Path, *, pairs: bool = False) -> tuple[ShownLists, ShownLists]:
    """The searches in the site's order and those in random order, with bookings as a signal."""
    columns = _read(folder, ("searches", "train"), ("srch_id", "prop_id", "position", "random_bool", *AFTERWARDS))
    names = [name for name in columns if name not in NO_FEATURES and columns[name].dtype.kind in "iuf"]
    ordered, random = (_rows(columns, columns["random_bool"] == value) for value in (0, 1))
    if not len(ordered["srch_id"]) or not len(random["srch_id"]):
        raise DataError(f"{folder} needs searches of both kinds, random_bool 0 and 1")
    parts = [
        _shown_lists(
            part, "srch_id", click="click_bool", features=names, signals={BOOKING: "booking_bool"}, pairs=pairs
        )
        for part in (ordered, random)
    ]
    return parts[0], parts[1]


def read_trivago(folder: Path) -> ShownLists:
    """The result lists, with the price as the only feature and the device as a second bias factor."""
    if any(folder.glob("clickouts*.csv*")):
        columns = _read(folder, ("clickouts",), SHOWN)
    else:
        columns = _read(folder, ("train",), ACTIONS, query=CLICKOUTS, as_text=True)
    return _shown_lists(columns, "serp", click="click", features=["price"], factors=["device"])


def _read(
    folder: Path, beginnings: Sequence[str], needed: Sequence[str], *, query: str = "FROM rows", as_text: bool = False
) -> Columns:
    """What a query makes of the CSV files whose names begin in one of these ways, taken together as `rows`."""
    found = (sorted(map(str, folder.glob(f"{each}*.csv*"))) for each in beginnings)
    files = next((each for each in found if each), None)
    if files is None:
        wanted = " or ".join(f"{each}*.csv" for each in beginnings)
        raise DataError(f"there is no file {folder / wanted}; give the folder that holds {folder.name} as --data")
    with duckdb.connect() as connection:
        try:
            # Types are guessed from all rows: some columns are empty for thousands of them.
            rows = connection.read_csv(
                files,  # type: ignore[arg-type]
                header=True,
                na_values=["", "NULL"],
                sample_size=-1,
                all_varchar=as_text,
                union_by_name=True,
            )
            if absent := [name for name in needed if name not in rows.columns]:
                raise DataError(f"{files[0]} has no column {absent[0]!r}; take the columns of the public file")
            return _arrays(rows.query("rows", query).to_arrow_table())
        except duckdb.Error as error:
            raise DataError(f"{files[0]} is not a CSV file that can be read: {error}") from error


def _arrays(table: Any) -> Columns:
    """The columns of an Arrow table; numbers with gaps have NaN there."""
    return {name: table[name].to_numpy() for name in table.column_names}


def _rows(columns: Columns, chosen: npt.NDArray[Any]) -> Columns:
    return {name: values[chosen] for name, values in columns.items()}


def _shown_lists(
    columns: Columns,
    key: str,
    *,
    click: str,
    features: Sequence[str],
    factors: Sequence[str] = (),
    signals: Mapping[str, str] | None = None,
    pairs: bool = False,
) -> ShownLists:
    """The log of some rows, where each value of the column `key` is a list that was shown once."""
    columns = _rows(columns, np.lexsort((columns["position"], columns[key])))
    ids, lengths = np.unique(columns[key], return_counts=True)
    others: dict[str, Any] = {name: columns[name] for name in factors}
    log = ClickLog.of(
        features=np.stack([columns[name].astype(np.float32) for name in features], axis=1),
        feature_names=features,
        documents=np.arange(len(columns[key])),
        offsets=ragged.from_lengths(lengths),
        positions=columns["position"],
        clicks=columns[click],
        queries=ids.tolist(),
        signals={name: columns[column] for name, column in (signals or {}).items()},
        pairs=pairs,
        **others,
    )
    return ShownLists(log, columns)
