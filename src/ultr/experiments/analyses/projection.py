"""Ranking by projection on the observation embedding of each position, on the base vector, and on others."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.scaling import FeatureScaling
from ultr.evaluation.judged import of_scores
from ultr.experiments.experiment import Experiment
from ultr.experiments.run import data_of
from ultr.experiments.store import Outcome
from ultr.experiments.tables import spread
from ultr.methods import load
from ultr.methods.vector_objective import Embeddings
from ultr.pages import Draw, Section, Table, figures

MEASURE = "nDCG@10"
BASE, MEAN, PROBABLE, PRINCIPAL = "base vector", "mean observation", "most probable position", "principal axis"
NOTES = (
    f"{MEASURE} of the same relevance embeddings projected on the observation embedding of one position, and on the "
    "base vector of each query; mean ± standard deviation over seeds.\n\n"
    f"{MEAN.capitalize()}: the mean over positions. {PROBABLE.capitalize()}: the observation embedding of the position "
    "that all candidates of a query are most probably shown at (equations 5 and 6 of the paper), by a multinomial "
    f"logistic regression on the shown lists. {PRINCIPAL.capitalize()}: the first principal component of the relevance "
    "embeddings (appendix E), turned towards the mean observation."
)


def projection(experiment: Experiment) -> Section:
    """A curve over positions for each click setting and ranker."""
    rows, content = [], []
    drawn: dict[str, Draw] = {}
    for clicks, contender in product(experiment.spec.clicks, experiment.contenders()):
        outcomes = experiment.outcomes(contender, clicks, experiment.spec.validation[0])
        by_seed = [_of_seed([o for o in outcomes if o.run.seed == seed]) for seed in experiment.spec.seeds]
        columns, values = list(by_seed[0]), np.array([list(found.values()) for found in by_seed])
        mean = values.mean(axis=0)
        deviation = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(len(mean), np.nan)
        cells = [spread(*pair) for pair in zip(mean, deviation, strict=True)]
        rows.append({"clicks": clicks, "ranker": contender.label, **dict(zip(columns, cells, strict=True))})
        content.append(
            {
                "clicks": clicks,
                "label": contender.label,
                "on": columns,
                "mean": mean.tolist(),
                "deviation": deviation.tolist(),
            }
        )
        half, base = np.nan_to_num(deviation), columns.index(BASE)
        drawn[f"{clicks} clicks, {contender.label}"] = partial(
            figures.bands,
            {"observation embedding of a position": (np.arange(1.0, base + 1), mean[:base], half[:base])},
            {BASE: (mean[base], mean[base] - half[base], mean[base] + half[base])},
            xlabel="position",
            ylabel=MEASURE,
            ink="black",
        )
    return Section(experiment.spec.title, NOTES, tables=[Table(MEASURE, rows)], figures=drawn, numbers=content)


def _of_seed(outcomes: list[Outcome]) -> dict[str, float]:
    """The mean over the test queries of all folds, by what is projected on."""
    folds = [_by_query(outcome) for outcome in outcomes]
    return {on: float(np.nanmean(np.concatenate([fold[on] for fold in folds]))) for on in folds[0]}


def _by_query(outcome: Outcome) -> dict[str, Doubles]:
    """The measure of each test query, by what is projected on."""
    ranker, shared = load(outcome.model), data_of(outcome.run)
    test, embeddings = shared.splits.test, Embeddings.of(ranker)
    assert embeddings is not None
    relevance, observation = embeddings.relevance(test.features), embeddings.observation()["position"]
    mean = observation.mean(axis=0)
    scores = {str(number): relevance @ vector for number, vector in enumerate(observation, start=1)}
    scores[BASE] = ranker.score(test.features, test.offsets)
    scores[MEAN] = relevance @ mean
    probable = observation[most_probable_positions(shared.log, ranker.scaling, test)]
    scores[PROBABLE] = (relevance * np.repeat(probable, np.diff(test.offsets), axis=0)).sum(axis=1)
    scores[PRINCIPAL] = relevance @ principal_axis(relevance, towards=mean)
    return {on: of_scores(each, test, [MEASURE]).values[MEASURE] for on, each in scores.items()}


def most_probable_positions(log: ClickLog, scaling: FeatureScaling, judged: JudgedLists) -> Integers:
    """For each query the position t, from 0, that makes the product of P(t | x) over its candidates largest.

    P(t | x) is a multinomial logistic regression on the documents and positions of the log, by impressions.
    """
    from sklearn.linear_model import LogisticRegression

    weights = np.repeat(log.impressions, log.lengths).astype(np.float64)
    model = LogisticRegression(max_iter=200)
    model.fit(scaling.apply(log.features[log.documents]), log.position.values, weights / weights.mean())
    chances = model.predict_log_proba(scaling.apply(judged.features))
    before = np.concatenate([np.zeros_like(chances[:1]), chances.cumsum(axis=0)])
    best: Integers = model.classes_[np.diff(before[judged.offsets], axis=0).argmax(axis=1)]
    return best


def principal_axis(embeddings: Floats, *, towards: Floats) -> Floats:
    """The direction in which the embeddings differ most, with the sign that points `towards` a vector."""
    axis: Floats = np.linalg.svd(embeddings - embeddings.mean(axis=0), full_matrices=False)[2][0]
    return axis if axis @ towards >= 0 else -axis
