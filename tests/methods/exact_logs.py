"""Logs of exact expectations: as many impressions as there can be, of documents that are known one by one."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.data.click_log import ClickLog
from ultr.methods.estimator import Estimator
from ultr.metrics import kendall_tau

IMPRESSIONS = 1_000_000


def placed(g: Doubles, *, shown: int, lists: int, temperature: float) -> Integers:
    """Documents of lists, [lists, shown], by relevance and chance; the higher the temperature, the more by chance."""
    random = np.random.default_rng(0)
    drawn = np.stack([random.permutation(len(g))[:shown] for _ in range(lists)])
    keys = np.log(g / (1 - g))[drawn] / temperature + random.gumbel(size=drawn.shape)
    return np.take_along_axis(drawn, np.argsort(-keys, axis=1), axis=1)


def exact_log(shown: Integers, rates: Doubles, features: Doubles | None = None) -> ClickLog:
    """A log of these documents with these click rates, both [lists, shown]; by default each has a feature to itself."""
    lists, width = shown.shape
    return ClickLog.of(
        features=np.eye(shown.max() + 1) if features is None else features,
        documents=shown.ravel(),
        offsets=np.arange(lists + 1) * width,
        clicks=np.rint(IMPRESSIONS * rates).astype(np.int64).ravel(),
        impressions=np.full(lists, IMPRESSIONS),
    )


def agreement(ranker: Estimator, g: Doubles, features: Doubles | None = None) -> float:
    """Kendall's tau of the scores of all documents with their true relevance."""
    rows = np.eye(len(g)) if features is None else features
    return float(kendall_tau(g, ranker.score(rows.astype(np.float32)), np.array([0, len(g)]))[0])
