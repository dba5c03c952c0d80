"""The time to rank a batch of queries with a base vector, against a scalar ranker of the same network."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ultr.data import ragged
from ultr.data.scaling import FeatureScaling
from ultr.experiments.experiment import Experiment
from ultr.methods import METHODS, flat_options
from ultr.methods.factors import Factor
from ultr.pages import Section, Table, figures
from ultr.relevance.inputs import Documents, Inputs, all_documents
from ultr.relevance.preprocessing import Preprocessing

LISTS, WARM_UP = 256, 10
Score = Callable[[Documents, Tensor], Tensor]
NOTES = (
    "Median time to score and sort a batch of queries, the rankers in turns, weights untrained. The paper has 0.136 s "
    "against 0.112 s on a GPU, +21.4 %."
)


def inference_time(experiment: Experiment) -> Section:
    """The median of many repetitions for each ranker of the spec, compared with that of the first."""
    test = experiment.sources[0].read().test
    lists = test.select(np.arange(min(LISTS, test.queries)))
    mask = torch.from_numpy(ragged.mask(lists.offsets, width=int(np.diff(lists.offsets).max())))
    documents = all_documents(Inputs(lists.features, Preprocessing(FeatureScaling.fit(lists.features))))
    count, width = documents.preprocessed.shape
    position = Factor("position", tuple(str(place + 1) for place in range(10)), 0)
    scorers: dict[str, Score] = {}
    for contender in experiment.contenders():
        estimator = flat_options.estimator(METHODS[contender.method], contender.options)
        scorers[contender.label] = estimator.build(width, [position], seed=0).score
    seconds = _time(scorers, documents, mask, repetitions=experiment.spec.repetitions)
    medians = {label: float(np.median(values)) for label, values in seconds.items()}
    first = next(iter(medians.values()))
    rows = [
        {
            "ranker": label,
            "milliseconds": f"{median * 1000:.2f}",
            "to the first": f"{median / first - 1:+.1%}",
            "documents a second": f"{count / median:,.0f}",
        }
        for label, median in medians.items()
    ]
    content = {
        "queries": lists.queries,
        "documents": count,
        "features": width,
        "threads": torch.get_num_threads(),
        "repetitions": experiment.spec.repetitions,
        "median_seconds": medians,
    }
    shape = f"{lists.queries} queries, {count:,} documents, {width} features, {content['threads']} threads"
    milliseconds = {label: median * 1000 for label, median in medians.items()}
    drawn = {"inference time": partial(figures.bars, milliseconds, xlabel="milliseconds")}
    return Section(experiment.spec.title, NOTES, tables=[Table(shape, rows)], figures=drawn, numbers=content)


@torch.no_grad()
def _time(scorers: dict[str, Score], documents: Documents, mask: Tensor, *, repetitions: int) -> dict[str, list[float]]:
    """Seconds of each repetition; the rankers take turns, so that a slow moment hits all of them."""
    seconds: dict[str, list[float]] = {label: [] for label in scorers}
    for turn in range(WARM_UP + repetitions):
        for label, score in scorers.items():
            started = time.perf_counter()
            scores = torch.full(mask.shape, float("-inf")).masked_scatter(mask, score(documents, mask))
            scores.argsort(dim=1, descending=True)
            if turn >= WARM_UP:
                seconds[label].append(time.perf_counter() - started)
    return seconds
