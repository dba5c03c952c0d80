from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import csv, parquet
from tests.preparation.test_log import GOOD_FEATURES, frame, page

from ultr.errors import MissingExtraError
from ultr.preparation import engine as engines
from ultr.preparation import prepare, read_log

needs_spark = pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None,
    reason="the engine spark needs pyspark (pip install 'ultr[spark]') and Java 17 or newer",
)


@needs_spark
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same_rows_as_duckdb(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = []
    for number in range(60):
        query = "ab"[random.integers(2)]
        documents = [name for name in "xyz" if (query, name) in GOOD_FEATURES]
        order = "".join(random.permutation(documents))
        clicks = "".join(random.choice(["0", "1"], size=len(order)))
        rows += page(number, query, order, clicks, random.choice(["phone", "desk", "watch"], p=[0.6, 0.35, 0.05]))
    rows[0] |= {"position": 0}
    rows[5] |= {"click": 2}
    days = [f"2024-02-{row['impression'] % 28 + 1:02}T0{row['position']}:30:00.5+02:00" for row in rows]
    days[-1], days[9] = "", "2024-02-30"
    csv.write_csv(frame(rows).append_column("day", [days]), tmp_path / "log.csv")
    features = [f"{q},{d},{v}" for (q, d), v in GOOD_FEATURES.items()][1:]
    (tmp_path / "features.csv").write_text("\n".join(["query,document,bm25", *features]) + "\n")
    options: dict[str, Any] = {
        "factors": ["device"],
        "rare": 5,
        "time": "day",
        "periods": 4,
        "pairs": True,
        "features_from": tmp_path / "features.csv",
    }
    one, other = (
        prepare(tmp_path / "log.csv", tmp_path / engine, engine=engine, memory="1GB", **options)
        for engine in ("duckdb", "spark")
    )
    assert one.log.fingerprint() == other.log.fingerprint()
    assert len(one.summary.periods) == 4
    assert one.summary.as_json() | {"engine": "spark"} == other.summary.as_json()
    aside = [
        sorted(map(str, parquet.read_table(tmp_path / engine / "rejected.parquet").to_pylist()))
        for engine in ("duckdb", "spark")
    ]
    assert aside[0] == aside[1]
    assert len(aside[0]) > 3


def test_an_engine_that_is_not_installed_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs ibis; install it with: pip install 'ultr\[prepare\]'"):
        read_log(frame(page(1, "a", "xy", "01")))
