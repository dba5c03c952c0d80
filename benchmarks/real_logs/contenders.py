"""The rankers that are trained on a log, by rules that were fixed before anything was judged.

Networks have two hidden layers of 32 and 16 and take 1,000 steps, which are 63 passes over a thousand searches; trees
have 150 rounds; everything else is as it comes. As with `ultr train`, a tenth of the searches is held out and its
clicks choose the weights; the seed draws both.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.errors import UltrWarning
from ultr.methods import (
    DLA,
    Affine,
    Auto,
    ClickBaseline,
    InversePropensity,
    LightGBMRanker,
    PairDebias,
    RegressionEM,
    TwoTower,
    Vectorization,
    XGBoostRanker,
)
from ultr.methods.estimator import Estimator
from ultr.methods.ranker import Ranker
from ultr.relevance import MLP, Trees
from ultr.relevance.relevance_model import Relevance

MOST_LISTS = 200
"""Most lists of a log that predicted clicks are averaged over."""
RAW = "raw clicks"
TRUE_CURVE = "IPW, true curve"
NETWORK, TREES = "network", "trees"
DEBIASED = ", debiased"
"""Behind the name of a library that knows positions."""
LIBRARIES: dict[str, type[Estimator]] = {"LightGBM": LightGBMRanker, "XGBoost": XGBoostRanker}


@dataclass(frozen=True)
class Sizes:
    """Sizes of the relevance models."""

    hidden: tuple[int, ...] = (32, 16)
    steps: int = 1_000
    rounds: int = 150

    def relevance(self) -> dict[str, Relevance]:
        """A network and trees."""
        return {NETWORK: MLP(hidden=self.hidden, steps=self.steps), TREES: Trees(rounds=self.rounds)}


def contenders(sizes: Sizes, *, click_rates: Doubles, true_curve: Doubles) -> dict[str, Estimator]:
    """All rankers by name; those by a network and those by trees have the name of their kind behind it.

    Two have given propensities: the click rates of the log, and the curve that only random searches tell.
    """
    found: dict[str, Estimator] = {}
    for kind, relevance in sizes.relevance().items():
        found |= {
            f"{name}, {kind}": replace(estimator, relevance=relevance)
            for name, estimator in _methods(sizes, click_rates, true_curve).items()
        }
    for name, library in LIBRARIES.items():
        if find_spec(name.lower()):
            found[name] = library().set_params(relevance__rounds=sizes.rounds)
            found[f"{name}{DEBIASED}"] = library().set_params(relevance__rounds=sizes.rounds, debias=True)
    return found


def _methods(sizes: Sizes, click_rates: Doubles, true_curve: Doubles) -> dict[str, Estimator]:
    # The sizes are those of the network that learns the vectors where trees learn the ranking.
    vectorization = Vectorization(dimension=3, vector_hidden=sizes.hidden, vector_steps=sizes.steps)
    return {
        RAW: ClickBaseline(),
        "Auto": Auto(vector_hidden=sizes.hidden, vector_steps=sizes.steps),
        "DLA": DLA(),
        "Vectorization d=3": vectorization,
        "Vectorization d=1": replace(vectorization, dimension=1),
        "Vectorization d=3, root weights": replace(vectorization, weight_power=0.5),
        "Affine": Affine(),
        "RegressionEM": RegressionEM(),
        "TwoTower": TwoTower(),
        "TwoTower, softmax": TwoTower(link="softmax"),
        "PairDebias": PairDebias(),
        "IPW, click rates": InversePropensity(propensities=tuple(click_rates.tolist())),
        TRUE_CURVE: InversePropensity(propensities=tuple(true_curve.tolist())),
    }


def fit(estimator: Estimator, log: ClickLog, *, seed: int) -> Ranker:
    """Train on nine tenths of a log's queries, and let the rest choose the weights."""
    part, held_out = log.split(by="query", seed=seed)
    with warnings.catch_warnings():
        # That values are missing is said once, and that a factor is left out is what the table is about.
        warnings.simplefilter("ignore", UltrWarning)
        return replace(estimator, seed=seed).fit(part, validation=held_out).ranker_


def scores(ranker: Ranker, log: ClickLog) -> Doubles:
    """Scores of the shown documents of a log."""
    return ranker.score(log.features[log.documents], log.offsets).astype(np.float64)


def position_curve(rankers: Sequence[Ranker], log: ClickLog) -> Doubles:
    """Clicks at each position over those at the first, as rankers predict them: geometric mean over documents."""
    some = log.select(np.arange(min(log.lists, MOST_LISTS)))
    rows, documents = np.unique(some.documents, return_inverse=True)
    some = replace(some, features=some.features[rows], documents=documents)
    logs = [np.log(ranker.click_ratios(some, "position")).mean(axis=0) for ranker in rankers]
    curve: Doubles = np.exp(np.mean(logs, axis=0))
    return curve


def learns_bias(estimator: Estimator) -> bool:
    """True if a ranker by this method says what it learned about positions."""
    return not isinstance(estimator, ClickBaseline | LightGBMRanker | XGBoostRanker | InversePropensity)


def heuristics(log: ClickLog, signs: Mapping[str, int]) -> dict[str, Doubles]:
    """Orders by one feature, from its highest or from its lowest value; what is missing comes last."""
    found = {}
    for name, sign in signs.items():
        values = log.features[log.documents, log.feature_names.index(name)].astype(np.float64)
        found[f"{name}, {'high' if sign > 0 else 'low'} first"] = np.where(np.isnan(values), -np.inf, sign * values)
    return found
