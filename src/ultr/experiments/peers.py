"""Rankers written elsewhere, to be run beside ours on the same click log.

Both libraries boost trees by LambdaMART, and both can take the position out of clicks:

- XGBoost with `lambdarank_unbiased` learns how much more a position is clicked, and how much more it is not, and
  divides the gradient of each pair of documents by both (Hu et al., Unbiased LambdaMART, WWW 2019). The position is the
  place in the list: a log whose lists leave positions out is read as if they had not.
- LightGBM with `position` learns a number for each position that is added to the score while training.

Neither knows of other bias factors.

One rule for all four: up to 300 trees of 31 leaves and 255 bins, learning rate 0.1, gradients of nDCG over all pairs of
a list. With validation data, training stops after 30 trees without a better nDCG@10 and keeps the best number of trees;
without, it keeps all. Whatever else there is, such as regularisation, is left as the library has it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ultr import checks
from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.log_checks import trusted
from ultr.errors import DataError
from ultr.seeding import generator


@dataclass(frozen=True, eq=False)
class PeerLists:
    """Training or validation data of a peer: the documents of each list with their labels."""

    features: Floats
    labels: Integers
    positions: Integers
    """As shown, from 1."""
    lengths: Integers

    @classmethod
    def of(cls, data: ClickLog | JudgedLists, *, sessions: int, seed: int) -> PeerLists:
        """The clicks of drawn sessions as labels, or the labels of judged lists."""
        if isinstance(data, ClickLog):
            drawn = draw_sessions(data, sessions=sessions, seed=seed)
            return cls(drawn.features[drawn.documents], drawn.clicks, drawn.positions, drawn.lengths)
        judged = data.with_relevant()
        places = ragged.ranks(judged.offsets) + 1
        return cls(judged.features, judged.labels, places, judged.lengths)

    def worst_first(self) -> PeerLists:
        """The documents of each list by label, the lowest first.

        Both libraries keep the order of documents with equal scores, and a few trees give many of these. In the order
        shown they would be credited with what the ranker that showed them knew; so ties count against them.
        """
        lists = ragged.list_numbers(ragged.from_lengths(self.lengths))
        order = np.lexsort((self.labels, lists))
        return PeerLists(self.features[order], self.labels[order], self.positions[order], self.lengths)


@dataclass(frozen=True, eq=False)
class PeerRanker:
    """A trained peer."""

    predict: Callable[[Floats], Any]
    feature_names: tuple[str, ...]

    def score(self, features: Floats, offsets: Integers | None = None) -> Floats:
        """Scores of candidates, higher is better."""
        matrix = np.asarray(features, dtype=np.float32)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.feature_names):
            raise DataError(f"the ranker knows {len(self.feature_names)} features, got an array of {matrix.shape}")
        if offsets is not None:
            ragged.check_offsets(np.asarray(offsets), len(matrix), what="candidates")
        return np.asarray(self.predict(matrix), dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class Peer(ABC):
    """A ranker of another library, with or without its debiasing."""

    debias: bool
    """Use the library's correction for position bias instead of raw clicks."""
    sessions: int = 50_000
    """Sessions drawn from the log; a fifth of that from held-out clicks."""
    trees: int = 300
    leaves: int = 31
    learning_rate: float = 0.1
    patience: int = 30
    """Trees without a better nDCG@10 on the validation data after which training stops."""
    threads: int = 1
    """With more than one, the last digits may depend on their number."""

    def with_options(self, **options: Any) -> Peer:
        """The same peer with other options."""
        known = [field.name for field in fields(self) if field.name != "debias"]
        for name in options:
            checks.one_of("option of a peer", name, known)
        changed = replace(self, **options)
        changed.check()
        return changed

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        for name in ("sessions", "trees", "patience", "threads"):
            checks.integer(name, getattr(self, name), at_least=1)
        checks.integer("leaves", self.leaves, at_least=2)
        checks.positive("learning_rate", self.learning_rate)

    def fit(self, log: ClickLog, *, validation: JudgedLists | ClickLog | None = None, seed: int = 0) -> PeerRanker:
        """The ranker learned from a log.

        `validation` decides how many trees are kept, by nDCG@10: judged lists by their labels, held-out clicks by the
        clicks of sessions drawn from them, as biased as these are.
        """
        self.check()
        checks.integer("seed", seed, at_least=0)
        if validation is not None and validation.feature_names != log.feature_names:
            counts = f"{len(validation.feature_names)} and {len(log.feature_names)}"
            raise DataError(f"the validation data must have the same features as the training data, got {counts}")
        lists = PeerLists.of(log, sessions=self.sessions, seed=seed)
        few = -(-self.sessions // 5)
        held_out = None if validation is None else PeerLists.of(validation, sessions=few, seed=seed).worst_first()
        for what, part in (("training", lists), ("validation", held_out)):
            if part is not None and not part.labels.any():
                raise DataError(
                    f"the {what} data have no click or relevant document, so there is nothing to learn from"
                )
        return PeerRanker(self.train(lists, held_out, seed=seed % 2**31), log.feature_names)

    @abstractmethod
    def train(self, lists: PeerLists, validation: PeerLists | None, *, seed: int) -> Callable[[Floats], Any]:
        """Boost trees, and give the function that scores features."""


@dataclass(frozen=True, kw_only=True)
class XGBoost(Peer):
    """XGBoost's `rank:ndcg`; debiased with `lambdarank_unbiased`."""

    def train(self, lists: PeerLists, validation: PeerLists | None, *, seed: int) -> Callable[[Floats], Any]:
        """Boost trees, leaf by leaf as LightGBM does."""
        import xgboost

        def matrix(part: PeerLists, ref: Any = None) -> Any:
            return xgboost.QuantileDMatrix(
                part.features, label=part.labels, group=part.lengths, max_bin=255, ref=ref, nthread=self.threads
            )

        longest = int(lists.lengths.max())
        train = matrix(lists)
        booster = xgboost.train(
            {
                "objective": "rank:ndcg",
                "eval_metric": "ndcg@10",
                "lambdarank_unbiased": self.debias,
                "lambdarank_pair_method": "topk",
                "lambdarank_num_pair_per_sample": longest,
                "tree_method": "hist",
                "grow_policy": "lossguide",
                "max_leaves": self.leaves,
                "max_depth": 0,
                "max_bin": 255,
                "learning_rate": self.learning_rate,
                "nthread": self.threads,
                "seed": seed,
                "verbosity": 0,
            },
            train,
            num_boost_round=self.trees,
            evals=[] if validation is None else [(matrix(validation, train), "validation")],
            early_stopping_rounds=None if validation is None else self.patience,
            verbose_eval=False,
        )
        kept = (0, 0) if validation is None else (0, booster.best_iteration + 1)
        return lambda features: booster.inplace_predict(features, iteration_range=kept, predict_type="margin")


@dataclass(frozen=True, kw_only=True)
class LightGBM(Peer):
    """LightGBM's `lambdarank`; debiased with the `position` of its data set."""

    def train(self, lists: PeerLists, validation: PeerLists | None, *, seed: int) -> Callable[[Floats], Any]:
        """Boost trees."""
        import lightgbm

        options = {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [10],
            "lambdarank_truncation_level": int(lists.lengths.max()),
            "num_leaves": self.leaves,
            "max_bin": 255,
            "learning_rate": self.learning_rate,
            "num_threads": self.threads,
            "deterministic": True,
            "force_col_wise": True,
            "seed": seed,
            "verbosity": -1,
        }
        train = lightgbm.Dataset(
            lists.features,
            label=lists.labels,
            group=lists.lengths,
            position=lists.positions - 1 if self.debias else None,
            params=options,
        )
        watched: list[Any] = []
        callbacks: list[Callable[..., Any]] = []
        if validation is not None:
            watched = [train.create_valid(validation.features, label=validation.labels, group=validation.lengths)]
            callbacks = [lightgbm.early_stopping(self.patience, verbose=False)]
        booster = lightgbm.train(options, train, num_boost_round=self.trees, valid_sets=watched, callbacks=callbacks)
        return lambda features: booster.predict(features, num_threads=self.threads)


PEERS: dict[str, Peer] = {
    "xgboost": XGBoost(debias=False),
    "xgboost-unbiased": XGBoost(debias=True),
    "lightgbm": LightGBM(debias=False),
    "lightgbm-position": LightGBM(debias=True),
}
"""By the name of the library, and what debiases it if anything does."""


def draw_sessions(log: ClickLog, *, sessions: int, seed: int, only_clicked: bool = True) -> ClickLog:
    """About `sessions` single sessions of a log: one impression and, if `only_clicked`, at least one click each.

    A list has its share of them by its impressions, though no more than these. A document is clicked in its share of
    its list's sessions by its click rate, give or take one, and which of them these are is drawn for each document on
    its own: the clicks of one session are independent given the list, whatever came together in the log. Sessions
    without a click put no document before another and are left out, unless the ranker asks for all.
    """
    random = generator(seed, "peer sessions")
    share = np.minimum(log.impressions * (sessions / log.impressions.sum()), log.impressions)
    counts = np.floor(share + random.random(log.lists)).astype(np.int64)
    lists = np.repeat(np.arange(log.lists), counts)
    rows = ragged.rows_of(lists, log.offsets)
    # Of each shown document, first how many of its sessions click it, then which.
    shown = np.repeat(counts, log.lengths)
    clicked = np.floor(shown * log.clicks / np.repeat(log.impressions, log.lengths) + random.random(len(shown)))
    shuffled = np.lexsort((random.random(len(rows)), rows))
    places = np.arange(len(rows)) - np.repeat(ragged.from_lengths(shown)[:-1], shown)
    clicks = np.zeros(len(rows), dtype=np.int64)
    clicks[shuffled] = places < np.repeat(clicked, shown)
    drawn = trusted(
        trusted(log, pair_clicks=None).select(lists), impressions=np.ones(len(lists), dtype=np.int64), clicks=clicks
    )
    if not only_clicked:
        return drawn
    totals = np.bincount(ragged.list_numbers(drawn.offsets), weights=clicks, minlength=drawn.lists)
    return drawn.select(totals > 0)
