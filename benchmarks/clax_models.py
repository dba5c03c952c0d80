"""Click models of the package clax-models (JAX), trained as rankers from features.

Hager, Zoeter and de Rijke, CLAX: Fast and Flexible Neural Click Models in JAX, 2025. Each model says how clicks come
from the attraction of a document, here a network of its features, and from whether it was examined; the attraction is
what ranks. Its own `Trainer` does the training, on single sessions with and without clicks, in batches of 256 by AdamW
as in its examples. What is chosen here, all in its favour:

- Features are standardised, which did better than the range that our methods scale to. Batches come as arrays from
  memory, without workers or parsing.
- The network is its deep feed-forward one with layers as many as ours has, or its deep and cross network as it is.
- Its early stopping takes the nDCG@10 of judged validation lists, as all others here do, and looks every 100
  batches as ours do, not only after a pass over all sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.arena import Sessions
from ultr.arrays import Floats, Integers
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.evaluation.judged import of_scores

MODELS = {
    "clax-ctr": "DocumentCTRModel",
    "clax-pbm": "PositionBasedModel",
    "clax-ubm": "UserBrowsingModel",
    "clax-dbn": "DynamicBayesianNetwork",
}
"""By our names: no bias, a bias of the position, of position and last click, and a cascade with satisfaction."""
MEASURE = "nDCG@10"
LOOK_EVERY = 100
"""Batches between two looks at the validation lists, as of our methods."""
FARTHEST = 5.0
BATCH, SCORED_AT_ONCE = 256, 8_192


@dataclass(frozen=True)
class Options:
    """How a click model is trained."""

    network: str = "deep"
    """`deep` or `cross`."""
    hidden: int = 256
    layers: int = 3
    learning_rate: float = 0.003
    looks: int = 400
    """How often at most the validation lists are looked at, every 100 batches: ten passes over a million sessions."""
    patience: int = 40
    """How many looks without a better nDCG@10 it takes to stop: a pass over a million sessions."""


@dataclass(frozen=True, eq=False)
class Standard:
    """Features with mean 0 and deviation 1, the tails cut off."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, features: Floats) -> Standard:
        """As these documents ask for."""
        return cls(features.mean(axis=0), features.std(axis=0) + np.float32(1e-9))

    def apply(self, features: Floats) -> Floats:
        """The same features for the network."""
        scaled: Floats = np.clip((features - self.mean) / self.deviation, -FARTHEST, FARTHEST)
        return scaled


class Stream:
    """Batches of the next sessions, in an order drawn anew for each pass over all of them."""

    def __init__(self, features: Floats, sessions: Sessions, *, batches: int, seed: int):
        self._features, self._sessions = features, sessions
        self._random = np.random.default_rng(seed)
        self._batches = batches
        self._waiting: Integers = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return self._batches

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for _ in range(self._batches):
            while len(self._waiting) < BATCH:
                again = self._random.permutation(len(self._sessions.clicks))
                self._waiting = np.concatenate([self._waiting, again])
            chosen, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            positions = self._sessions.positions[chosen].astype(np.int16)
            yield {
                "query_doc_features": self._features[self._sessions.documents[chosen]],
                "positions": positions,
                "mask": positions > 0,
                "clicks": self._sessions.clicks[chosen].astype(np.float32),
            }


class LabelStopping:
    """What the trainer asks whether to keep weights and when to stop: the nDCG@10 of judged lists."""

    def __init__(self, measure: Callable[[], float], keep: Callable[[], Any], *, looks: int, patience: int):
        self._measure, self._keep, self._left, self._patience = measure, keep, looks, patience
        self.kept: Any = None
        self.best, self._since = -1.0, 0
        self.has_improved = self.should_stop = False

    def __deepcopy__(self, memo: Any) -> LabelStopping:
        """Itself: the trainer copies what it is given, and this one belongs to a single training."""
        return self

    def update(self, loss: Any) -> LabelStopping:
        """Look at the model as it is now."""
        value = self._measure()
        self._left -= 1
        self.has_improved = value > self.best
        self._since = 0 if self.has_improved else self._since + 1
        if self.has_improved:
            self.best, self.kept = value, self._keep()
        self.should_stop = self._since >= self._patience or not self._left
        return self


@dataclass(frozen=True, eq=False)
class ClickModelRanker:
    """A trained click model."""

    predict: Callable[[Floats], Floats]
    feature_names: tuple[str, ...]

    def score(self, features: Floats, offsets: Integers | None = None) -> Floats:
        """Scores of candidates, higher is better."""
        return self.predict(np.asarray(features, dtype=np.float32))


def fit(
    name: str, log: ClickLog, sessions: Sessions, *, validation: JudgedLists, options: Options, seed: int
) -> ClickModelRanker:
    """The ranker that one of the click models becomes."""
    import clax
    import jax
    import optax
    from flax import nnx

    scaling = Standard.of(log.features)
    features = scaling.apply(log.features)
    stream = Stream(features, sessions, batches=LOOK_EVERY, seed=seed)
    positions = sessions.clicks.shape[1]
    model = _build(getattr(clax, MODELS[name]), len(log.feature_names), positions, options, nnx.Rngs(seed))
    step = nnx.jit(lambda model, batch: model.predict_relevance(batch))
    predict = partial(_predict, lambda batch: step(model, batch))
    held_out = scaling.apply(validation.features)

    def measure() -> float:
        model.eval()
        return float(of_scores(predict(held_out), validation, (MEASURE,)).mean(MEASURE))

    def keep() -> Any:
        return jax.tree.map(lambda array: array, nnx.state(model))

    stopping = LabelStopping(measure, keep, looks=options.looks, patience=options.patience)
    trainer = clax.Trainer(optax.adamw(options.learning_rate), epochs=options.looks, early_stopping=stopping)
    # The trainer wants clicks to validate with; one batch of them is enough, for nothing is done with the result.
    trainer.train(model, stream, [next(iter(stream))])
    # The trainer means to go back to its best weights, but what it remembers is the model itself, not a copy of it.
    nnx.update(model, stopping.kept)
    model.eval()
    return ClickModelRanker(lambda matrix: predict(scaling.apply(matrix)), log.feature_names)


def _build(kind: Any, features: int, positions: int, options: Options, rngs: Any) -> Any:
    from clax.parameters import DeepCrossParameterConfig, DeepParameterConfig

    shared = {
        "use_feature": "query_doc_features",
        "features": features,
        "hidden_units": options.hidden,
    }

    def network() -> Any:
        if options.network == "cross":
            return DeepCrossParameterConfig(deep_layers=options.layers, **shared)
        return DeepParameterConfig(layers=options.layers, **shared)

    if kind.__name__ == "DocumentCTRModel":
        return kind(ctr=network(), rngs=rngs)
    if kind.__name__ == "DynamicBayesianNetwork":
        return kind(attraction=network(), satisfaction=network(), rngs=rngs)
    return kind(positions=positions, attraction=network(), rngs=rngs)


def _predict(step: Callable[[dict[str, Any]], Any], features: Floats) -> Floats:
    """Scores of documents, a block of one size at a time, so that it is compiled once."""
    scores = []
    for start in range(0, len(features), SCORED_AT_ONCE):
        block = features[start : start + SCORED_AT_ONCE]
        missing = SCORED_AT_ONCE - len(block)
        padded = np.pad(block, ((0, missing), (0, 0))) if missing else block
        mask = np.ones((1, SCORED_AT_ONCE), dtype=bool)
        scores.append(np.asarray(step({"query_doc_features": padded[None], "mask": mask})).ravel()[: len(block)])
    return np.concatenate(scores)
