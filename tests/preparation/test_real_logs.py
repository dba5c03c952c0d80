from __future__ import annotations

from pathlib import Path

import pytest

from ultr.preparation import prepare


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
