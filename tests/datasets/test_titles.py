from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from ultr.datasets.titles import read_titles
from ultr.errors import DataError


def test_titles_are_read_by_id_from_csv_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "titles.csv").write_text('doc_id,price,title\n7,1,"Shoes, red"\n8,2,\n9,3,Hat\n')
    columns = {"item_id": [7, 8, 9], "product name": ["Shoes, red", None, "Hat"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "titles.parquet")
    (tmp_path / "products.csv").write_text('product,name\n7,"Shoes, red"\n9,Hat\n')
    for name in ("titles.csv", "titles.parquet", "products.csv"):
        assert read_titles(tmp_path / name) == {"7": "Shoes, red", "9": "Hat"}


@pytest.mark.parametrize(
    ("header", "missing"), [("doc_id,price", "the title"), ("title,price", "the document id"), ("a,b", "the document")]
)
def test_a_file_without_one_of_the_two_columns_is_refused(tmp_path: Path, header: str, missing: str) -> None:
    path = tmp_path / "titles.csv"
    path.write_text(f"{header}\n1,2\n")
    with pytest.raises(DataError, match=f"has no column that looks like {missing}.*it has: {header.split(',')[0]}"):
        read_titles(path)
