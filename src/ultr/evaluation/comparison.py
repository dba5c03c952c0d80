"""A comparison of two rankers by a click log alone, which also says when they cannot be compared.

Two questions are answered apart. The counterfactual value says which one *ranks* better, as far as the position-based
model holds and the propensities are known. The likelihood of the log's clicks says which one *predicts clicks* better,
which needs neither, but does not prove a better ranking: a model may predict clicks well because it knows the bias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ultr import checks
from ultr.arrays import Doubles
from ultr.bias import SWAP_ESTIMATORS, ResampledPropensities
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.gathering import gather, new_array
from ultr.data.log_checks import trusted
from ultr.data.log_splits import split_pages, with_counts
from ultr.errors import DataError, OptionError
from ultr.evaluation.assumption import Assumption
from ultr.evaluation.counterfactual import IPS, UTILITIES, WEIGHTINGS, CounterfactualValue, Valuation
from ultr.evaluation.evidence import Candidates, Evidence, check_codes
from ultr.evaluation.held_out import QueryLikelihoods
from ultr.evaluation.judged import RankerLike
from ultr.evaluation.placement import AsShown, Placement, Ranking
from ultr.evaluation.unseen_part import UnseenPart, unseen_part
from ultr.metrics import Interval, bootstrap_ratio
from ultr.metrics.query_bootstrap import FEW_QUERIES, percentiles

CANNOT_TELL = "cannot tell"
AS_SHOWN, RAW_CLICKS = "the lists as shown", "raw clicks"
FEWEST_EFFECTIVE_CLICKS = 100
MOST_UNSUPPORTED = 0.1
"""The most of a ranker's rank weight that may lie on documents the log never showed."""
MOST_CLIPPED = 0.1
MOST_FAILED = 0.05
"""The most resamples of the log in which the swaps may fail to link all positions."""

QUESTIONS = {
    "value": "ranks better than {a}",
    "value_against_shown": "ranks better than the lists as shown",
    "value_against_raw_clicks": "ranks better than raw clicks",
    "likelihood": "predicts clicks and skips better than {a}",
    "list_likelihood": "predicts which of a list is clicked better than {a}",
}
"""The claim that each answer of a comparison is about, the second ranker being the subject."""

Valued: TypeAlias = Sequence[tuple[Placement, Evidence]]
"""A ranker's placements, one for each part of a log."""


@dataclass(frozen=True)
class Answer:
    """A plain answer with its reason and the number behind it."""

    verdict: str
    """`... is better`, or `cannot tell`."""
    reason: str
    winner: str | None = None
    """The name of the better one."""
    difference: Interval | None = None
    """The lead of the first one, with its interval; None where there is nothing to compare."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Answers on whether the second of two rankers is better than the first, and than what the log has already."""

    value: Answer
    """By counterfactual value: the second ranker against the first."""
    value_against_shown: Answer
    """The second ranker against the lists as they were shown."""
    value_against_raw_clicks: Answer
    """The second ranker against ordering each query's documents by their click rate on other pages of the log."""
    likelihood: Answer
    """By the likelihood of each shown document's click or skip: the second ranker against the first."""
    list_likelihood: Answer
    """By the likelihood of each click among its list: the second ranker against the first."""
    values: dict[str, CounterfactualValue]
    """By name: both rankers and the lists as shown; empty without propensities."""
    propensities: Doubles | None
    """[positions], those that the values are built on; None where they are not identified."""
    assumption: Assumption
    """The test of whether one propensity for each position describes the log at all."""
    unseen: UnseenPart
    """The part of the log that the rankers were compared on, with what must be said about it."""


