"""Small runs to report on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from ultr.clicks.registry import click_model
from ultr.data.bias_factor import BiasFactor
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.datasets.splits import Splits
from ultr.errors import UltrWarning
from ultr.methods import DLA, ClickBaseline, LabelBaseline, Vectorization
from ultr.methods.estimator import Estimator
from ultr.methods.origin import Origin
from ultr.pages import Page
from ultr.relevance import MLP
from ultr.reporting import Model, ReportInputs, comparison_report, report
from ultr.simulation.log import simulate

TINY: dict[str, Any] = {"relevance": MLP(hidden=(8,), steps=20, batch_size=32), "evaluate_every": 5}


@cache
def data() -> Splits:
    """Few judged queries."""
    return letor_like(train_queries=60, validation_queries=20, test_queries=30, features=16)


@cache
def log(*, graded: bool = True) -> ClickLog:
    """A log with swaps and a second bias factor, and with what a judge said if asked for."""
    found = simulate(
        data().train, click_model("trust"), impressions=30_000, svm_share=0.2, rankings=4, noise=0.5, seed=1
    )
    devices = np.random.default_rng(0).integers(3, size=found.lists)
    device = BiasFactor("device", np.repeat(devices, found.lengths).astype(np.int32), ("desktop", "phone", "tablet"))
    return replace(found, factors=(*found.factors, device), grades=found.grades if graded else None)


@cache
def rankers(*, graded: bool = True) -> dict[str, Estimator]:
    """One of each kind, trained for a moment; those on clicks without a tenth of the queries."""
    part, held = log(graded=graded).split()
    with pytest.warns(UltrWarning, match="device"):
        dual = DLA(**TINY).fit(part, validation=held)
    return {
        "raw": ClickBaseline(**TINY).fit(part, validation=held),
        "vectors": Vectorization(dimension=3, base_hidden=(4,), **TINY).fit(part, validation=held),
        "dual": dual,
        "labels": LabelBaseline(**TINY).fit(data().train, validation=data().validation),
    }


def saved(folder: Path, *names: str, graded: bool = True) -> tuple[Model, ...]:
    """These rankers as saved models."""
    for name in names:
        origin = Origin(command=f"ultr train {name}", log="../log", validation="clicks", hold_out="query")
        rankers(graded=graded)[name].save(folder / name, origin=origin, overwrite=True)
    return tuple(Model.load(folder / name) for name in names)


@cache
def by_labels() -> Page:
    """All models on judged lists."""
    with TemporaryDirectory() as folder:
        models = saved(Path(folder), "raw", "vectors", "labels")
    inputs = ReportInputs(
        models, log=log(), log_name="log", judged=data().test, judged_name="the test part", samples=10, draws=19
    )
    return report(inputs, name="a run", command="ultr report run")


@cache
def by_clicks() -> Page:
    """A model beside raw clicks, on a log without grades."""
    with TemporaryDirectory() as folder:
        models = saved(Path(folder), "vectors", "raw", graded=False)
    missing = ("There are no labels; give --data.",)
    inputs = ReportInputs(models, log=log(graded=False), samples=10, draws=19, missing=missing)
    return report(inputs, name="a run", command="ultr report run --against raw")


@cache
def compared() -> Page:
    """Two models side by side."""
    with TemporaryDirectory() as folder:
        models = saved(Path(folder), "vectors", "dual")
    inputs = ReportInputs(models, log=log(), judged=data().test, judged_name="the test part", chosen="vectors")
    return comparison_report(inputs, models[1], command="ultr report vectors dual")
