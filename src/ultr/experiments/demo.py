"""The demo: biased clicks on generated data, debiased."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from ultr.clicks.registry import click_model
from ultr.datasets.letor_like import letor_like
from ultr.evaluation import Evaluation, evaluate, gap_closed
from ultr.evaluation.judged import DEFAULT_MEASURES
from ultr.files import check_new_folder, new_folder, write_json
from ultr.methods import ClickBaseline, LabelBaseline, Vectorization
from ultr.methods.estimator import Estimator
from ultr.methods.origin import Origin
from ultr.pages import Table, figures
from ultr.relevance import MLP
from ultr.reporting import ReportInputs, models_of, report
from ultr.simulation.log import simulate

FORMAT = "ultr demo 1"
MAIN = "nDCG@10"
REPORT = "report.html"


@dataclass(frozen=True)
class DemoResult:
    """Result of the demo."""

    evaluations: dict[str, Evaluation]
    """By the name of the method; Click first, Labeled last."""
    seconds: dict[str, float]

    def gap_closed(self, name: str) -> float:
        """The share of the way from raw clicks to labels, in nDCG@10."""
        lower, upper = self.evaluations["Click"].mean(MAIN), self.evaluations["Labeled"].mean(MAIN)
        return gap_closed(self.evaluations[name].mean(MAIN), lower=lower, upper=upper)

    def rows(self, separator: str = " ") -> list[dict[str, str]]:
        """A row of text for each method: means with their intervals behind the separator."""
        rows = []
        for name, evaluation in self.evaluations.items():
            row = {"method": name}
            for measure in DEFAULT_MEASURES:
                row[measure] = evaluation.interval(measure).text(separator)
            rows.append(row | {"gap closed": f"{self.gap_closed(name):.0%}"})
        return rows

    def as_json(self) -> dict[str, Any]:
        """The figures."""
        return {
            name: {
                "measures": {measure: vars(evaluation.interval(measure)) for measure in DEFAULT_MEASURES},
                "gap_closed": self.gap_closed(name),
                "seconds": self.seconds[name],
            }
            for name, evaluation in self.evaluations.items()
        }


def run(
    out: str | Path,
    *,
    seed: int = 0,
    queries: int = 10_000,
    impressions: int = 10_000_000,
    steps: int = 3_000,
    overwrite: bool = False,
    say: Callable[[str], object] = str,
    progress: bool = True,
) -> DemoResult:
    """Train four rankers on one simulated log, measure them, and write log, models, table, plot and report to `out`."""
    check_new_folder(out, overwrite=overwrite)
    say("generating judged lists and trust-bias clicks ...")
    data = letor_like(train_queries=queries, validation_queries=500, test_queries=2_000, seed=seed)
    log = simulate(data.train, click_model("trust"), impressions=impressions, seed=seed)
    say(f"{data}\n{log}")
    options: dict[str, Any] = {"relevance": MLP(hidden=(128, 64), steps=steps), "seed": seed}
    plane = Vectorization(dimension=2, **options)
    rankers: dict[str, Estimator] = {
        "Click": ClickBaseline(**options),
        "Vectorization d=2": plane,
        "Vectorization d=3": Vectorization(dimension=3, **options),
        "Labeled": LabelBaseline(**options),
    }
    source = f"letor-like={queries}"
    clicks = Origin(command=f"ultr demo --seed {seed}", log="../log", validation=source, seed=seed)
    labels = clicks.model_copy(update={"log": None, "data": source})
    evaluations, seconds = {}, {}
    with new_folder(out, overwrite=overwrite) as draft:
        log.save(draft / "log")
        for name, ranker in rankers.items():
            started = time.perf_counter()
            judged = isinstance(ranker, LabelBaseline)
            ranker.fit(data.train if judged else log, validation=data.validation, progress=progress)
            seconds[name] = time.perf_counter() - started
            evaluations[name] = evaluate(ranker, data.test)
            ranker.save(draft / name.lower().replace(" d=", "-"), origin=labels if judged else clicks)
        result = DemoResult(evaluations, seconds)
        write_json(draft / "manifest.json", {"format": FORMAT, "seed": seed})
        write_json(draft / "results.json", result.as_json())
        (draft / "results.md").write_text(Table("", result.rows()).as_markdown(), "utf-8")
        intervals = {name: astuple(each.interval(MAIN)) for name, each in evaluations.items()}
        observation = plane.observation_embeddings()["position"].astype(np.float64)
        figures.demo(intervals, observation, measure=MAIN).save(draft, "demo", title=False)
    say("writing the report ...")
    inputs = ReportInputs(
        models=tuple(models_of(out)),
        log=log,
        log_name=str(Path(out) / "log"),
        judged=data.test,
        judged_name=f"the test part of {source}",
    )
    report(inputs, name=str(out), command=f"ultr report {quote(str(out))}").write(Path(out) / REPORT)
    return result
