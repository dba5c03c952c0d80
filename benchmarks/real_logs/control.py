"""A control with known answers: the same searches and features, clicks drawn from a known examination and relevance.

A user clicks one hotel of a list, hotel i at position p(i) with a chance in proportion to p(i)^-eta exp(u_i + z_i). The
utility u follows the features; z is what they do not say. In the world `as shown`, z is 0 and the lists stand in the
site's own order. In the world `the site knows more`, z varies as much as u, and the site has sorted by u + z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from benchmarks.measurement import Measurement
from benchmarks.real_logs.contenders import RAW, TRUE_CURVE, Sizes, fit, scores
from benchmarks.real_logs.judging import CUTOFF
from benchmarks.real_logs.position_curves import power_law
from benchmarks.real_logs.printing import heading, short, table
from ultr.arrays import Doubles, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.methods import DLA, ClickBaseline, InversePropensity, Vectorization
from ultr.methods.estimator import Estimator
from ultr.metrics import kendall_tau
from ultr.relevance import Trees
from ultr.seeding import generator

AS_SHOWN, KNOWS_MORE = "as shown", "the site knows more"
WORLDS = (AS_SHOWN, KNOWS_MORE)
BEST = "the utility itself"


@dataclass(frozen=True, eq=False)
class Worth:
    """What the shown documents of a log are worth to its users."""

    log: ClickLog
    utility: Doubles
    """[shown documents], what follows from the features."""
    hidden: Doubles
    """[shown documents], what does not."""

    @property
    def total(self) -> Doubles:
        """The logit of a click where all positions are examined alike."""
        return self.utility + self.hidden

    def agreement(self) -> float:
        """Kendall's tau of the shown order with that by utility, averaged over lists."""
        return float(np.nanmean(kendall_tau(-self.log.positions.astype(np.float64), self.utility, self.log.offsets)))


@dataclass(frozen=True, eq=False)
class World:
    """Two logs whose documents have a known worth, and how steeply examination falls."""

    train: Worth
    """Lists in the order of the site."""
    test: Worth
    eta: float

    def clicked(self, impressions: int, *, seed: int) -> ClickLog:
        """The training lists with one click drawn for each of so many impressions of each."""
        log = self.train.log
        examination = power_law(self.eta, len(log.position.levels))[log.position.values]
        chances = softmax(self.train.total + np.log(examination), log.offsets)
        clicks = draw_clicks(chances, log.offsets, impressions, seed=seed)
        return replace(log, clicks=clicks, impressions=np.full(log.lists, impressions), pair_clicks=None, signals=())

    def value(self, ranking: Doubles) -> float:
        """The expected nDCG@10 of one click in the test lists, if all positions were examined alike."""
        chances = softmax(self.test.total, self.test.log.offsets)
        return float(expected_ndcg(ranking, chances, self.test.log.offsets, cutoff=CUTOFF).mean())


def softmax(logits: Doubles, offsets: Integers) -> Doubles:
    """The softmax within each list."""
    lists = ragged.list_numbers(offsets)
    highest = np.full(len(offsets) - 1, -np.inf)
    np.maximum.at(highest, lists, logits)
    weights = np.exp(logits - highest[lists])
    shares: Doubles = weights / np.bincount(lists, weights)[lists]
    return shares


def expected_ndcg(ranking: Doubles, chances: Doubles, offsets: Integers, *, cutoff: int) -> Doubles:
    """The mean nDCG of one click that document i gets with chance q_i: sum of q_i / log2(rank_i + 1) up to the cutoff.

    Documents with equal scores share the mean of their discounts, as if their order were drawn.
    """
    lists, ranks = ragged.list_numbers(offsets), ragged.ranks(offsets)
    order = np.lexsort((-ranking, lists))
    discounts = np.where(ranks < cutoff, 1 / np.log2(ranks + 2), 0.0)
    begins = (np.diff(ranking[order], prepend=np.nan) != 0) | (ranks == 0)
    ties = np.cumsum(begins) - 1
    shared = (np.bincount(ties, discounts) / np.bincount(ties))[ties]
    return np.bincount(lists, chances[order] * shared, minlength=len(offsets) - 1).astype(np.float64)


