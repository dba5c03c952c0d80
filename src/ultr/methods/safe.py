"""A ranker that stays near the order in which its log was shown, as far as held-out evidence does not speak for more.

A model of the shown order, learned from the positions of the log, says where a document would stand if nothing were
changed. The ranks of the wanted order are kept within a factor F of it (`ultr.train.bounded`), so that the exposure of
no document moves by more than F, for every curve of exposure that is no steeper than 1 / rank. Of some factors, the
largest is taken that gains over the logged order beyond noise and is not beaten by a smaller one beyond noise; without
evidence, that is F = 1, the logged order (as in Thomas et al.: High Confidence Policy Improvement, ICML 2015). The
bound on exposure is the idea of proximal ranking policy optimisation, by ranks and after training (Gupta, Oosterhuis,
de Rijke: Practical and Robust Safety Guarantees for Advanced Counterfactual Learning to Rank, CIKM 2024).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ultr import checks
from ultr.arrays import Doubles
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.data.provenance import Provenance
from ultr.data.signal import CLICK
from ultr.data.split import HELD_OUT
from ultr.errors import DataError, OptionError
from ultr.files import jsonable
from ultr.losses import order_loss
from ultr.methods.position_curve import PositionCurve
from ultr.methods.ranker import Ranker
from ultr.methods.value_option import as_sum, squared_weights
from ultr.metrics import Interval, bootstrap_ratio, mean
from ultr.metrics.agreement import kendall_tau
from ultr.relevance.kinds import relevance_of
from ultr.relevance.preprocessing import InputLayout
from ultr.relevance.relevance_model import Relevance, RelevanceModel
from ultr.seeding import generator
from ultr.train.bounded import LOGGED, Bounded, bounded_ranks
from ultr.train.lists import Batch, TrainingLists
from ultr.train.loop import train
from ultr.train.objective import ScalarObjective
from ultr.train.progress import Observer
from ultr.train.ranking_model import RankingModel
from ultr.train.selection import ClickValidation, chunks
from ultr.train.stage import RELEVANCE, Stage

AUTO = "auto"
FACTORS = (1.0, 1.5, 2.0, 4.0, 8.0, math.inf)
"""Factors that are tried, up to the largest that is allowed."""
LEVEL = 0.95
"""Level of the intervals."""
FEWEST_CLICKS = 100
"""Fewer held-out clicks are no evidence for any change."""
FEW, LARGEST_SHARE = 500, 1 / 3
"""Held-out queries that evidence should rest on, and the largest share of a log that is held out for it."""
SAFE = "safe"
"""The entry of a ranker's choices that says how it was made safe."""


def allowed(largest: float | str) -> tuple[float, ...]:
    """The factors that are tried if none may be above the largest.

    >>> allowed(3), allowed("auto")[-1]
    ((1.0, 1.5, 2.0, 3.0), inf)
    """
    if largest == AUTO:
        return FACTORS
    checks.positive("safe", largest)
    bound = float(largest)
    if bound < 1:
        raise OptionError(f"safe must be a factor of at least 1, or auto, got {largest!r}")
    return (*(factor for factor in FACTORS if factor < bound), bound)


def evidence_share(log: ClickLog) -> float:
    """The share of the queries to hold out: more than usual where they are few.

    Queries differ far more than impressions of one query, so that it is queries that evidence needs.
    """
    return float(np.clip(FEW / max(len(np.unique(log.queries)), 1), HELD_OUT, LARGEST_SHARE))


