"""The value that a ranker would have for the users of a log that another ranker collected.

Under the position-based model a document d of a query is clicked with probability theta_p gamma_d: examination of its
position times relevance. The value of a ranker that puts d at the place k(d) of a page is the mean over the log's
impressions of

    V = sum over the documents d of the page of u(k(d)) gamma_d

with u(k) = theta_k (`clicks`: the expected clicks on an impression) or u(k) = 1 / log2(k + 1) (`dcg`). A ranker puts
the documents of a page into another order, at the places that the page had: pages become neither longer nor shorter,
and what they did not show, since it was out of stock or filtered out, does not come onto them. With `candidates` of
one's own, d is one of these, and k(d) is the place that a page had for its rank among them, u(k(d)) = 0 on pages that
do not go so far. Let N be the impressions of the query, c_d the clicks on d and rho_d the mean examination
that the log gave d: theta at its position, 0 where it was not shown, averaged over the N impressions. Let a_d be the
share of the N impressions on which d can be placed: those of its pages, or all for a candidate. Then the relevance is
estimated by

    ips               gamma_d = c_d / N / max(rho_d, tau a_d)
    doubly-robust     gamma_d = g_d + (c_d / N - rho_d g_d) / max(rho_d, tau a_d),   g_d a model of gamma_d

Where clicks also come without relevance, P = theta_p gamma_d + beta_p as under trust bias, `ips` takes the beta_p of
the positions of d off its clicks first (Vardasbi, Oosterhuis, de Rijke: When Inverse Propensity Scoring does not Work,
CIKM 2020). Of two rankers of the same documents, the beta_p of the ranks are the same for both and are left out.

Where d was always shown at one position p this is a click divided by theta_p. With several lists it is the policy-aware
form: it also sees documents that only some lists showed, and varies less. Given the shown lists, `ips` is unbiased for
all documents with rho_d >= tau a_d, and `doubly-robust` also for the others, as far as g is right; g is corrected only
by clicks and by skips that were probably examined. Where nothing is clipped the two are the same number, because rho_d
is what the log itself did: g pays where a higher tau makes the value surer. `self-normalised` is another quantity,

    V = sum over d on pages of u(k(d)) / u(1) gamma_d  /  sum over d on pages of gamma_d

with the gamma_d of `ips`: the mean rank weight of a relevant document, 1 if all stood first. A constant factor in the
propensities cancels in it, and much of the chance in who clicked at all.

By a value of what users did, such as 1 for a click and 20 for a purchase, a document is worth gamma_d v_d, with v_d the
value per click on it that the log has. Positions change clicks, and are assumed not to change what follows a click.

A document that the log never showed has rho_d = 0. There is no evidence on it: `ips` and `self-normalised` count it as
worth nothing, `doubly-robust` as what g says. Documents that tie share the mean of their ranks' weights.

Joachims, Swaminathan, Schnabel: Unbiased Learning-to-Rank with Biased Feedback, WSDM 2017; Oosterhuis, de Rijke:
Policy-Aware Unbiased Learning to Rank for Top-k Rankings, SIGIR 2020; Oosterhuis: Doubly Robust Estimation for
Correcting Position Bias in Click Feedback for Unbiased Learning to Rank, TOIS 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Floats, ratio
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError
from ultr.evaluation.evidence import Candidates, Evidence, EvidencePart, check_codes
from ultr.evaluation.judged import RankerLike
from ultr.evaluation.placement import Placement, placement_by, placement_of
from ultr.evaluation.unseen_part import unseen_part
from ultr.metrics import Interval, bootstrap_ratio

IPS, SELF_NORMALISED, DOUBLY_ROBUST = WEIGHTINGS = ("ips", "self-normalised", "doubly-robust")
UTILITIES = ("clicks", "dcg")


@dataclass(frozen=True, eq=False)
class CounterfactualValue:
    """The estimated value of a ranker, query by query, and how much evidence it rests on."""

    totals: Doubles
    """[queries], the value of all impressions of the query (self-normalised: the weighted relevance found)."""
    bases: Doubles
    """[queries], the impressions of the query (self-normalised: the relevance found)."""
    clicks: float
    """The clicks of the log that the value rests on: those on documents with a rank that counts."""
    effective_clicks: float
    """The number of clicks of equal weight that would be as sure: (sum of w)^2 / sum of w^2 over the clicks."""
    clipped: float
    """The share of the clicks' weight that clipping took away: this much relevance is missing (`ips`)."""
    unsupported: float
    """The share of the ranker's rank weight on documents that the log never showed, on which it has no evidence."""

    @property
    def value(self) -> float:
        """The mean over impressions (self-normalised: over relevance)."""
        return float(self.totals.sum() / self.bases.sum())

    def interval(self, *, level: float = 0.95, samples: int = 2_000, seed: int = 0) -> Interval:
        """The value with its bootstrap interval over queries; the propensities are taken for known."""
        return bootstrap_ratio(self.totals, self.bases, level=level, samples=samples, seed=seed)

    def against(
        self, other: CounterfactualValue, *, level: float = 0.95, samples: int = 2_000, seed: int = 0
    ) -> Interval:
        """The lead of this value over the other's on the same queries, with its bootstrap interval."""
        if self.bases.shape != other.bases.shape or not np.allclose(self.bases, other.bases):
            raise DataError("two values can only be compared on the same log, candidates, propensities and weighting")
        return bootstrap_ratio(self.totals - other.totals, self.bases, level=level, samples=samples, seed=seed)


