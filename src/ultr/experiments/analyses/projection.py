"""Ranking by projection on the observation embedding of each position, against the base vector."""

from __future__ import annotations

from itertools import product

import numpy as np

from ultr.arrays import Doubles
from ultr.evaluation.judged import of_scores
from ultr.experiments.experiment import Experiment
from ultr.experiments.findings import Findings, file_name
from ultr.experiments.store import Outcome
from ultr.experiments.tables import spread
from ultr.methods import load
from ultr.methods.vectorization import Embeddings
from ultr.pages import Table, model_figures

MEASURE = "nDCG@10"
NOTES = (
    f"{MEASURE} of the same relevance embeddings projected on the observation embedding of one position, and on the "
    "base vector of each query; mean ± standard deviation over seeds.",
)


def projection(experiment: Experiment) -> Findings:
    """A curve over positions for each click setting and ranker."""
    rows, content, figures = [], [], {}
    for clicks, contender in product(experiment.spec.clicks, experiment.contenders()):
        outcomes = experiment.outcomes(contender, clicks, experiment.spec.validation[0])
        values = np.array([_of_seed([o for o in outcomes if o.run.seed == seed]) for seed in experiment.spec.seeds])
        mean = values.mean(axis=0)
        deviation = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(len(mean), np.nan)
        columns = [*map(str, range(1, len(mean))), "base vector"]
        cells = [spread(*pair) for pair in zip(mean, deviation, strict=True)]
        rows.append({"clicks": clicks, "ranker": contender.label, **dict(zip(columns, cells, strict=True))})
        content.append(
            {"clicks": clicks, "label": contender.label, "mean": mean.tolist(), "deviation": deviation.tolist()}
        )
        half = np.nan_to_num(deviation)
        figures[file_name(clicks, contender.label)] = model_figures.bands(
            {"observation embedding of a position": (np.arange(1.0, len(mean)), mean[:-1], half[:-1])},
            {"base vector": (mean[-1], mean[-1] - half[-1], mean[-1] + half[-1])},
            xlabel="position",
            ylabel=MEASURE,
            title=f"{clicks} clicks, {contender.label}",
            ink="black",
        )
    return Findings(experiment.spec.title, [Table(MEASURE, rows)], NOTES, content, figures)


def _of_seed(outcomes: list[Outcome]) -> Doubles:
    """The mean over the test queries of all folds, by the position projected on; the base vector last."""
    by_query = np.concatenate([_by_position(outcome) for outcome in outcomes], axis=1)
    means: Doubles = np.nanmean(by_query, axis=1)
    return means


def _by_position(outcome: Outcome) -> Doubles:
    """The measure of each query, [positions + 1, queries]."""
    ranker, test = load(outcome.model), outcome.run.source.read().test
    embeddings = Embeddings.of(ranker)
    assert embeddings is not None
    relevance = embeddings.relevance(test.features)
    scores = [relevance @ vector for vector in embeddings.observation()["position"]]
    scores.append(ranker.score(test.features, test.offsets))
    return np.array([of_scores(each, test, [MEASURE]).values[MEASURE] for each in scores])
