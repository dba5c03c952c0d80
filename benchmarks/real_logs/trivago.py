"""trivago: two real bias factors, position and device, and nobody who saw a random order."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from benchmarks.measurement import Measurement
from benchmarks.real_logs import position_curves, printing
from benchmarks.real_logs.contenders import RAW, Sizes, fit, scores
from benchmarks.real_logs.position_curves import Band, Groups
from benchmarks.real_logs.printing import short, spanned
from benchmarks.real_logs.reading import ShownLists
from ultr.arrays import Doubles, Integers
from ultr.data.bias_factor import categorical_factor
from ultr.data.click_log import ClickLog
from ultr.evaluation.held_out import ClickPredictor, QueryLikelihoods
from ultr.methods import DLA, ClickBaseline, RegressionEM, TwoTower, Vectorization
from ultr.methods.estimator import Estimator
from ultr.metrics import Interval, bootstrap_ratio, kendall_tau
from ultr.metrics.query_bootstrap import query_numbers
from ultr.relevance import MLP
from ultr.seeding import generator

GROUPS = Groups((1, 2, 5, 10, 15, 20, 25))
FOLDS = 5
POSITION, WITH_DEVICE, BY_DEVICE = "position", "position and device", "position by device"
NO_FEATURES = "position alone"
RATES, REPEATS = "click rates", "EM, same hotel in several lists"
FEWEST_LISTS = 1_000
"""With fewer, too few clicked hotels stood at several positions to link them."""


def print_study(shown: ShownLists, *, sizes: Sizes, seed: int, samples: int) -> list[Measurement]:
    """All there is to be said about the log."""
    log = shown.log
    printing.heading("What the doctor says")
    printing.print_diagnosis(log)
    printing.heading("The same with the same hotel of a city as one document, at the mean of its prices")
    printing.print_diagnosis(by_hotel(shown))
    return print_curves(shown, samples=samples) + print_likelihoods(log, sizes=sizes, seed=seed)


def by_hotel(shown: ShownLists) -> ClickLog:
    """The log with cities for queries and their hotels for documents, which stood at several positions."""
    log, hotels = shown.log, shown.identities("city", "item_id")
    prices = np.bincount(hotels, log.features[log.documents, 0]) / np.bincount(hotels)
    return ClickLog.of(
        features=prices[:, None],
        feature_names=log.feature_names,
        documents=hotels,
        offsets=log.offsets,
        positions=log.positions,
        clicks=log.clicks,
        queries=shown.of_rows("city")[log.offsets[:-1]].tolist(),
        device=shown.of_rows("device"),
    )


def print_curves(shown: ShownLists, *, samples: int) -> list[Measurement]:
    """Click rates of each device by position, and what the repeats of hotels make of them."""
    printing.heading("Click rates by device and position, over position 1")
    log, device = shown.log, shown.log.factors[1]
    hotels = shown.identities("city", "item_id")
    of_list = device.values[log.offsets[:-1]]
    rows, measured = [], []
    for level, name in [*enumerate(device.levels), (-1, "all")]:
        lists = of_list == level if level >= 0 else np.ones(log.lists, dtype=np.bool_)
        part = log.select(lists)
        rows_of = np.repeat(lists, log.lengths)
        eta = position_curves.observed_exponent(part, samples=samples)
        rates = position_curves.observed(part, GROUPS, samples=samples)
        facts = [f"{part.lists:,}", short(float(part.totals(part.position).rates[0]))]
        rows.append([name, RATES, *facts, *_cells(rates), f"{eta[0]:.2f} ({eta[1]:.2f} to {eta[2]:.2f})"])
        measured.append(Measurement(f"trivago, {name}: exponent of click rates", eta[0], "eta", eta[1], eta[2]))
        if part.lists >= FEWEST_LISTS:
            repeats = position_curves.curve_of_repeats(part, hotels[rows_of], GROUPS, samples=samples)
            rows.append([name, REPEATS, "", "", *_cells(repeats), ""])
    printing.table(["device", "", "lists", "rate at 1", *GROUPS.names[1:], "exponent"], rows)
    return measured


def _cells(band: Band) -> list[str]:
    """The values of a curve behind its first, each with its interval."""
    values, low, high = (each[1:] for each in band)
    return [f"{short(v)} ({spanned(a, b)})" for v, a, b in zip(values, low, high, strict=True)]


def estimators(sizes: Sizes) -> dict[tuple[str, str], Estimator]:
    """Methods by name and by what they know of the display."""
    network = MLP(hidden=sizes.hidden, steps=sizes.steps)
    methods: dict[str, Estimator] = {
        "DLA": DLA(relevance=network),
        "RegressionEM": RegressionEM(relevance=network),
        "TwoTower": TwoTower(relevance=network),
        "TwoTower, softmax": TwoTower(relevance=network, link="softmax"),
        "Vectorization d=1": Vectorization(relevance=network, dimension=1),
        "Vectorization d=3": Vectorization(relevance=network, dimension=3),
    }
    able = ("TwoTower", "Vectorization d=1", "Vectorization d=3")
    listwise = ("DLA", "TwoTower, softmax", "Vectorization d=3")
    return (
        {(RAW, POSITION): ClickBaseline(relevance=network)}
        | {(name, POSITION): each for name, each in methods.items()}
        | {(name, WITH_DEVICE): methods[name] for name in able}
        | {(name, BY_DEVICE): methods[name] for name in listwise}
    )


def with_factors(log: ClickLog, knows: str) -> ClickLog:
    """The log with the bias factors that a method is to know: its position, its device, or each pair of both."""
    position, device = log.factors
    if knows == POSITION:
        return replace(log, factors=(position,))
    if knows == WITH_DEVICE:
        return log
    pairs = np.char.add(np.char.add(np.array(device.levels)[device.values], " "), log.positions.astype(np.str_))
    return replace(log, factors=(position, categorical_factor(BY_DEVICE, pairs)))


def print_likelihoods(log: ClickLog, *, sizes: Sizes, seed: int) -> list[Measurement]:
    """Held-out log-likelihood of a click among its list, cross-validated, and how alike the rankings are."""
    printing.heading("Held-out log-likelihood of a click among its list, five folds of lists")
    folds = generator(seed, "folds").permutation(np.arange(log.lists) % FOLDS)
    fits: dict[tuple[str, str], Doubles] = {}
    orders: dict[tuple[str, str], Doubles] = {}
    for (name, knows), estimator in estimators(sizes).items():
        known = with_factors(log, knows)
        totals, ranks = np.zeros(log.lists), np.zeros(len(log.documents))
        for fold in range(FOLDS):
            held = known.select(folds == fold)
            ranker = fit(estimator, known.select(folds != fold), seed=seed)
            totals[folds == fold] = list_likelihoods(ranker, held)
            ranks[np.repeat(folds == fold, log.lengths)] = scores(ranker, held)
        fits[name, knows], orders[name, knows] = totals, ranks
    fits[NO_FEATURES, POSITION] = cross_validated_rates(log, folds)
    clicks = np.ones(log.lists)
    raw, base = fits[RAW, POSITION], orders[RAW, POSITION]
    rows, measured = [], []
    for (name, knows), found in fits.items():
        mean = bootstrap_ratio(found, clicks)
        plain = bootstrap_ratio(found - fits[name, POSITION], clicks) if knows != POSITION else None
        lead = bootstrap_ratio(found - raw, clicks)
        order = orders.get((name, knows))
        tau = "" if order is None else short(float(np.nanmean(kendall_tau(order, base, log.offsets))))
        cells = ["" if each is None else _lead(each) for each in (lead if name != RAW else None, plain)]
        rows.append([name, knows, f"{mean.mean:.3f}", *cells, tau])
        words = f"trivago, {name}, {knows}: held-out log-likelihood of a click"
        measured.append(Measurement(words, mean.mean, "nats", mean.low, mean.high))
    header = ["method", "knows", "log-likelihood", "less raw clicks", "less the same without device"]
    printing.table([*header, "Kendall's tau with raw clicks' order"], rows)
    return measured


def _lead(found: Interval) -> str:
    return f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f})"


def list_likelihoods(ranker: ClickPredictor, log: ClickLog) -> Doubles:
    """The log-likelihood of the clicks of each list; lists must be queries of their own."""
    found = QueryLikelihoods.of(ranker, log).list_totals
    return found[query_numbers(log)]


def cross_validated_rates(log: ClickLog, folds: Integers) -> Doubles:
    """The log-likelihood of each list's click by the click rates of positions in other folds, without any feature."""
    found = np.zeros(log.lists)
    for fold in range(FOLDS):
        others, held = log.select(folds != fold), log.select(folds == fold)
        totals = others.totals(others.position)
        rates = (totals.clicks + 0.5) / (totals.impressions + 1)
        weights = rates[held.position.values]
        parts = [
            held.clicks[a:b] @ np.log(weights[a:b] / weights[a:b].sum()) for a, b in pairwise(held.offsets.tolist())
        ]
        found[folds == fold] = parts
    return found