def make_safe(
    ranker: Ranker,
    log: ClickLog,
    held_out: ClickLog,
    *,
    largest: float | str = AUTO,
    relevance: Relevance | None = None,
    propensities: Sequence[float] | None = None,
    seed: int = 0,
    observer: Observer | None = None,
) -> Ranker:
    """The same ranker, bounded by the order in which a log was shown.

    Args:
        ranker: A fitted ranker, whatever its method.
        log: The log that it learned from, whose order is learned here.
        held_out: Clicks that it did not learn from, which decide how far it may go.
        largest: The largest factor by which the exposure of a document may move, or `auto`: what the clicks allow.
        relevance: The model of the logged order; by default one like the ranker's own.
        propensities: One for each position; by default those of the log's swaps, or else of the ranker's click model.
        seed: Seed of the first weights, the batches and the intervals.
        observer: Told of the training of the logged order.

    """
    factors = allowed(largest)
    if LOGGED in ranker.model.by_name:
        raise OptionError("the ranker is safe already; give it as it was before")
    for each in (log, held_out):
        if each.feature_names != ranker.feature_names:
            raise DataError("the log has other features than the one that the ranker was trained on")
    value: Mapping[str, float] | None = ranker.options.get("value")
    counted, events = CLICK if value is None else as_sum(value), _events(held_out, value or {CLICK: 1.0})
    if not events:
        raise DataError(f"the held-out log has no {counted}, so it cannot say what is safe; hold out more of the log")
    chosen_by = relevance or relevance_of(ranker.options["relevance"])
    logged, agreement = _logged_order(ranker, _both(log, held_out), chosen_by, seed=seed, observer=observer)
    model = RankingModel({**ranker.model.by_name, LOGGED: logged}, ranker.model.objective).requires_grad_(False)
    curve = PositionCurve.of(log, ranker, propensities)
    if held_out.position.values.max(initial=0) >= len(curve.clipped):
        raise DataError(
            f"the held-out log shows more than {len(curve.clipped)} positions, of which the bias is known; give clicks "
            "on pages like those of the log, or propensities for all positions"
        )
    lists = _lists(ranker, held_out)
    if value is not None:
        lists = lists.with_value(value)
    found = Gains.of(model, lists, held_out, curve.clipped, factors, seed=seed)
    intervals = [found.over(0, number, seed=seed) for number in range(len(factors))]
    best = found.farthest(seed=seed) if events >= FEWEST_CLICKS else 0
    # No list is so long that the largest finite number is a bound; weights in files are finite.
    model.factor.fill_(min(factors[best], torch.finfo(model.factor.dtype).max))
    shown = found.over_shown(best, seed=seed)
    choice = {
        "largest": largest,
        "factor": _finite(factors[best]),
        # Gains over the logged order, relative to the discounted clicks of the lists as shown.
        "tried": [
            {"factor": _finite(factor), "gain": interval.mean, "low": interval.low, "high": interval.high}
            for factor, interval in zip(factors, intervals, strict=True)
        ],
        "clicks": round(events),
        "counted": counted,
        "over_shown": vars(shown),
        "agreement": agreement,
        "propensities": curve.values.tolist(),
        "sentence": curve.sentence(ranker.method),
        "relevance": jsonable(chosen_by.content()),
    }
    provenance = (ranker.provenance or Provenance()).beside(Provenance.of(log, held_out))
    return replace(ranker, model=model, choices={**ranker.choices, SAFE: choice}, provenance=provenance)


def in_words(choice: Mapping[str, Any]) -> tuple[str, ...]:
    """Sentences on what was chosen, what it rests on, and whether it is better than the lists as they were shown."""
    factor, shown = choice["factor"], Interval(**choice["over_shown"])
    bound = "Exposure may move by any factor"
    if factor is not None:
        bound = f"Exposure moves by a factor of {factor:g} at most from the logged order as it was learned"
    by_clicks = choice["counted"] == CLICK
    what, of = ("clicks", "") if by_clicks else (f"events of {choice['counted']}", f"of {choice['counted']} ")
    if factor == 1:
        bound = (
            f"{choice['clicks']:,} held-out {what} do not speak for any change, so the ranker keeps the logged order"
        )
    alone = math.isnan(shown.low)
    sure = "one query, so there is no interval" if alone else f"{shown.low:+.1%} to {shown.high:+.1%}"
    told = (
        f"{bound}; against the lists as shown, {shown.mean:+.1%} {of}({sure}).",
        f"The logged order was learned from positions; on held-out lists its Kendall tau with the shown order is "
        f"{choice['agreement']:.2f}.",
        choice["sentence"],
    )
    worse = "Features do not tell enough of the shown order to be as good as it: keep the present ranking."
    return (*told, worse) if shown.high < 0 else told


def with_logged_order(model: RankingModel, choice: dict[str, Any] | None, layout: InputLayout) -> RankingModel:
    """A new model with room for the logged order, if a ranker's choices say that it has one."""
    if choice is None:
        return model
    logged = relevance_of(choice["relevance"]).build(layout, 1, generator=torch.Generator())
    return RankingModel({**model.by_name, LOGGED: logged}, model.objective)


def _finite(factor: float) -> float | None:
    return None if math.isinf(factor) else factor


def _events(log: ClickLog, weights: Mapping[str, float]) -> float:
    """The number of events of one weight that tell as much as those of a value: (sum w)^2 / sum w^2 over events."""
    worth = sum(weight * float(log.signal(name).sum()) for name, weight in weights.items())
    squares = float(squared_weights(log, weights).sum())
    return worth**2 / squares if squares else 0.0


def _lists(ranker: Ranker, log: ClickLog) -> TrainingLists:
    return TrainingLists.of_log(log, ranker.inputs(log.with_categories(ranker.categories).features))


def _both(log: ClickLog, held_out: ClickLog) -> ClickLog:
    """The lists of both, whose order is no evidence that must be kept apart; the first alone if they are two logs."""
    if held_out.features is not log.features or held_out.position.levels != log.position.levels:
        return log
    parts = (log, held_out)
    names = ("documents", "clicks", "impressions", "queries")
    position = trusted(log.position, values=np.concatenate([part.position.values for part in parts]))
    nothing: dict[str, Any] = dict.fromkeys(("pair_clicks", "periods", "placements")) | {
        "period_names": (),
        "signals": (),
    }
    return trusted(
        log,
        offsets=ragged.from_lengths(np.concatenate([part.lengths for part in parts])),
        factors=(position,),
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names},
        **nothing,
    )


