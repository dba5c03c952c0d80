"""Expedia: rankers trained on searches in the site's order, judged by users who saw random orders."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.measurement import Measurement
from benchmarks.real_logs import contenders, position_curves, printing
from benchmarks.real_logs.contenders import NETWORK, RAW, TREES, Sizes, fit, scores
from benchmarks.real_logs.judging import judge
from benchmarks.real_logs.position_curves import Band, Groups, exponent, power_law
from benchmarks.real_logs.printing import short, spanned
from benchmarks.real_logs.reading import BOOKING, ShownLists
from benchmarks.real_logs.standings import Standings
from ultr.arrays import Doubles
from ultr.bias.predictability import position_predictability
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.missing_values import in_words, missing_shares
from ultr.data.totals import Totals
from ultr.methods import ClickBaseline
from ultr.methods.estimator import Estimator
from ultr.metrics import kendall_tau
from ultr.relevance import Trees
from ultr.seeding import generator

GROUPS = Groups((1, 2, 4, 10, 16, 22, 36), without=(5, 11, 17, 23))
"""Positions 5, 11, 17 and 23 are advertisements; few lists go beyond 36."""
ONE_FEATURE = {"prop_location_score2": 1, "prop_review_score": 1, "prop_starrating": 1, "price_usd": -1}
ORDERED_BY = ("price_usd", "prop_starrating", "prop_review_score", "promotion_flag", "prop_location_score1")
TRUTH, AS_LOGGED, REPEATS = "random searches", "click rates of the log", "EM, same hotel in several searches"
OF_RANDOM = "raw clicks of random searches, cross-validated trees"
DRAWN = ("DLA", "Vectorization d=3", "RegressionEM", "TwoTower, softmax")
IMITATION = "the site's order without users"
AS_SHOWN = "random order, as it was shown"
IMPRESSIONS = 1_000
"""Impressions of a list whose clicks are computed, not counted."""
FOLDS = 5
LONG, SORTED = 10, 0.8
"""In lists of ten documents in random order, Kendall's tau is beyond 0.8 once in 2,800."""


@dataclass(frozen=True, eq=False)
class Searches:
    """Both kinds of searches, and how rankers are trained."""

    ordered: ShownLists
    """In the site's order: all that is trained on."""
    random: ShownLists
    """In random order: all that is judged by."""
    sizes: Sizes
    seeds: tuple[int, ...]

    @property
    def kinds(self) -> dict[str, ShownLists]:
        """Both by name."""
        return {"the site's order, trained on": self.ordered, "random order, judged by": self.random}

    def exponent(self) -> float:
        """That of the click rates of random searches, the true curve up to noise."""
        return exponent(self.random.log.totals(self.random.log.position))

    def estimators(self) -> dict[str, Estimator]:
        """All methods; given propensities are the power laws of the click rates of both kinds of searches."""
        log = self.ordered.log
        positions = len(log.position.levels)
        click_rates = power_law(exponent(log.totals(log.position)), positions)
        true_curve = power_law(self.exponent(), positions)
        return contenders.contenders(self.sizes, click_rates=click_rates, true_curve=true_curve)


def print_facts(searches: Searches) -> None:
    """How much there is, how users of both kinds differ, and whether the random orders are random."""
    printing.heading("The searches")
    rows = []
    for name, part in searches.kinds.items():
        log = part.log
        clicks, bookings = log.clicks.sum(), log.signal(BOOKING).sum()
        counts = (f"{each:,}" for each in (log.lists, len(log.documents), clicks, bookings))
        rows.append([name, *counts, f"{bookings / clicks:.0%}"])
    printing.table(["searches in", "searches", "hotels shown", "clicks", "bookings", "clicks that booked"], rows)
    log = searches.ordered.log
    print(f"\n{in_words(missing_shares(log.features, log.feature_names), len(log.feature_names))}")
    printing.heading("Does the order follow the features? Kendall's tau with the shown order, standard error")
    logs = {name: part.log for name, part in searches.kinds.items()}
    logs["random order, shuffled again"] = shuffled(searches.random.log)
    taus = {name: _agreements(each) for name, each in logs.items()}
    rows = [[feature, *(each[feature] for each in taus.values())] for feature in taus["random order, judged by"]]
    shares = (position_predictability(each).r_squared for each in logs.values())
    rows.append(["all, by a linear function: share explained", *(f"{each:.0%}" for each in shares)])
    rows.append(
        ["lists of ten or more that are sorted by price", *(f"{sorted_by_price(each):.1%}" for each in logs.values())]
    )
    printing.table(["feature", *logs], rows)


