"""Documents of queries with clicks of their own: the rate that features give, moved by clicks as evidence grows.

A ranker's scores become a prior rate of each document, and its own debiased clicks make a posterior of it (see
`ultr.metrics.click_posterior`). The prior is fitted to the log, all four numbers at once, by the marginal likelihood of
the clicks of all documents:

    f(x) = exp( level + within (s - mean s) + between mean s ),   gamma ~ Gamma(a f(x), a)

with s the score and the mean over the documents of the query: a list-wise loss tells how the scores of one query
compare, not how queries do, so that the two may count differently. Empirical Bayes as in EBRank (CIKM 2023).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ultr.arrays import Doubles, Floats, Integers, Strings
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.evaluation.evidence import Evidence, check_codes
from ultr.evaluation.placement import scores_of
from ultr.files import new_file
from ultr.methods.position_curve import PositionCurve
from ultr.methods.ranker import Ranker
from ultr.metrics.click_posterior import click_posterior, log_marginal

FORMAT = "ultr head queries 1"
KEY = "ultr"
MOST = 50_000
"""Documents that the prior is fitted to, those of queries at even distances."""
NUMBERS = ("score", "prior", "posterior", "low", "high", "impressions", "exposure", "clicks")
_LIMITS = ((-30.0, 5.0), (0.0, 50.0), (-50.0, 50.0), (np.log(1e-3), np.log(1e6)))


@dataclass(frozen=True)
class RatePrior:
    """The prior of click rates: a line in scores for the logarithm of its mean, and its strength."""

    level: float
    within: float
    """Slope in the score less the mean of the query's documents, at least 0."""
    between: float
    """Slope in the mean score of the query's documents."""
    strength: float
    """Exposures that the prior counts for."""

    @classmethod
    def fit(cls, scores: Doubles, offsets: Integers, clicks: Doubles, exposure: Doubles) -> RatePrior:
        """The prior under which the clicks of all documents are most likely; query `i` has the rows of its offsets."""
        from scipy.optimize import minimize

        if not clicks.any():
            raise DataError("the log has no click, so there are no rates to fit a prior to")
        own, mean = _parts(scores, offsets)
        # In units of their spread, scores of all rankers look alike.
        units = [max(float(part.std()), 1e-9) for part in (own, mean)]

        def prior(numbers: Doubles) -> RatePrior:
            level, within, between, strength = (float(number) for number in numbers)
            between = between / units[1]
            return cls(level - between * float(mean.mean()), within / units[0], between, float(np.exp(strength)))

        def loss(numbers: Doubles) -> float:
            tried = prior(numbers)
            return -float(log_marginal(tried.rates(own, mean), clicks, exposure, tried.strength).mean())

        start = np.array([np.log(clicks.sum() / exposure.sum()), 0.5, 0.0, np.log(10.0)])
        found = minimize(loss, start, method="L-BFGS-B", bounds=_LIMITS)
        return prior(found.x)

    def rates(self, own: Doubles, mean: Doubles) -> Doubles:
        """The prior mean by the score less that of the query, and that of the query, [documents] each."""
        return np.exp(np.clip(self.level + self.within * own + self.between * mean, -30, 5))


def _parts(scores: Doubles, offsets: Integers) -> tuple[Doubles, Doubles]:
    """Scores less the mean of their query, and that mean, [documents] each."""
    query, lengths = ragged.list_numbers(offsets), np.diff(offsets)
    mean = (np.bincount(query, scores, minlength=len(lengths)) / np.maximum(lengths, 1))[query]
    return scores - mean, mean


