"""Criteria that choose among rankers trained on one log without labels, and the choice by labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from ultr.arrays import Doubles
from ultr.bias import ResampledPropensities, estimate_propensities
from ultr.data.click_log import ClickLog
from ultr.data.split import HELD_OUT
from ultr.errors import DataError
from ultr.evaluation import Assumption, Candidates, Evidence, QueryLikelihoods, Valuation, unseen_part
from ultr.evaluation.placement import placement_by
from ultr.evaluation.trial import Trial
from ultr.experiments.run import data_of
from ultr.experiments.spec import Contender
from ultr.experiments.store import Outcome
from ultr.methods import load
from ultr.methods.auto import Auto
from ultr.methods.dimension import choose_dimension
from ultr.methods.ranker import Ranker
from ultr.methods.regression_em import RegressionObjective, attractiveness
from ultr.methods.vector_objective import VectorObjective
from ultr.methods.vectorization import Vectorization
from ultr.metrics import Interval, paired_lead
from ultr.simulation.log import simulate_more

MEASURE = "nDCG@10"
RANDOM, AUTO = "random choice", 'dimension="auto"'
QUERIES, PAGES = "queries", "pages"
VALUE, LIKELIHOOD, IN_LISTS = "value (ips)", "likelihood of clicks and skips", "likelihood in lists"
RIGHT, WRONG, UNSURE = "better one named", "worse one named", "cannot tell"
RESAMPLES = 100
SURE = 0.1
"""The smallest examination that doubly robust values divide by; with a lower one they hardly differ from plain ones."""

Scores = dict[str, float]
"""By label of the candidate; higher is better."""


@dataclass(frozen=True)
class ModelSelection:
    """Criteria without labels and quality by labels of the candidates trained on one log."""

    quality: Scores
    criteria: dict[str, Scores]
    """By name; a criterion that the log does not allow is left out."""
    chosen: dict[str, str]
    """By name, what rules that are more than a maximum choose."""
    verdicts: dict[str, list[str]]
    """By criterion, for each pair of methods that labels tell apart: whether its interval does so, too."""
    rank_p_value: float | None
    """P-value of one number for each position, by documents shown at several; None where the log allows no test."""
    blended: Scores
    """Quality of rankers that weigh raw and debiased clicks themselves: rivals of a choice, not candidates."""

    def regrets(self, candidates: Sequence[str]) -> Scores:
        """Quality that each way to choose loses among these candidates."""
        best = max(self.quality[label] for label in candidates)
        picked = {name: max(candidates, key=scores.__getitem__) for name, scores in self.criteria.items()}
        picked |= {name: label for name, label in self.chosen.items() if label in candidates}
        picked |= {f"always {label}": label for label in candidates}
        reached = {name: self.quality[label] for name, label in picked.items()} | self.blended
        reached[RANDOM] = float(np.mean([self.quality[label] for label in candidates]))
        return {name: best - quality for name, quality in reached.items()}


def is_default(contender: Contender) -> bool:
    """True if it stands for its method: of Vectorization, the dimension that it has by default."""
    return bool(contender.options.get("dimension", Vectorization.dimension) == Vectorization.dimension)


def is_candidate(contender: Contender) -> bool:
    """True for a ranker to choose from; False for one that chooses by itself."""
    return contender.method != Auto.name


def model_selection(trained_on_one_log: Sequence[Outcome]) -> ModelSelection:
    """All criteria on the rankers of one seed, fold and click setting."""
    outcomes = [each for each in trained_on_one_log if is_candidate(each.run.contender)]
    shared, seed = data_of(outcomes[0].run), outcomes[0].run.seed
    trained, _ = shared.split()
    pages = simulate_more(trained, shared.splits.train, shared.model, share=HELD_OUT / (1 - HELD_OUT), seed=seed)
    rankers = {outcome.run.contender.label: load(outcome.model) for outcome in outcomes}
    unseen = unseen_part(rankers, shared.log)
    if unseen.warnings:
        raise DataError(f"the rankers of {outcomes[0].run} cannot be chosen by clicks: {'; '.join(unseen.warnings)}")
    criteria: dict[str, Scores] = {}
    chosen: dict[str, str] = {}
    by_dimension = {
        each.objective.dimension: label
        for label, each in rankers.items()
        if isinstance(each.objective, VectorObjective)
    }
    for where, log in ((QUERIES, unseen.log), (PAGES, pages)):
        fits = {label: QueryLikelihoods.of(ranker, log) for label, ranker in rankers.items()}
        scores = {
            LIKELIHOOD: {label: float(fit.totals.sum() / fit.shown.sum()) for label, fit in fits.items()},
            IN_LISTS: {label: float(fit.list_totals.sum() / fit.clicks.sum()) for label, fit in fits.items()},
            **_values(rankers, shared.log, log),
        }
        criteria |= {f"{name}, {where}": each for name, each in scores.items()}
        if len(by_dimension) > 1:
            shares = {length: rankers[label].click_shares for length, label in by_dimension.items()}
            chosen[f"{AUTO}, {where}"] = by_dimension[choose_dimension(shares, log)[0]]
    measure = outcomes[0].run.measures.index(MEASURE)
    values = {outcome.run.contender.label: outcome.values[measure] for outcome in trained_on_one_log}
    quality = {label: float(np.nanmean(each)) for label, each in values.items()}
    methods = [outcome.run.contender.label for outcome in outcomes if is_default(outcome.run.contender)]
    try:
        theta = ResampledPropensities.of_log(shared.log, samples=RESAMPLES, seed=seed)
    except DataError:
        theta = None
    return ModelSelection(
        quality={label: each for label, each in quality.items() if label in rankers},
        criteria=criteria,
        chosen=chosen,
        verdicts=_verdicts({label: rankers[label] for label in methods}, values, unseen.log, theta),
        rank_p_value=Assumption.of_log(shared.log, seed=seed).p_value,
        blended={label: each for label, each in quality.items() if label not in rankers},
    )


def _values(rankers: Mapping[str, Ranker], whole: ClickLog, log: ClickLog) -> dict[str, Scores]:
    """Counterfactual values on a part of the log; none where the swaps of the whole do not tell the propensities."""
    try:
        theta = estimate_propensities(whole)
    except DataError:
        return {}
    valuations = {
        VALUE: Valuation(theta),
        "value (self-normalised)": Valuation(theta, "self-normalised"),
        "value (ips, dcg)": Valuation(theta, utility="dcg"),
    }
    judge = next((each for each in rankers.values() if isinstance(each.objective, RegressionObjective)), None)
    if judge is not None:
        valuations["value (doubly robust)"] = Valuation(
            theta, "doubly-robust", smallest=SURE, relevance=attractiveness(judge, log.features)
        )
    evidence = Evidence.of(log, Candidates.shown(log))
    placed = {label: placement_by(ranker, evidence) for label, ranker in rankers.items()}
    return {
        name: {label: valuation.of(each, evidence).value for label, each in placed.items()}
        for name, valuation in valuations.items()
    }


def _verdicts(
    rankers: Mapping[str, Ranker], values: Mapping[str, Doubles], log: ClickLog, theta: ResampledPropensities | None
) -> dict[str, list[str]]:
    """Verdicts of intervals on held-out queries, one per pair that labels tell apart."""
    evidence = Evidence.of(log, Candidates.shown(log))
    placed = {label: [(placement_by(ranker, evidence), evidence)] for label, ranker in rankers.items()}
    fits = {label: QueryLikelihoods.of(ranker, log) for label, ranker in rankers.items()}
    names = (LIKELIHOOD, IN_LISTS) if theta is None else (LIKELIHOOD, IN_LISTS, VALUE)
    verdicts: dict[str, list[str]] = {name: [] for name in names}
    for first, second in permutations(rankers, 2):
        known = ~np.isnan(values[first])
        if not paired_lead(values[first][known], values[second][known], np.ones(known.sum())).beyond_noise:
            continue
        verdicts[LIKELIHOOD].append(_verdict(fits[first].against(fits[second])))
        verdicts[IN_LISTS].append(_verdict(fits[first].against_in_lists(fits[second])))
        if theta is not None:
            trial = Trial(log, Valuation(theta.estimate), theta)
            verdicts[VALUE].append(_verdict(trial.difference(placed[first], placed[second])))
    return verdicts


def _verdict(lead: Interval) -> str:
    return RIGHT if lead.low > 0 else WRONG if lead.high < 0 else UNSURE
