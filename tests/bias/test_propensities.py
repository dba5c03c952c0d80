from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ultr import click_rate_propensities, read_propensities
from ultr.bias import click_rate_curve
from ultr.clicks.model import EXAMINATION
from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.data.totals import Totals
from ultr.datasets.letor_like import letor_like
from ultr.errors import DataError
from ultr.simulation.log import simulate

VALUES = (1.0, 0.6, 0.45)

GOOD = {
    "list.json": json.dumps(VALUES),
    "object.json": json.dumps({"propensities": VALUES, "source": "last month"}),
    "json.txt": f"\n  {json.dumps(VALUES)}\n",
    "lines.txt": "1\n0.6\n\n0.45\n",
    "windows.txt": "\ufeff1\r\n0.6\r\n0.45\r\n",
    "header.csv": "Propensity\n1\n0.6\n0.45\n",
    "columns.csv": "position,propensity\n1,1\n2,0.6\n3,0.45\n",
    "quoted.csv": '"position", "propensity"\n"1", 1\n"2", 0.6\n"3", 4.5e-1\n',
    "disordered.csv": "3,0.45\n1,1\n2,0.6",
    "columns.tsv": "position\tpropensity\n1\t1\n2\t0.6\n3\t0.45\n",
    "spaces.txt": "  1   1\n  2  .6\n  3  .45\n",
}


@pytest.mark.parametrize("name", GOOD)
def test_every_form_of_the_file_gives_the_same_propensities(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(GOOD[name], newline="")
    assert read_propensities(tmp_path / name) == VALUES


def test_any_unit_serves(tmp_path: Path) -> None:
    (tmp_path / "percent.txt").write_text("68\n61\n48\n")
    assert read_propensities(str(tmp_path / "percent.txt")) == (68.0, 61.0, 48.0)


BAD = {
    "broken.json": ("[1, 0.5", "broken.json is not valid JSON .*line 1 column.*; write it again"),
    "number.json": ("3", "number.json has no list of propensities"),
    "key.json": ('{"theta": [1]}', "no list of propensities; .* the key propensities"),
    "none.json": ("[]", "none.json has no propensities"),
    "nan.json": ("[1, NaN]", "position 2: nan is not a propensity; write a number above 0"),
    "true.json": ("[1, true]", "position 2: True is not a propensity"),
    "null.json": ("[1, null]", "position 2: None is not a propensity"),
    "huge.json": (f"[1, 1{'0' * 400}]", "position 2: .* is not a propensity"),
    "empty.csv": ("", "empty.csv has no propensities; write one number a line, or position,propensity"),
    "only-header.csv": ("position,propensity\n", "has no propensities"),
    "unknown-header.csv": ("rank,theta\n1,1\n", "line 1: 'rank theta' is neither a number nor a known header"),
    "letter.txt": ("1\n\nO.6\n", "letter.txt, line 3: 'O.6' is not a propensity; write a number above 0"),
    "first.txt": ("O.9\n1\n", "first.txt, line 1: 'O.9' is not a propensity"),
    "zero.txt": ("1\n0\n", "line 2: '0' is not a propensity"),
    "negative.csv": ("1,1\n2,-0.5\n", "line 2: '-0.5' is not a propensity"),
    "infinite.txt": ("1\ninf\n", "line 2: 'inf' is not a propensity"),
    "mixed.csv": ("1\n2,0.6\n", "line 2: 2 columns, expected 1 as in the lines before"),
    "wide.csv": ("1,1,1\n", "line 1: 3 columns, expected one or two columns"),
    "from-zero.csv": ("0,1\n1,0.6\n", "line 1: '0' is not a position; positions are whole numbers from 1"),
    "half.csv": ("1,1\n1.5,0.6\n", "line 2: '1.5' is not a position"),
    "twice.csv": ("1,1\n2,0.6\n1,0.9\n", "line 3: position 1 stands on line 1 already; keep one"),
    "gap.csv": ("1,1\n4,0.6\n2,0.7\n", "gap.csv has no position 3, but line 2 has position 4"),
    "late.csv": ("2,1\n3,0.6\n", "has no position 1, but line 2 has position 3; write every position from 1 on"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_content_is_named_with_file_and_line(name: str, tmp_path: Path) -> None:
    content, message = BAD[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_propensities(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read the propensities .*nothing\.csv"):
        read_propensities(tmp_path / "nothing.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe1\x00")
    with pytest.raises(DataError, match=r"bytes\.csv is not a text file"):
        read_propensities(tmp_path / "bytes.csv")


def _log(clicks: list[int]) -> ClickLog:
    """Two lists of two documents, shown 10 and 30 times."""
    return ClickLog.of(
        features=[[0.1], [0.7]], documents=[0, 1, 1, 0], offsets=[0, 2, 4], clicks=clicks, impressions=[10, 30]
    )


def test_click_rates_are_weighted_by_impressions_and_start_at_one() -> None:
    # 8 of 40 impressions clicked at the first position, 2 of 40 at the second.
    np.testing.assert_allclose(click_rate_propensities(_log([2, 1, 6, 1])), [1.0, 0.25])


@pytest.mark.parametrize(
    ("clicks", "impressions", "said"),
    [
        # 8 of 40 at the first; with p = 0.0722 a click on none of 40 has a chance of (1 - p)^40 = 0.05.
        (
            [8, 0],
            [40, 40],
            "position 2 has no click on 40 impressions, so it has no click rate to go by, only a bound: it is clicked "
            "at most about 0.36 times as often as the first; log more pages, or give a file of propensities",
        ),
        (
            [300, 30, 0, 0],
            [1_000, 1_000, 1, 0],
            "position 3 has no click on 1 impression, so it has no click rate to go by, only a bound: it is clicked "
            f"at most about {0.95 / 0.3:.2g} times as often as the first; log more pages, leave out of every log what "
            "stands below position 2, or give a file of propensities",
        ),
        (
            [300, 0],
            [1_000, 0],
            "position 2 has no click on 0 impressions, so it has no click rate to go by; log more pages, or give a "
            "file of propensities",
        ),
        (
            [0, 3],
            [1_000, 1_000],
            "position 1 has no click on 1,000 impressions, so it has no click rate to go by; log more pages, or give a "
            "file of propensities",
        ),
    ],
)
def test_a_position_without_a_click_has_a_bound_and_no_rate(
    clicks: list[int], impressions: list[int], said: str
) -> None:
    totals = Totals(np.array(impressions, dtype=np.float64), np.array(clicks, dtype=np.float64))
    with pytest.raises(DataError) as raised:
        click_rate_curve(totals)
    assert str(raised.value) == said
    with pytest.raises(DataError, match="position 2 has no click on 40 impressions"):
        click_rate_propensities(_log([2, 0, 6, 0]))


def test_the_click_rates_of_random_rankings_are_the_examination_curve() -> None:
    train = letor_like(train_queries=300, validation_queries=1, test_queries=1).train
    log = simulate(train, click_model("position-based"), impressions=10**8, svm_share=0.1, rankings=200, noise=1e6)
    np.testing.assert_allclose(click_rate_propensities(log), np.array(EXAMINATION) / EXAMINATION[0], atol=0.02)