def shuffled(log: ClickLog) -> ClickLog:
    """The same lists in an order that is random for sure."""
    places = generator(0, "shuffled").random(len(log.documents))
    order = np.lexsort((places, ragged.list_numbers(log.offsets)))
    return replace(log, documents=log.documents[order], clicks=log.clicks[order], pair_clicks=None, signals=())


def sorted_by_price(log: ClickLog) -> float:
    """The share of the lists of ten or more in which Kendall's tau of the price with the order is beyond 0.8."""
    prices = log.features[log.documents, log.feature_names.index("price_usd")].astype(np.float64)
    taus = kendall_tau(prices, -log.positions.astype(np.float64), log.offsets)[log.lengths >= LONG]
    return float(np.mean(np.abs(taus[~np.isnan(taus)]) > SORTED))


def _agreements(log: ClickLog) -> dict[str, str]:
    """Kendall's tau of the shown order with that by a feature, its highest value first, averaged over lists."""
    known = dict(zip(log.feature_names, log.features[log.documents].T.astype(np.float64), strict=True))
    values = {name: known[name] for name in ORDERED_BY}
    values["prop_location_score2 is known"] = (~np.isnan(known["prop_location_score2"])).astype(np.float64)
    found = {}
    for name, each in values.items():
        taus = kendall_tau(np.nan_to_num(each), -log.positions.astype(np.float64), log.offsets)
        taus = taus[~np.isnan(taus)]
        found[name] = f"{taus.mean():+.3f} ± {taus.std(ddof=1) / np.sqrt(len(taus)):.3f}"
    return found


def print_beforehand(searches: Searches) -> None:
    """What the doctor and comparisons of rankers say without the random searches."""
    log, estimators = searches.ordered.log, searches.estimators()
    printing.heading("What the doctor says beforehand")
    printing.print_diagnosis(log)
    printing.heading("What comparisons of rankers say beforehand")
    seed = searches.seeds[0]
    for kind in (NETWORK, TREES):
        raw = f"{RAW}, {kind}"
        first = fit(estimators[raw], log, seed=seed)
        for other in (f"DLA, {kind}", f"Vectorization d=3, {kind}"):
            second = fit(estimators[other], log, seed=seed)
            printing.print_comparison(first, second, log, names=(raw, other))


def train(searches: Searches, kept: Path | None) -> tuple[Standings, dict[str, Doubles]]:
    """How every ranker stands, and the position curves of those that learned one.

    With a folder `kept`, what each training left is put there, and not done again if it is there already.
    """
    log, test = searches.ordered.log, searches.random.log
    estimators = searches.estimators()
    logs = dict.fromkeys(estimators, log)
    for kind in (NETWORK, TREES):
        estimators[f"{IMITATION}, {kind}"] = estimators[f"{RAW}, {kind}"]
        logs[f"{IMITATION}, {kind}"] = without_users(log)
    found: dict[str, Sequence[Doubles]] = {}
    curves: dict[str, Doubles] = {}
    for name, estimator in estimators.items():
        left = _trained(estimator, logs[name], searches, None if kept is None else kept / f"{name}.npz")
        found[name] = list(left["scores"])
        if "curve" in left:
            curves[name] = left["curve"]
        print(f"{name}: {short(judge(found[name], test).interval.mean)}", file=sys.stderr, flush=True)
    found[OF_RANDOM] = [_cross_validated(searches, seed) for seed in searches.seeds]
    found |= {name: [each] for name, each in contenders.heuristics(test, ONE_FEATURE).items()}
    found[AS_SHOWN] = [-test.positions.astype(np.float64)]
    examination = power_law(searches.exponent(), len(test.position.levels))
    return Standings.of(found, test, examination=examination), curves


