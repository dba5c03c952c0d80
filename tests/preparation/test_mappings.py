from __future__ import annotations

import csv
import gzip
import re
import tomllib
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from ultr.preparation.engine import connect
from ultr.preparation.log import prepare
from ultr.preparation.sources import open_table

MAPPINGS = files("ultr.preparation") / "mappings"
PAGE = Path(__file__).parents[2] / "docs" / "prepare.md"


def mapping(name: str) -> dict[str, Any]:
    return tomllib.loads((MAPPINGS / f"{name}.toml").read_text())


def rows_of(path: Path, **options: Any) -> list[dict[str, str]]:
    with gzip.open(path, "rt") as lines:
        return list(csv.DictReader(lines, **options))


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("yandex", "yandex/sessions.tsv.gz"),
        ("sogou", "sogou/sessions.tsv.gz"),
        ("trec2014", "trec2014/serps.tsv.gz"),
        ("expedia", "expedia/searches.csv.gz"),
        ("trivago", "trivago/clickouts.csv.gz"),
    ],
)
def test_a_mapping_names_columns_of_its_file(name: str, file: str, shared_data: Path) -> None:
    with gzip.open(shared_data / file, "rt") as lines:
        columns = next(csv.reader(lines, delimiter="\t" if "tsv" in file else ","))
    known = mapping(name)
    single = [known[role] for role in ("impression", "query", "document", "position", "click", "time") if role in known]
    for column in [*single, *known.get("factors", ()), *known.get("signals", {}).values()]:
        assert column in columns


def test_the_features_of_hotels_are_numbers_that_are_known_before_the_click(shared_data: Path) -> None:
    rows = rows_of(shared_data / "expedia" / "searches.csv.gz")
    patterns = mapping("expedia")["features"]
    out = [pattern.removeprefix("!") for pattern in patterns if pattern.startswith("!")]
    chosen = [name for name in rows[0] if not any(fnmatchcase(name, pattern) for pattern in out)]
    assert patterns[0] == "*"
    assert not {"position", "click_bool", "booking_bool", "gross_bookings_usd", "random_bool"} & set(chosen)
    assert {"price_usd", "prop_starrating", "srch_adults_count", "comp8_rate", "prop_brand_bool"} <= set(chosen)
    assert len(chosen) == 54 - len({"srch_id", "prop_id", "site_id", "date_time", "position", "random_bool"}) - len(
        {"visitor_location_country_id", "prop_country_id", "srch_destination_id"}
    ) - len({"click_bool", "booking_bool", "gross_bookings_usd"})
    for row in rows[::100]:
        for name in chosen:
            assert row[name] == "" or float(row[name]) == float(row[name])


def test_the_clickouts_of_trivago_have_the_lists_that_their_description_counts(
    shared_data: Path, tmp_path: Path
) -> None:
    prepared = prepare(shared_data / "trivago" / "clickouts.csv.gz", tmp_path / "log", columns="trivago")
    assert prepared.summary.pages.read == 3_102
    assert prepared.summary.rows.read == 71_131
    assert prepared.log.feature_names == ("price",)
    assert len(prepared.log.factors[1].levels) == 3


COLUMNS = (
    "user_id,session_id,timestamp,step,action_type,reference,platform,city,device,current_filters,impressions,prices"
)
TRAIN = f"""{COLUMNS}
u,s1,1541037460,1,search for poi,Port,AU,"Sydney, Australia",mobile,,,
u,s1,1541037522,2,clickout item,007,AU,"Sydney, Australia",mobile,,5|007|9,50|60|70
u,s1,1541037532,3,clickout item,5,AU,"Sydney, Australia",mobile,Hotel|4 Star,5|007|9,50|60|70
v,s2,1541037542,1,clickout item,1,BR,"Rio, Brazil",desktop,,4,10
"""


def test_the_query_of_the_page_makes_rows_of_the_public_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.csv").write_text(TRAIN)
    found = re.search(r'clickouts = """(.*?)"""', PAGE.read_text(), flags=re.DOTALL)
    assert found is not None
    with connect("duckdb", tmp_path, memory="1GB") as engine:
        rows = engine.fetch(open_table(engine, f"sql:{found[1]}")).to_pylist()
    names = ["serp", "position", "item_id", "price", "click", "city", "device", "filtered", "timestamp"]
    sydney = ["Sydney, Australia", "mobile"]
    expected = [
        ["s1 2", 1, "5", "50", 0, *sydney, 0, "1541037522"],
        ["s1 2", 2, "007", "60", 1, *sydney, 0, "1541037522"],
        ["s1 2", 3, "9", "70", 0, *sydney, 0, "1541037522"],
        ["s1 3", 1, "5", "50", 1, *sydney, 1, "1541037532"],
        ["s1 3", 2, "007", "60", 0, *sydney, 1, "1541037532"],
        ["s1 3", 3, "9", "70", 0, *sydney, 1, "1541037532"],
        ["s2 1", 1, "4", "10", 0, "Rio, Brazil", "desktop", 0, "1541037542"],
    ]
    assert sorted([row[name] for name in names] for row in rows) == expected
    assert set(rows[0]) == {*names, "session_id", "step", "platform"}