def draw_clicks(chances: Doubles, offsets: Integers, impressions: int, *, seed: int) -> Integers:
    """How many of the impressions of each list clicked each of its documents, one click each."""
    random = generator(seed, "control clicks")
    return np.concatenate([random.multinomial(impressions, chances[a:b]) for a, b in pairwise(offsets.tolist())])


def standardised(values: Doubles, offsets: Integers) -> Doubles:
    """Less the mean of their list, over the standard deviation of what is left."""
    lists = ragged.list_numbers(offsets)
    centred = values - (np.bincount(lists, values) / np.bincount(lists))[lists]
    scaled: Doubles = centred / centred.std()
    return scaled


def world(kind: str, train: ClickLog, test: ClickLog, *, eta: float, rounds: int, seed: int) -> World:
    """A world whose utilities are what trees learned from the clicks of the random searches."""
    teacher = fit(ClickBaseline(relevance=Trees(rounds=rounds)), test, seed=0)
    random = generator(seed, "control", kind)
    worths = []
    for log in (train, test):
        utility = standardised(scores(teacher, log), log.offsets)
        worths.append(Worth(log, utility, float(kind == KNOWS_MORE) * random.normal(size=len(utility))))
    return World(best_first(worths[0]) if kind == KNOWS_MORE else worths[0], worths[1], eta)


def best_first(worth: Worth) -> Worth:
    """The lists from the most worthy document down, at the positions that they filled before."""
    order = np.lexsort((-worth.total, ragged.list_numbers(worth.log.offsets)))
    log = replace(worth.log, documents=worth.log.documents[order], pair_clicks=None)
    return Worth(log, worth.utility[order], worth.hidden[order])


def rankers(sizes: Sizes, eta: float, positions: int) -> dict[str, Estimator]:
    """Those that the control is run with, all by trees, which know missing values."""
    trees = Trees(rounds=sizes.rounds)
    return {
        RAW: ClickBaseline(relevance=trees),
        TRUE_CURVE: InversePropensity(relevance=trees, propensities=tuple(power_law(eta, positions).tolist())),
        "DLA": DLA(relevance=trees),
        "Vectorization d=3": Vectorization(relevance=trees, vector_hidden=sizes.hidden, vector_steps=sizes.steps),
    }


def values(here: World, estimators: dict[str, Estimator], impressions: int, *, seed: int) -> dict[str, float]:
    """The value of each ranker in a world, trained on so many clicks for each list, and of the best that there is."""
    log = here.clicked(impressions, seed=seed)
    found = {name: here.value(scores(fit(each, log, seed=seed), here.test.log)) for name, each in estimators.items()}
    return found | {BEST: here.value(here.test.utility)}


def print_control(
    train: ClickLog, test: ClickLog, *, eta: float, sizes: Sizes, impressions: Sequence[int], seeds: Sequence[int]
) -> list[Measurement]:
    """The value of each ranker in each world, with so many clicks for each list, averaged over draws of the world."""
    estimators = rankers(sizes, eta, len(train.position.levels))
    rows, measured = [], []
    for kind in WORLDS:
        worlds = {seed: world(kind, train, test, eta=eta, rounds=sizes.rounds, seed=seed) for seed in seeds}
        for count in impressions:
            found = [values(each, estimators, count, seed=seed) for seed, each in worlds.items()]
            raw, cells = np.array([each[RAW] for each in found]), [kind, f"{count:,}"]
            for name in found[0]:
                those = np.array([each[name] for each in found])
                lead = "" if name == RAW else f" ({_with_error(those - raw)})"
                cells.append(f"{short(float(those.mean()))}{lead}")
                words = f"Expedia, control, {kind}, {count} clicks for each list, {name}: expected nDCG@10"
                measured.append(Measurement(words, float(those.mean()), "nDCG@10"))
            rows.append(cells)
        agreement = np.mean([each.train.agreement() for each in worlds.values()])
        print(f"{kind}: Kendall's tau of the shown order with that by utility {agreement:.2f}\n", flush=True)
    heading(f"Control: expected nDCG@10 of a click where examination is p^-{eta:.2f}, {len(seeds)} draws")
    table(["world", "clicks for each list", *estimators, BEST], rows)
    return measured


def _with_error(differences: Doubles) -> str:
    """The mean and, if there are several, its standard error."""
    mean = short(float(differences.mean()), signed=True)
    count = len(differences)
    return f"{mean} ± {short(float(differences.std(ddof=1) / np.sqrt(count)))}" if count > 1 else mean