@dataclass(frozen=True, eq=False)
class Valuation:
    """The options of an estimate of values; the formulas are at the head of this module."""

    propensities: Sequence[float] | Doubles
    """Examination by position from the first, in any unit; `dcg` values come in its inverse."""
    weighting: str = IPS
    """ips, self-normalised or doubly-robust."""
    utility: str = "clicks"
    """clicks or dcg."""
    cutoff: int | None = None
    """Ranks beyond it count nothing; by default as many count as there are propensities."""
    smallest: float = 0.01
    """tau as a share of the highest propensity: documents that were examined less get no higher weight than that."""
    relevance: Doubles | None = None
    """The g of doubly-robust for each row of the features, so that theta g is the probability of a click."""
    floor: Doubles | None = None
    """The beta of each position: `ips` takes off the clicks that documents get there whatever their relevance is."""

    def __post_init__(self) -> None:
        checks.one_of("weighting", self.weighting, WEIGHTINGS)
        checks.one_of("utility", self.utility, UTILITIES)
        checks.share("smallest", self.smallest)
        theta = np.asarray(self.propensities, dtype=np.float64)
        if theta.ndim != 1 or not len(theta) or not (np.isfinite(theta) & (theta > 0)).all():
            raise OptionError("propensities must be a number above 0 for each position")
        if self.cutoff is not None:
            checks.integer("cutoff", self.cutoff, at_least=1)
            if self.utility == "clicks" and self.cutoff > len(theta):
                raise OptionError(f"cutoff must be at most {len(theta)}, the number of propensities, to count clicks")
        if (self.weighting == DOUBLY_ROBUST) != (self.relevance is not None):
            raise OptionError("weighting doubly-robust needs a relevance for each document, and no other takes one")
        if self.floor is not None and (self.weighting != IPS or np.shape(self.floor) != theta.shape):
            raise OptionError("a floor is for weighting ips and has a number for each propensity")

    @property
    def normalised(self) -> bool:
        """True if values are over the relevance found, not over impressions."""
        return self.weighting == SELF_NORMALISED

    def rank_weights(self) -> Doubles:
        """u(k) of the ranks that count, from the first."""
        theta = np.asarray(self.propensities, dtype=np.float64)
        cutoff = len(theta) if self.cutoff is None else self.cutoff
        weights: Doubles = theta[:cutoff] if self.utility == "clicks" else 1 / np.log2(np.arange(cutoff) + 2)
        return weights / weights[0] if self.normalised else weights

    def of_scores(self, scores: Floats | Doubles, evidence: Evidence) -> CounterfactualValue:
        """The value of ranking the candidates by these scores."""
        return self.of(placement_of(scores, evidence), evidence)

    def of(self, placement: Placement, evidence: Evidence) -> CounterfactualValue:
        """The value of placing the candidates like this."""
        self.check(evidence)
        by_rank = self.rank_weights()
        totals, bases = np.zeros(len(evidence.impressions)), evidence.impressions.copy()
        clicks = kept = squared = full = placed = unsupported = 0.0
        for part in evidence.parts():
            weights = placement.weights(part)(by_rank)
            examined, divisor, found = self.relevance_of(part)
            totals[part.queries] = part.total(weights * found)
            if self.normalised:
                bases[part.queries] = part.total(found * part.shares)
            click_weights = weights / divisor
            clicks += float(part.clicks @ (weights > 0))
            kept += float(part.amounts @ click_weights)
            squared += float(part.squares @ click_weights**2)
            seen = ratio(part.amounts * weights, examined)
            full += float(seen.sum())
            placed += float(part.impressions @ weights)
            unsupported += float((part.impressions * weights) @ (examined == 0))
        if not bases.any():
            raise DataError("the log has no click on a candidate, so there is no value to estimate")
        return CounterfactualValue(
            totals=totals,
            bases=bases,
            clicks=clicks,
            effective_clicks=kept**2 / squared if squared else 0.0,
            clipped=max(0.0, 1 - kept / full) if full else 0.0,
            unsupported=unsupported / placed if placed else 0.0,
        )

    def check(self, evidence: Evidence) -> None:
        """Raise an error unless propensities and relevance fit the evidence."""
        if len(self.propensities) < evidence.positions:
            raise OptionError(
                f"the log shows {evidence.positions} positions, but {len(self.propensities)} propensities are given; "
                "give one for each position"
            )
        documents = len(evidence.features)
        g = self.relevance
        if g is not None and evidence.worth is not None:
            raise OptionError(
                "doubly-robust models clicks and not their value; compare by value with another weighting"
            )
        if g is not None and (g.shape != (documents,) or not np.isfinite(g).all()):
            raise DataError(f"relevance must be a number for each of {documents} documents of the log")

    def relevance_of(self, part: EvidencePart) -> tuple[Doubles, Doubles, Doubles]:
        """rho_d, max(rho_d, tau a_d) and N gamma_d of each candidate of a part, or N gamma_d v_d by a value."""
        return self.relevance_by(part, np.asarray(self.propensities, dtype=np.float64), self.floor)

    def relevance_by(
        self, part: EvidencePart, theta: Doubles, floor: Doubles | None
    ) -> tuple[Doubles, Doubles, Doubles]:
        """The same by other propensities and floors, [positions] or [draws, positions], one row for each draw."""
        examined = part.mean(theta)
        divisor = np.maximum(examined, self.smallest * theta.max(axis=-1, keepdims=True) * part.shares)
        found = part.clicks / divisor
        if floor is not None:
            found = found - part.impressions * part.mean(floor) / divisor
        if self.relevance is not None:
            found = found + part.impressions * self.relevance[part.documents] * (1 - examined / divisor)
        return examined, divisor, part.valued(found, divisor)


def counterfactual_value(
    ranker: RankerLike,
    log: ClickLog,
    *,
    propensities: Sequence[float] | Doubles,
    candidates: Candidates | None = None,
    weighting: str = IPS,
    utility: str = "clicks",
    cutoff: int | None = None,
    smallest: float = 0.01,
    relevance: Doubles | None = None,
) -> CounterfactualValue:
    """The value that a ranker would have for the users of a log, by the formulas at the head of this module.

    It orders the documents of each page, or else ranks the `candidates`, on the part of the log that it was not trained
    on. Where no such part is known, the whole log is taken, and a `SeenDataWarning` says why.
    """
    valuation = Valuation(propensities, weighting, utility, cutoff, smallest, relevance)
    check_codes(ranker, log)
    evidence = Evidence.of(unseen_part({"the ranker": ranker}, log).warn().log, candidates)
    return valuation.of(placement_by(ranker, evidence), evidence)