@dataclass(frozen=True, eq=False)
class HeadQueries:
    """A table by query and document of what features and clicks say together."""

    queries: Strings
    """[rows], sorted."""
    documents: Strings
    """[rows]."""
    score: Doubles
    """[rows], by the ranker."""
    prior: Doubles
    """[rows], the click rate at the first position that the score stands for."""
    posterior: Doubles
    """[rows], the click rate at the first position by score and clicks."""
    low: Doubles
    high: Doubles
    """[rows], the 95 % interval of that rate."""
    impressions: Doubles
    exposure: Doubles
    """[rows], impressions times the propensities of their positions."""
    clicks: Doubles
    fitted: RatePrior
    source: str
    """The source of the propensities: `given`, `swaps`, `model` or `unknown`."""
    sentence: str
    """The source of the propensities in words."""

    @classmethod
    def of(
        cls,
        ranker: Ranker,
        log: ClickLog,
        *,
        document_ids: Strings | None = None,
        propensities: Sequence[float] | None = None,
    ) -> HeadQueries:
        """The table of all documents that a log shows.

        Args:
            ranker: A fitted ranker.
            log: Its clicks; better not those that the ranker learned from, which it agrees with too well.
            document_ids: The name of each row of the log's features; rows of a query with one name are one document.
                By default, documents are called by their rows.
            propensities: One for each position; by default those of the log's swaps, or else of the ranker's click
                model.

        """
        check_codes(ranker, log)
        if log.feature_names != ranker.feature_names:
            raise DataError("the log has other features than the one that the ranker was trained on")
        curve, evidence = PositionCurve.of(log, ranker, propensities), Evidence.of(log)
        names = np.arange(len(log.features)).astype(np.str_) if document_ids is None else document_ids
        if len(names) != len(log.features):
            raise DataError(f"{len(log.features)} documents in the log, but {len(names)} ids of documents")
        cells, scores = evidence.cells, scores_of(ranker, evidence)
        known, numbers = np.unique(names, return_inverse=True)
        query = np.repeat(evidence.query_numbers, np.diff(evidence.offsets))
        keys, row = np.unique(query * len(known) + numbers[evidence.documents], return_inverse=True)
        of_cell = row[cells.documents]
        impressions, exposure, clicks = (
            np.bincount(of_cell, each, minlength=len(keys)).astype(np.float64, copy=False)
            for each in (cells.impressions, cells.impressions * curve.values[cells.positions], cells.clicks)
        )
        score = np.bincount(row, scores) / np.bincount(row)
        queries, documents = np.divmod(keys, len(known))
        offsets = ragged.from_lengths(np.unique(queries, return_counts=True)[1])
        some = _some(offsets)
        rows = ragged.rows_of(some, offsets)
        fitted = RatePrior.fit(score[rows], ragged.from_lengths(np.diff(offsets)[some]), clicks[rows], exposure[rows])
        prior = fitted.rates(*_parts(score, offsets))
        found = click_posterior(prior, clicks, exposure, fitted.strength)
        return cls(
            queries=log.query_ids[queries],
            documents=known[documents],
            score=score,
            prior=prior,
            posterior=found.mean,
            low=found.low,
            high=found.high,
            impressions=impressions,
            exposure=exposure,
            clicks=clicks,
            fitted=fitted,
            source=curve.source,
            sentence=curve.sentence(ranker.method),
        )

    def rerank(self, scores: Floats | Doubles, queries: Strings, documents: Strings, offsets: Integers) -> Doubles:
        """The scores of candidates of some queries with what the table knows of them, [candidates].

        A query that has a candidate in the table is ranked by rates: those of the table, and the prior rates of its
        other candidates, by their scores. All others keep their scores. Rates and scores of two queries do not compare.

        Args:
            scores: Scores by the ranker that the table was made with, [candidates].
            queries: The id of each query.
            documents: The id of each candidate.
            offsets: Query `i` has the candidates `offsets[i]:offsets[i + 1]`.

        """
        ragged.check_offsets(offsets, len(scores), what="candidates")
        if len(documents) != len(scores) or len(queries) != len(offsets) - 1:
            raise DataError("every candidate needs the id of its document, and every list the id of its query")
        asked = np.flatnonzero(np.isin(self.queries, queries))
        rows = {(str(self.queries[row]), str(self.documents[row])): row for row in asked.tolist()}
        found = scores.astype(np.float64)
        for query, start, end in zip(queries, offsets[:-1], offsets[1:], strict=True):
            known = np.array([rows.get((str(query), str(each)), -1) for each in documents[start:end]], dtype=np.int64)
            inside = known >= 0
            if not inside.any():
                continue
            line = self.fitted.within * found[start:end]
            # The same score may stand for another rate in another query; those of known candidates tell.
            shift = float((np.log(self.prior[known[inside]]) - line[inside]).mean())
            found[start:end] = np.where(inside, self.posterior[known], np.exp(line + shift))
        return found

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the table as a Parquet file, whole or not at all."""
        import pyarrow
        from pyarrow import parquet

        columns = {"query": self.queries, "document": self.documents} | {name: getattr(self, name) for name in NUMBERS}
        table = pyarrow.table({name: pyarrow.array(values.tolist()) for name, values in columns.items()})
        about = {"format": FORMAT, "prior": asdict(self.fitted), "source": self.source, "sentence": self.sentence}
        with new_file(path, overwrite=overwrite) as draft:
            parquet.write_table(table.replace_schema_metadata({KEY: json.dumps(about)}), draft)

    @classmethod
    def load(cls, path: str | Path) -> HeadQueries:
        """Read the table that `save` wrote."""
        import pyarrow
        from pyarrow import parquet

        try:
            table = parquet.read_table(path)
            about = json.loads((table.schema.metadata or {})[KEY.encode()])
            if about["format"] != FORMAT:
                raise KeyError("format")
            columns: dict[str, Any] = {name: table[name].to_numpy().astype(np.float64) for name in NUMBERS}
            columns["queries"], columns["documents"] = (
                np.array(table[name].to_pylist(), dtype=np.str_) for name in ("query", "document")
            )
            columns |= {"fitted": RatePrior(**about["prior"]), "source": about["source"], "sentence": about["sentence"]}
            return cls(**columns)
        except (OSError, pyarrow.ArrowInvalid, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path} is not a table that `ultr head` wrote; write it again") from error


def _some(offsets: Integers) -> Integers:
    """Queries at even distances with about as many documents as a prior is fitted to."""
    step = -(-int(offsets[-1]) // MOST)
    return np.arange(0, len(offsets) - 1, max(step, 1))