def compare(
    a: RankerLike,
    b: RankerLike,
    log: ClickLog,
    *,
    propensities: Sequence[float] | Doubles | None = None,
    estimator: str = "all-pairs",
    swaps: ClickLog | None = None,
    weighting: str = IPS,
    utility: str = "clicks",
    relevance: Doubles | None = None,
    candidates: Candidates | None = None,
    names: tuple[str, str] = ("A", "B"),
    assumption: Assumption | None = None,
    unseen: UnseenPart | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Answer whether ranker `b` is better than `a` and than raw clicks, by the part of `log` unseen by both.

    A part is unseen by a ranker that was not trained on it.

    Where no such part is known, the whole log is taken, and a `SeenDataWarning` says why.
    Without `propensities` they are estimated from the swaps of the log, and intervals follow how unsure they are; given
    ones are taken for known. If `log` is a part of a larger log, with the same query ids, its swaps help as `swaps`.
    Intervals are bootstrapped over queries. `assumption` and `unseen` are for those who have tested the log and looked
    for its unseen part already. `weighting`, `utility`, `relevance` and `candidates` are those of
    `counterfactual_value`.
    """
    checks.one_of("estimator", estimator, SWAP_ESTIMATORS)
    checks.one_of("weighting", weighting, WEIGHTINGS)
    checks.one_of("utility", utility, UTILITIES)
    if swaps is not None and not np.array_equal(swaps.query_ids, log.query_ids):
        raise DataError("swaps must come from a log with the query ids of the log that rankers are compared on")
    if names[0] == names[1]:
        raise OptionError(f"the two rankers need different names, got {names[0]!r} twice")
    swaps = log if swaps is None else swaps
    rankers = dict(zip(names, (a, b), strict=True))
    unseen = unseen_part(rankers, log).warn() if unseen is None else unseen
    log = unseen.log
    if not log.clicks.any():
        raise DataError("the log has no click, so there is nothing to compare rankers by")
    for ranker in rankers.values():
        known_names = tuple(getattr(getattr(ranker, "ranker_", ranker), "feature_names", log.feature_names))
        if known_names != tuple(log.feature_names):
            raise DataError(
                f"a ranker knows {len(known_names)} features, the log has {len(log.feature_names)} or other names for "
                "them; compare on a log with the features that both were trained for"
            )
        check_codes(ranker, log)
    if assumption is None:
        assumption = Assumption.of_log(swaps, seed=seed)
    likelihoods = _likelihood_answers(rankers, log, level=level, seed=seed)
    known: Doubles | ResampledPropensities
    try:
        if propensities is None:
            known = ResampledPropensities.of_log(swaps, estimator, seed=seed)
        else:
            known = np.asarray(propensities, dtype=np.float64)
    except DataError as error:
        unknown = Answer(CANNOT_TELL, f"the propensities are not identified: {error}")
        return Comparison(
            unknown, unknown, unknown, *likelihoods, values={}, propensities=None, assumption=assumption, unseen=unseen
        )
    theta = known.estimate if isinstance(known, ResampledPropensities) else known
    valuation = Valuation(theta, weighting, utility, relevance=relevance)
    trial = Trial(log, valuation, known, level=level, seed=seed)
    evidence = Evidence.of(log, candidates)
    ranked = {name: Ranking.by(ranker, evidence) for name, ranker in rankers.items()}
    rankings: dict[str, Valued] = {name: [(ranking, evidence)] for name, ranking in ranked.items()}
    rankings[AS_SHOWN] = [(AsShown(), evidence)]
    first, second = names
    try:
        beside = _beside_raw_clicks(ranked[second], evidence, log, candidates, seed=seed)
        against_raw = trial.answer(dict(zip((second, RAW_CLICKS), beside, strict=True)), second, RAW_CLICKS)
    except DataError as error:
        against_raw = Answer(CANNOT_TELL, f"the pages cannot be halved to rank by raw clicks: {error}")
    return Comparison(
        trial.answer(rankings, second, first),
        trial.answer(rankings, second, AS_SHOWN),
        against_raw,
        *likelihoods,
        values={name: valuation.of(*placed[0]) for name, placed in rankings.items()},
        propensities=theta,
        assumption=assumption,
        unseen=unseen,
    )


@dataclass(frozen=True, eq=False)
class Trial:
    """A comparison of rankers by their values on one log."""

    log: ClickLog
    valuation: Valuation
    propensities: Doubles | ResampledPropensities
    """Those of the valuation, with their resamples where there are some."""
    level: float = 0.95
    seed: int = 0

    def answer(self, rankings: dict[str, Valued], first: str, second: str) -> Answer:
        """The answer on whether the first is better than the second."""
        difference = self.difference(rankings[first], rankings[second])
        weak = self._weakness({name: rankings[name] for name in (first, second)})
        if weak:
            return Answer(CANNOT_TELL, f"too little support: {weak}", difference=difference)
        what = "expected clicks on an impression" if self.valuation.utility == "clicks" else "discounted relevance"
        return _judge(difference, first, second, what=f"the difference in {what}", level=self.level)

    def difference(self, first: Valued, second: Valued) -> Interval:
        """The value of the first placements less that of the second, with its bootstrap interval over queries.

        Where the propensities come with their resamples, each draw of queries is valued by those of that draw.
        """
        parts = list(zip(first, second, strict=True))
        totals, bases = np.zeros(len(self.log.query_ids)), np.zeros(len(self.log.query_ids))
        for (placement, evidence), (other, _) in parts:
            value, base = self.valuation.of(placement, evidence), self.valuation.of(other, evidence)
            totals[evidence.query_numbers] += value.totals - base.totals
            bases[evidence.query_numbers] += value.bases
        queries = np.unique(self.log.queries)
        if not isinstance(self.propensities, ResampledPropensities):
            return bootstrap_ratio(totals[queries], bases[queries], level=self.level, seed=self.seed)
        drawn = [replace(self.valuation, propensities=theta) for theta in self.propensities.draws]
        above, below = np.zeros(len(drawn)), np.zeros(len(drawn))
        for (placement, evidence), (other, _) in parts:
            # Candidates without a click are worth nothing, unless a model says what they are worth.
            for part in evidence.parts(clicked=self.valuation.relevance is None):
                groups = self.propensities.groups[evidence.query_numbers[part.queries]]
                ours, theirs = placement.weights(part), other.weights(part)
                for draw, by_draw in enumerate(drawn):
                    by_rank, (_, _, found) = by_draw.rank_weights(), by_draw.relevance_of(part)
                    lead = ours(by_rank) - theirs(by_rank)
                    times = self.propensities.counts[draw][groups]
                    above[draw] += times @ part.total(lead * found)
                    below[draw] += times @ (
                        part.total(found) if by_draw.normalised else evidence.impressions[part.queries]
                    )
        low, high = percentiles(above[below > 0] / below[below > 0], self.level, len(queries))
        return Interval(float(totals.sum() / bases.sum()), float(low), float(high))

    def _weakness(self, rankings: dict[str, Valued]) -> str | None:
        queries = len(np.unique(self.log.queries))
        if queries < FEW_QUERIES:
            return f"{queries} queries, fewer than {FEW_QUERIES}"
        if isinstance(self.propensities, ResampledPropensities) and self.propensities.failed > MOST_FAILED:
            return (
                f"in {self.propensities.failed:.0%} of the resamples of the log swaps do not link all positions, so "
                "the propensities hang on a few queries; log more swaps, or give propensities"
            )
        for name, placed in rankings.items():
            values = [self.valuation.of(*part) for part in placed]
            effective = sum(value.effective_clicks for value in values)
            if effective < FEWEST_EFFECTIVE_CLICKS:
                return (
                    f"the clicks that the value of {name} rests on weigh as much as {effective:.0f} of equal weight, "
                    f"fewer than {FEWEST_EFFECTIVE_CLICKS}"
                )
            unsupported = max(value.unsupported for value in values)
            if unsupported > MOST_UNSUPPORTED:
                return f"{unsupported:.0%} of what {name} shows was never shown by the log, which cannot know its worth"
            clipped = max(value.clipped for value in values)
            if clipped > MOST_CLIPPED and self.valuation.relevance is None:
                return f"{clipped:.0%} of the weight of the clicks that {name} rests on had to be clipped"
        return None


def _beside_raw_clicks(
    ranking: Ranking, evidence: Evidence, log: ClickLog, candidates: Candidates | None, *, seed: int
) -> tuple[Valued, Valued]:
    """The ranking and raw click rates on both halves of the log's pages, each half ranked by the rates of the other.

    On the pages that they come from, click rates would win by the chance in the very clicks that they are judged by.
    """
    shown = Candidates.shown(log) if candidates is None else candidates
    plain = trusted(log, pair_clicks=None)
    halves = split_pages(plain, 0.5, seed=seed)
    parts = [Evidence.of(with_counts(plain, half, ()), shown) for half in halves]
    ranked: Valued = [(ranking.within(evidence, part), part) for part in parts]
    raw: list[tuple[Placement, Evidence]] = []
    clicked = False
    for part, other in zip(parts, reversed(parts), strict=True):
        rates = new_array(len(shown.documents), np.float64)
        rates[:] = 0
        for piece in other.parts():
            rows = ragged.rows_of(other.query_numbers[piece.queries], shown.offsets)
            times = np.bincount(piece.shown, piece.times, minlength=len(rows))
            rates[rows] = piece.clicks / np.maximum(times, 1)
        known = gather([rates], part.query_numbers, shown.offsets)[1][0]
        clicked |= bool(known.any())
        raw.append((Ranking.of(known, part), part))
    if not clicked:
        raise DataError("no clicked document was shown in both halves")
    return ranked, raw


def _likelihood_answers(rankers: Mapping[str, Any], log: ClickLog, *, level: float, seed: int) -> tuple[Answer, Answer]:
    """Answers on who predicts the log's clicks better: clicks and skips one by one, and clicks among their lists."""
    fits = {}
    for name, ranker in rankers.items():
        if not hasattr(ranker, "click_shares"):
            return (Answer(CANNOT_TELL, f"{name} does not predict clicks"),) * 2
        try:
            fits[name] = QueryLikelihoods.of(ranker, log)
        except (OptionError, DataError) as error:
            return (Answer(CANNOT_TELL, f"{name} does not predict these clicks: {error}"),) * 2
    (first, theirs), (second, ours) = fits.items()
    what = "the difference in log-likelihood of a click"
    by_document = ours.against(theirs, level=level, seed=seed)
    by_list = ours.against_in_lists(theirs, level=level, seed=seed)
    return (
        _judge(by_document, second, first, what=f"{what} or skip", level=level),
        _judge(by_list, second, first, what=f"{what} among its list", level=level),
    )


def _judge(difference: Interval, first: str, second: str, *, what: str, level: float) -> Answer:
    """The answer that the interval of the first one's lead gives."""
    if np.isnan(difference.low):
        return Answer(CANNOT_TELL, f"{what} comes from one query, which tells nothing about others")
    numbers = f"{difference.mean:+.4f}, {level:.0%} interval {difference.low:+.4f} to {difference.high:+.4f}"
    if difference.low > 0 or difference.high < 0:
        winner = first if difference.low > 0 else second
        return Answer(f"{winner} is better", f"{what} is {numbers}", winner, difference)
    return Answer(CANNOT_TELL, f"{what} is {numbers}, which holds 0", difference=difference)
