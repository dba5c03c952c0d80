"""`ultr simulate --signal` and `ultr train --value`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.console import ultr

from ultr.data.click_log import ClickLog
from ultr.methods import load

TINY = ["--steps", 10, "--set", "hidden=8"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulate") / "log"
    rates = ["--signal", "purchase=0.1,0.2,0.3,0.4,0.5", "--signal", "cart=0.01,0.02,0.03,0.04,0.05"]
    described = ultr(
        "simulate", "--data", "letor-like=60", "--impressions", 20_000, "--svm-share", 0.1, *rates, "--out", folder
    )
    totals = {signal.name: int(signal.totals.sum()) for signal in ClickLog.load(folder).signals}
    assert list(totals) == ["purchase", "cart"]
    for name, total in totals.items():
        assert f"signal {name}: {total:,}" in described.stdout
    return folder


def test_totals_of_signals_are_in_the_json(tmp_path: Path) -> None:
    rates = ["--signal", "purchase=0.1,0.2,0.3,0.4,0.5"]
    printed = ultr(
        "simulate", "--data", "letor-like=60", "--svm-share", 0.1, *rates, "--out", tmp_path / "log", "--json"
    )
    log = ClickLog.load(tmp_path / "log")
    assert json.loads(printed.stdout)["signals"] == {"purchase": int(log.signal("purchase").sum())}


def test_a_signal_is_short_for_a_value_and_both_are_options_of_the_model(log: Path, tmp_path: Path) -> None:
    one = ultr("train", "dla", "--log", log, *TINY, "--signal", "purchase", "--out", tmp_path / "one")
    ultr("train", "dla", "--log", log, *TINY, "--value", "purchase=1", "--out", tmp_path / "two")
    ultr("train", "dla", "--log", log, *TINY, "--set", "value=purchase=1,click=0.5", "--out", tmp_path / "three")
    assert "value: 1 purchase; bias is learned from clicks, what follows them is assumed not to depend" in one.stderr
    assert "stage value: 10 steps" in one.stdout
    rankers = [load(tmp_path / name) for name in ("one", "two", "three")]
    values = [ranker.options["value"] for ranker in rankers]
    assert values == [{"purchase": 1.0}, {"purchase": 1.0}, {"purchase": 1.0, "click": 0.5}]
    features = ClickLog.load(log).features[:50]
    first, second, third = (ranker.score(features) for ranker in rankers)
    np.testing.assert_array_equal(first, second)
    assert (first != third).any()


def test_a_comparison_by_clicks_says_so_of_a_ranker_by_value(log: Path, tmp_path: Path) -> None:
    ultr("train", "click", "--log", log, *TINY, "--value", "click=1,purchase=20", "--out", tmp_path / "valued")
    ultr("train", "click", "--log", log, *TINY, "--out", tmp_path / "usual")
    told = ultr("compare", tmp_path / "usual", tmp_path / "valued", "--log", log)
    hint = "is compared by clicks; --value click=1,purchase=20 compares by value"
    assert f"{tmp_path / 'valued'} ranks by value (1 click + 20 purchase), and {hint}" in told.stderr
    asked = ("compare", tmp_path / "usual", tmp_path / "valued", "--log", log, "--value", "click=1,purchase=20")
    told = ultr(*asked)
    assert told.stderr == ""
    assert "Rankings are compared by value (1 click + 20 purchase)" in told.stdout
    assert json.loads(ultr(*asked, "--json").stdout)["value_of"] == "1 click + 20 purchase"
    assert "no signal 'sale'" in ultr(*asked[:-1], "sale=1", expect=2).stderr
    assert "usual ranks by value" not in told.stderr


def test_few_of_a_signal_are_a_line_on_the_screen(log: Path, tmp_path: Path) -> None:
    kept = ClickLog.load(log).split()[0].signal("cart").sum()
    told = ultr("train", "click", "--log", log, *TINY, "--signal", "cart", "--out", tmp_path / "model")
    assert f"signal 'cart' occurs {kept} times in the training log, too few" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dla", "--signal", "order"], "the training log has no signal 'order'; its signals are click, purchase, cart"),
        (["dla", "--value", "purchase=0"], "value must have a weight above 0"),
        (["dla", "--value", "purchase=-1"], "the weight of 'purchase' in value must be a number of at least 0"),
        (["dla", "--value", "purchase"], "value cannot be 'purchase': input should be a valid number"),
        (["dla", "--value", "purchase=1,purchase=2"], "value cannot be 'purchase=1,purchase=2': a name is given twice"),
        (["dla", "--value", "purchase=1", "--signal", "cart"], "--signal NAME is short for --value NAME=1"),
        (["dla", "--value", "purchase=1", "--set", "value=cart=1"], "option value is given twice"),
        (["pair-debias", "--signal", "cart"], "method pair-debias has no option value: it has no click model"),
        (["lightgbm", "--signal", "cart"], "method lightgbm has no option value: it has no click model"),
    ],
    ids=str,
)
def test_values_that_do_not_fit_are_refused(log: Path, arguments: list[str], message: str, tmp_path: Path) -> None:
    told = ultr("train", *arguments, "--log", log, "--out", tmp_path / "model", expect=2)
    assert message in told.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("signals", "message"),
    [
        (["purchase"], "--signal needs NAME=RATES such as purchase=0.02,0.1, got 'purchase'"),
        (["purchase=0.1,x"], "the rates of signal purchase cannot be '0.1,x'"),
        (["purchase=0.1,0.2"], "signal 'purchase' needs a probability for each of 5 grades"),
        (["buy=0,0,0,0,0", "buy=0,0,0,0,0"], "signal buy is given twice"),
        (["click=0,0,0,0,0"], "two signals of a click log have the same name"),
    ],
    ids=str,
)
def test_rates_that_do_not_fit_are_refused(signals: list[str], message: str, tmp_path: Path) -> None:
    given = [part for signal in signals for part in ("--signal", signal)]
    told = ultr("simulate", "--data", "letor-like=20", "--svm-share", 0.5, *given, "--out", tmp_path / "log", expect=2)
    assert message in told.stderr
    assert not list(tmp_path.iterdir())
