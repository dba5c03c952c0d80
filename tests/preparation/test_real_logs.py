from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from ultr.evaluation import click_fit
from ultr.methods import ClickBaseline
from ultr.preparation.log import prepare
from ultr.relevance import Trees


@pytest.mark.parametrize(
    ("file", "pages", "queries", "lists", "twice"),
    [
        ("yandex/sessions.tsv.gz", 56_477, 20, 1_505, 0),
        ("sogou/sessions.tsv.gz", 8_809, 3_389, 4_763, 0),
        # 108 pages show a document twice; 86 queries have no other page.
        ("trec2014/serps.tsv.gz", 3_596 + 856, 2_544 - 86, 2_743, 108),
    ],
)
def test_the_real_logs_have_the_pages_and_queries_that_their_description_counts(
    file: str, pages: int, queries: int, lists: int, twice: int, shared_data: Path, tmp_path: Path
) -> None:
    prepared = prepare(shared_data / file, tmp_path / "log", columns=file.split("/")[0])
    assert prepared.summary.pages.read == pages
    assert prepared.summary.pages.aside == twice
    assert prepared.summary.rows.read == 10 * pages
    assert (prepared.summary.queries, prepared.log.lists) == (queries, lists)
    assert prepared.log.features.shape[1] == 0


@pytest.mark.parametrize(
    ("file", "column", "levels"),
    [
        ("sogou/sessions.tsv.gz", "labels(-1 none, 0..5)", ("0", "1.33333", "2", "2.66667", "3", "4", "5")),
        ("trec2014/serps.tsv.gz", "labels", ("-2", "0", "1", "2", "3", "4")),
    ],
)
def test_the_labels_of_the_real_logs_are_those_of_a_count_by_hand(
    file: str, column: str, levels: tuple[str, ...], shared_data: Path, tmp_path: Path
) -> None:
    shown: set[tuple[str, str]] = set()
    said: dict[tuple[str, str], set[str]] = defaultdict(set)
    with gzip.open(shared_data / file, "rt") as lines:
        for page in csv.DictReader(lines, delimiter="\t"):
            documents, labels = page["docs"].split(","), page[column].split(",")
            if len(set(documents)) == len(documents):
                shown |= {(page["query"], document) for document in documents}
            if page[column]:
                for document, label in zip(documents, labels, strict=True):
                    said[page["query"], document] |= {label} - ({"-1"} if "none" in column else set())
    prepared = prepare(shared_data / file, tmp_path / "log", columns=file.split("/")[0])
    summary = prepared.summary
    assert summary.grades == levels
    assert summary.judged == sum(len(said[each]) == 1 for each in shown)
    assert summary.conflicting_labels == sum(len(said[each]) > 1 for each in shown)
    names = parquet.read_table(tmp_path / "log" / "documents.parquet").to_pylist()
    grades = prepared.log.grades
    assert grades is not None
    for row, value in zip(names, grades.values, strict=True):
        labels = said[row["query"], row["document"]]
        assert labels == {grades.levels[value]} if value >= 0 else len(labels) != 1


def test_hotels_with_missing_features_are_kept_and_counted_as_by_hand(shared_data: Path, tmp_path: Path) -> None:
    with gzip.open(shared_data / "expedia" / "searches.csv.gz", "rt") as lines:
        rows = list(csv.DictReader(lines))
    names = [name for name in rows[0] if name.startswith(("prop_", "price", "comp")) and name != "prop_id"]
    prepared = prepare(
        shared_data / "expedia" / "searches.csv.gz",
        tmp_path / "log",
        impression=["srch_id"],
        query="srch_id",
        document="prop_id",
        click="click_bool",
        features=names,
    )
    assert prepared.summary.rows.aside == prepared.summary.changed == 0
    gaps = {name: sum(row[name] == "" for row in rows) / len(rows) for name in names}
    assert len([name for name in names if gaps[name]]) > 20
    assert prepared.summary.missing == pytest.approx({name: share for name, share in gaps.items() if share})
    assert list(prepared.summary.missing.values()) == sorted(prepared.summary.missing.values(), reverse=True)
    expected = {
        (row["srch_id"], row["prop_id"]): np.array([row[name] or "nan" for name in names], dtype=np.float32)
        for row in rows
    }
    for row in parquet.read_table(tmp_path / "log" / "documents.parquet").to_pylist()[::50]:
        found = prepared.log.features[row["row"]]
        np.testing.assert_array_equal(found, expected[row["query"], row["document"]])
    kept, held = prepared.log.split()
    ranker = ClickBaseline(relevance=Trees(rounds=10)).fit(kept, validation=held)
    filled = np.nan_to_num(held.features)
    assert not np.array_equal(ranker.score(held.features), ranker.score(filled)), "a gap is no zero"
    assert click_fit(ranker, held).list_log_likelihood > -np.log(held.lengths).mean(), "better than chance"
