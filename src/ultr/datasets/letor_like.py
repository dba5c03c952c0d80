"""A data set like the public learning-to-rank sets, drawn from a seed, because those may not be shipped.

Hidden factors of a query (what it asks for) and of its candidates (what they offer) decide relevance, which is
partly linear, partly gated by the query and partly a liking for middling values. Features are noisy views of
the factors with the usual ailments of real ones. Nothing here knows of clicks or positions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.checks import integer
from ultr.data import ragged
from ultr.data.judged import JudgedLists
from ultr.datasets.splits import Splits
from ultr.seeding import generator

GRADE_SHARES = (0.26, 0.35, 0.29, 0.08, 0.02)
SHORTEST, LONGEST = 12, 40
FEWEST_FEATURES = 16
KIND_SHARES = {
    "match": 0.17,
    "squashed": 0.12,
    "logarithmic": 0.09,
    "heavy": 0.09,
    "sparse": 0.12,
    "query": 0.08,
    "copy": 0.09,
    "noise": 0.08,
}
"""The share of the features of each kind; the others are plain mixtures of the factors."""

QUERY_FACTORS, DOCUMENT_FACTORS, BUMPS = 6, 10, 24
PART_WEIGHTS = (0.9, 0.55, 0.55)
"""The weights of the linear part of relevance, the gated one and the bumps."""
# Set so that a Ranking SVM of 1 % of the queries lands well between random order and training on labels.
JUDGE_NOISE, FEATURE_NOISE = 0.7, 0.65
REFERENCE_QUERIES = 4_000


def letor_like(
    *,
    train_queries: int = 10_000,
    validation_queries: int = 1_000,
    test_queries: int = 2_000,
    features: int = 64,
    seed: int = 0,
) -> Splits:
    """Training, validation and test lists of one invented world, with five grades shared out as in Yahoo!.

    The world depends on `seed` only and every split has its own random streams, so the first queries of a
    split stay what they are when more are asked for, and no split depends on the size of another.

    >>> data = letor_like(train_queries=100, validation_queries=10, test_queries=20)
    >>> data.train.queries, data.test.queries, data.test.max_label
    (100, 20, 4)
    """
    train_queries = integer("train_queries", train_queries, at_least=1)
    validation_queries = integer("validation_queries", validation_queries, at_least=1)
    test_queries = integer("test_queries", test_queries, at_least=1)
    features = integer("features", features, at_least=FEWEST_FEATURES)
    seed = integer("seed", seed, at_least=0)
    judge, views = _Judge.of(seed), _Views.of(seed, features=features)

    def judged(split: str, queries: int) -> JudgedLists:
        candidates = _HiddenLists.draw(seed, split, queries=queries)
        return JudgedLists.of(
            features=views.features(candidates, generator(seed, "letor_like", split, "features")),
            labels=judge.labels(candidates),
            offsets=candidates.offsets,
            query_ids=[f"{split}-{number + 1}" for number in range(queries)],
            feature_names=views.names,
            max_label=len(GRADE_SHARES) - 1,
        )

    return Splits(
        name="letor_like",
        train=judged("train", train_queries),
        validation=judged("validation", validation_queries),
        test=judged("test", test_queries),
    )


@dataclass(frozen=True, eq=False)
class _HiddenLists:
    """The hidden side of some lists, one row for each document."""

    offsets: Integers
    factors: Doubles
    """[documents, query factors and document factors]; the former are constant within a query."""
    slips: Doubles
    """[documents]: the errors of the judge."""

    @classmethod
    def draw(cls, seed: int, split: str, *, queries: int) -> _HiddenLists:
        """The first `queries` queries of a split: a stream for each quantity keeps them the first ones."""
        lengths, asked, centres, ease, offered, slips = (
            generator(seed, "letor_like", split, quantity)
            for quantity in ("lengths", "asked", "centres", "ease", "offered", "slips")
        )
        offsets = ragged.from_lengths(lengths.integers(SHORTEST, LONGEST, queries, endpoint=True))
        lists = ragged.list_numbers(offsets)
        query = asked.standard_normal((queries, QUERY_FACTORS))
        centre = 0.4 * centres.standard_normal((queries, DOCUMENT_FACTORS))
        # Queries are easy or hard: their candidates differ more or less, and are judged more or less surely.
        spread, doubt = np.exp(0.25 * ease.standard_normal((queries, 2))).T
        document = 0.9 * spread[lists, None] * offered.standard_normal((len(lists), DOCUMENT_FACTORS))
        return cls(
            offsets=offsets,
            factors=np.hstack([query[lists], centre[lists] + document]),
            slips=JUDGE_NOISE * doubt[lists] * slips.standard_normal(len(lists)),
        )


@dataclass(frozen=True, eq=False)
class _Judge:
    """The judge of one world: its relevance, and the thresholds between grades."""

    linear: Doubles
    """[document factors]: what counts for every query."""
    gates: Doubles
    """[query factors, document factors]: what counts for some queries and against others."""
    bumps: Doubles
    """[factors + 1, bumps]: what is best at a middling value, which the last row shifts."""
    heights: Doubles
    """[bumps]."""
    part_weights: Doubles
    thresholds: Doubles

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, seed: int) -> _Judge:
        random = generator(seed, "letor_like", "judge")
        judge = cls(
            linear=random.standard_normal(DOCUMENT_FACTORS),
            gates=1.5 * _unit_columns(random.standard_normal((QUERY_FACTORS, DOCUMENT_FACTORS))),
            bumps=1.5 * _unit_columns(random.standard_normal((QUERY_FACTORS + DOCUMENT_FACTORS + 1, BUMPS))),
            heights=random.standard_normal(BUMPS),
            part_weights=np.ones(len(PART_WEIGHTS)),
            thresholds=np.empty(0),
        )
        # Scales and thresholds come from a draw of their own: those of a split would change with its size.
        reference = _HiddenLists.draw(seed, "reference", queries=REFERENCE_QUERIES)
        parts = judge.parts(reference)
        part_weights = PART_WEIGHTS / parts.std(axis=0)
        seen = parts @ part_weights + reference.slips
        thresholds = np.quantile(seen, np.cumsum(GRADE_SHARES)[:-1])
        return replace(judge, part_weights=part_weights, thresholds=thresholds)

    def parts(self, candidates: _HiddenLists) -> Doubles:
        """The parts of relevance before weighting, float64 [documents, parts]."""
        query, document = np.split(candidates.factors, [QUERY_FACTORS], axis=1)
        gated = (np.tanh(query @ self.gates) * document).sum(axis=1)
        distances = candidates.factors @ self.bumps[:-1] + self.bumps[-1]
        return np.stack([document @ self.linear, gated, np.exp(-(distances**2)) @ self.heights], axis=1)

    def relevance(self, candidates: _HiddenLists) -> Doubles:
        """The true relevance, before the judge errs."""
        return self.parts(candidates) @ self.part_weights

    def labels(self, candidates: _HiddenLists) -> Integers:
        """The grades that the judge gives."""
        return np.searchsorted(self.thresholds, self.relevance(candidates) + candidates.slips)


@dataclass(frozen=True, eq=False)
class _Views:
    """The features of one world, which are views of the hidden factors."""

    columns: dict[str, slice]
    """The features of each kind."""
    mixtures: Floats
    """[factors, features]."""
    matches: Floats
    """[query factors, match features]: the query's side of a match."""
    noise: Floats
    """[features]."""

    @classmethod
    def of(cls, seed: int, *, features: int) -> _Views:
        random = generator(seed, "letor_like", "views")
        counts = {kind: max(1, round(share * features)) for kind, share in KIND_SHARES.items()}
        counts = {"linear": features - sum(counts.values()), **counts}
        stops = np.cumsum(list(counts.values())).tolist()
        columns = {kind: slice(stop - counts[kind], stop) for kind, stop in zip(counts, stops, strict=True)}
        factors = QUERY_FACTORS + DOCUMENT_FACTORS
        # A feature sees one factor of the document well, each its turn, and a third of all factors dimly.
        mixtures = random.standard_normal((factors, features)) * (random.random((factors, features)) < 1 / 3)
        mixtures[:QUERY_FACTORS] *= 0.5
        mixtures[QUERY_FACTORS + np.arange(features) % DOCUMENT_FACTORS, np.arange(features)] += 1
        mixtures[:QUERY_FACTORS, columns["match"]] = 0
        mixtures[:QUERY_FACTORS, columns["query"]] = random.standard_normal((QUERY_FACTORS, counts["query"]))
        mixtures[QUERY_FACTORS:, columns["query"]] = 0
        mixtures = _unit_columns(mixtures)
        mixtures[:, columns["noise"]] = 0
        noise = FEATURE_NOISE * np.exp(0.3 * random.standard_normal(features))
        noise[columns["query"]] = 0
        matches = _unit_columns(random.standard_normal((QUERY_FACTORS, counts["match"])))
        return cls(columns, mixtures.astype(np.float32), matches.astype(np.float32), noise.astype(np.float32))

    @property
    def names(self) -> list[str]:
        """The kind of each feature, numbered."""
        return [f"{kind}_{i + 1}" for kind, span in self.columns.items() for i in range(span.stop - span.start)]

    def features(self, candidates: _HiddenLists, random: np.random.Generator) -> Floats:
        """The features that a ranker sees, float32 [documents, features]."""
        factors = candidates.factors.astype(np.float32)
        values: Floats = factors @ self.mixtures
        noise = random.standard_normal(values.shape, dtype=np.float32)
        noise *= self.noise
        kind = {name: values[:, column] for name, column in self.columns.items()}
        kind["match"] *= factors[:, :QUERY_FACTORS] @ self.matches
        values += noise
        kind["squashed"][:] = np.tanh(2 * kind["squashed"])
        kind["logarithmic"][:] = np.logaddexp(0, 2 * kind["logarithmic"])
        kind["heavy"][:] = np.exp(kind["heavy"])
        kind["sparse"][:] = np.maximum(kind["sparse"] - 0.6, 0)
        kind["copy"][:] = values[:, : kind["copy"].shape[1]] + 0.3 * noise[:, self.columns["copy"]]
        return values


def _unit_columns(weights: Doubles) -> Doubles:
    unit: Doubles = weights / np.linalg.norm(weights, axis=0)
    return unit