def _logged_order(
    ranker: Ranker, log: ClickLog, relevance: Relevance, *, seed: int, observer: Observer | None
) -> tuple[RelevanceModel, float]:
    """A model of the order in which the lists of a log were shown, and its agreement with that order.

    A tenth of the lists, at least one, chooses the weights; Kendall's tau is the mean over them.
    """

    def loss(r: Tensor, batch: Batch) -> Tensor:
        return order_loss(batch.pad(r.squeeze(-1)), mask=batch.mask)

    chosen = np.zeros(log.lists, dtype=np.bool_)
    count = max(1, round(HELD_OUT * log.lists))
    chosen[generator(seed, "logged order").permutation(log.lists)[:count]] = True
    kept, others = (_lists(ranker, log.part(lists, ())) for lists in (~chosen, chosen))
    objective, training = ScalarObjective(), relevance.training()
    first = torch.Generator().manual_seed(int(seed))
    model = RankingModel({RELEVANCE[0]: relevance.build(ranker.preprocessing.layout, 1, generator=first)}, objective)
    train(
        model,
        [Stage("logged order", training.steps, loss, objective.score)],
        kept,
        training=training,
        seed=seed,
        validation=ClickValidation(others),
        observer=observer,
    )
    taus = [np.full(1, np.nan)]
    with torch.no_grad():
        for chunk in chunks(others.offsets):
            batch = others.batch(chunk)
            scores = model.score(batch.documents, batch.mask).numpy()
            bounds = ragged.from_lengths(np.diff(others.offsets)[chunk])
            taus.append(kendall_tau(scores, -ragged.ranks(bounds).astype(np.float64), bounds))
    return model.by_name[RELEVANCE[0]], mean(np.concatenate(taus))


@dataclass(frozen=True, eq=False)
class Gains:
    """Discounted debiased clicks of each query by several orders: as shown, as logged, and within each factor.

    The value of an order is the sum over clicks of 1 / (theta_p log2(1 + rank)) over impressions: p is where a document
    was shown, and rank where the order puts it among the documents of the list. Where a ranker goes by a value, it
    counts in the place of clicks.
    """

    shown: Doubles
    """[queries], by the lists as they were shown."""
    bounded: Doubles
    """[factors, queries], within each factor of the logged order; the first is the logged order itself."""

    @classmethod
    def of(
        cls,
        model: RankingModel,
        lists: TrainingLists,
        log: ClickLog,
        propensities: Doubles,
        factors: Sequence[float],
        *,
        seed: int = 0,
    ) -> Gains:
        """The gains that a log speaks of, of a model that knows the logged order.

        Documents that tie are ordered by chance: the order of a list, as it was shown, is nothing that a ranker knows.
        """
        ranking = model.ranking
        assert isinstance(ranking, Bounded)
        by_query = np.zeros((len(factors) + 1, len(log.query_ids)))
        chance = torch.Generator().manual_seed(int(seed))
        with torch.no_grad():
            for chunk in chunks(lists.offsets):
                batch = lists.batch(chunk)
                r = batch.pad(model.outputs(batch.documents, ranking.ranks_with))
                dealt = torch.rand(batch.mask.shape, generator=chance).argsort(dim=-1)
                ranks = ranking.wanted_and_logged(
                    r.gather(1, dealt[..., None].expand(r.shape)), batch.mask.gather(1, dealt)
                )
                wanted, logged = (torch.empty_like(each).scatter(1, dealt, each) for each in ranks)
                shown = torch.arange(1, batch.mask.shape[1] + 1).expand(batch.mask.shape).float()
                orders = [shown, *(bounded_ranks(wanted, logged, torch.tensor(factor)) for factor in factors)]
                theta = batch.pad(torch.from_numpy(propensities)[batch.positions]).masked_fill(~batch.mask, 1.0)
                amounts = batch.clicks if batch.values is None else batch.values
                worth = amounts.double() / theta * torch.from_numpy(log.impressions[chunk])[:, None]
                totals = torch.stack([(worth / torch.log2(1.0 + order)).sum(dim=-1) for order in orders])
                np.add.at(by_query.T, log.queries[chunk], totals.T.numpy())
        queries = np.unique(log.queries)
        return cls(by_query[0, queries], by_query[1:, queries])

    def over(self, base: int, factor: int, *, seed: int = 0) -> Interval:
        """The gain of one of the factors over another; the first of them is the logged order."""
        return self._relative(self.bounded[factor] - self.bounded[base], seed)

    def farthest(self, *, seed: int = 0) -> int:
        """The last of the factors that gains over the first beyond noise and is not beaten by another beyond noise."""
        gains = [self.over(0, factor, seed=seed) for factor in range(len(self.bounded))]
        better = [factor for factor, gain in enumerate(gains) if gain.low > 0]
        best = max(better, key=lambda factor: gains[factor].mean, default=0)
        return max((factor for factor in better if self.over(best, factor, seed=seed).high >= 0), default=0)

    def over_shown(self, factor: int, *, seed: int = 0) -> Interval:
        """The gain of one of the factors over the lists as they were shown."""
        return self._relative(self.bounded[factor] - self.shown, seed)

    def _relative(self, gains: Doubles, seed: int) -> Interval:
        """Gains of queries relative to the value of all as shown."""
        return bootstrap_ratio(gains, self.shown, level=LEVEL, seed=seed)