def _trained(estimator: Estimator, log: ClickLog, searches: Searches, file: Path | None) -> dict[str, Doubles]:
    """The scores of the random searches [seeds, shown documents] and, if it was learned, the position curve."""
    if file is not None and file.is_file():
        return dict(np.load(file))
    rankers = [fit(estimator, log, seed=seed) for seed in searches.seeds]
    left = {"scores": np.stack([scores(ranker, searches.random.log) for ranker in rankers])}
    if contenders.learns_bias(estimator):
        left["curve"] = contenders.position_curve(rankers, log)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **left)  # type: ignore[arg-type]
    return left


def without_users(log: ClickLog) -> ClickLog:
    """The lists with clicks that follow the position alone, by the power law of the log's click rates.

    All that can be learned from it is the order in which the site shows hotels.
    """
    curve = power_law(exponent(log.totals(log.position)), len(log.position.levels))[log.position.values]
    lists = ragged.list_numbers(log.offsets)
    shares = curve / np.bincount(lists, curve)[lists]
    clicks, impressions = np.rint(IMPRESSIONS * shares).astype(np.int64), np.full(log.lists, IMPRESSIONS)
    return replace(log, clicks=clicks, impressions=impressions, pair_clicks=None, signals=())


def _cross_validated(searches: Searches, seed: int) -> Doubles:
    """Scores of each random search by trees trained on others of them."""
    log, trees = searches.random.log, Trees(rounds=searches.sizes.rounds)
    folds = generator(seed, "folds").permutation(np.arange(log.lists) % FOLDS)
    found = np.zeros(len(log.documents))
    for fold in range(FOLDS):
        ranker = fit(ClickBaseline(relevance=trees), log.select(folds != fold), seed=seed)
        found[np.repeat(folds == fold, log.lengths)] = scores(ranker, log.select(folds == fold))
    return found


def print_curves(
    searches: Searches, learned: Mapping[str, Doubles], *, samples: int, figure: Path | None
) -> list[Measurement]:
    """The position curves of all estimators beside the truth; some are drawn."""
    printing.heading("Clicks over those at position 1, all else being equal")
    logs = {TRUTH: searches.random.log, AS_LOGGED: searches.ordered.log}
    bands = {name: position_curves.observed(log, GROUPS, samples=samples) for name, log in logs.items()}
    hotels = searches.ordered.identities("srch_destination_id", "prop_id")
    bands[REPEATS] = position_curves.curve_of_repeats(searches.ordered.log, hotels, GROUPS, samples=samples)
    rows, measured = [], []
    for name, band in bands.items():
        cells = [f"{short(value)} ({spanned(low, high)})" for value, low, high in list(zip(*band, strict=True))[1:]]
        words = ""
        if name in logs:
            mean, low, high = position_curves.observed_exponent(logs[name], samples=samples)
            words = f"{mean:.2f} ({low:.2f} to {high:.2f})"
            measured.append(Measurement(f"Expedia, {name}: exponent", mean, "eta", low, high))
        rows.append([name, *cells, words])
    shown = searches.ordered.log.totals(searches.ordered.log.position).impressions.astype(np.float64)
    for name, curve in learned.items():
        eta = exponent(Totals(shown, shown * curve))
        rows.append([name, *(short(each) for each in GROUPS.means(curve, shown)[1:]), f"{eta:.2f}"])
        measured.append(Measurement(f"Expedia, {name}: exponent", eta, "eta"))
    printing.table(["estimator", *GROUPS.names[1:], "exponent"], rows)
    if figure is not None:
        lines = {name: GROUPS.means(learned[f"{name}, {NETWORK}"], shown) for name in DRAWN}
        drawn: dict[str, Band | Doubles] = {TRUTH: bands[TRUTH], AS_LOGGED: bands[AS_LOGGED][0], **lines}
        position_curves.draw(drawn, GROUPS.names).savefig(figure, dpi=120)
    return measured
