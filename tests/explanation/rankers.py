"""Small rankers to explain, and lists with missing values and categories."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

import numpy as np

from ultr.arrays import Floats, Integers
from ultr.data.click_log import ClickLog
from ultr.errors import UltrWarning
from ultr.methods import DLA, LBD, Auto, ClickBaseline, LightGBMRanker, Vectorization
from ultr.methods.estimator import Estimator
from ultr.methods.ranker import Ranker
from ultr.relevance import MLP, Trees

BRANDS, SHOPS = ("nike", "puma", "other"), tuple(f"shop {number}" for number in range(40))
NUMBERS = 4
NAMES = (*(f"number {place}" for place in range(NUMBERS)), "brand", "shop")
QUERIES, SHOWN = 60, 6


def candidates(count: int, *, seed: int = 0) -> Floats:
    """Numbers, the second of which is missing at times, a brand, missing at times, and a shop."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, len(NAMES))).astype(np.float32)
    features[:, NUMBERS] = random.integers(len(BRANDS), size=count)
    features[:, NUMBERS + 1] = random.integers(len(SHOPS), size=count)
    features[random.random(count) < 0.2, 1] = np.nan
    features[random.random(count) < 0.2, NUMBERS] = np.nan
    return features


@cache
def log() -> ClickLog:
    random, features = np.random.default_rng(1), candidates(QUERIES * SHOWN, seed=2)
    filled = np.nan_to_num(features)
    relevance = filled[:, 0] * filled[:, 2] + (features[:, NUMBERS] == 1) + np.isnan(features[:, 1]) + filled[:, 5] / 30
    rates = 1 / (1 + np.exp(-relevance)) / np.tile(np.arange(1, SHOWN + 1), QUERIES)
    offsets: Integers = np.arange(0, len(features) + 1, SHOWN)
    return ClickLog.of(
        features=features,
        documents=np.arange(len(features)),
        offsets=offsets,
        impressions=np.full(QUERIES, 200),
        clicks=random.binomial(200, rates),
        queries=np.arange(QUERIES),
        feature_names=NAMES,
        categories={"brand": BRANDS, "shop": SHOPS},
    )


NETWORK, TREES = MLP(hidden=(12, 6), steps=60, batch_size=16), Trees(rounds=15, leaves=5, fewest_documents=5)


@cache
def ranker(name: str) -> Ranker:
    estimators: dict[str, Callable[[], Estimator]] = {
        "network": lambda: ClickBaseline(relevance=NETWORK),
        "trees": lambda: ClickBaseline(relevance=TREES),
        "vectors": lambda: Vectorization(dimension=2, relevance=NETWORK, base_hidden=(4,), base_steps=20),
        "vectors by trees": lambda: Vectorization(dimension=2, relevance=TREES, vector_hidden=(4,), vector_steps=10),
        "auto": lambda: Auto(dimension=2, relevance=NETWORK),
        "auto by trees": lambda: Auto(dimension=2, relevance=TREES, vector_hidden=(4,), vector_steps=10),
        "lbd": lambda: LBD(relevance=NETWORK),
        "lightgbm": lambda: LightGBMRanker(relevance=TREES),
        "dla": lambda: DLA(relevance=TREES),
    }
    with warnings.catch_warnings():
        # Missing values are what it is about.
        warnings.simplefilter("ignore", UltrWarning)
        return estimators[name]().fit(log()).ranker_
