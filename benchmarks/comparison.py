"""How true `ultr compare` is: `python -m benchmarks.comparison`, with `--repetitions` for other than 16 logs a row.

Each repetition draws fresh queries from a pool and a fresh log on them. Three pairs of rankers are compared:

    gain  B knows the labels with some noise, A is the ranker that was logged
    tie   A knows labels with noise and follows the logged order; B has the same labels at the same ranks, but puts
          documents of one label in random order: of equal worth by every measure and under every click model
    loss  B is the logged ranker with much noise, A without

The truth is the expected clicks over the whole pool, by the click model itself. In cascades that is no measure of
rankings, so the winner that should be named goes by labels. `before` has all-pairs propensities, `after` what `compare`
has by default. The more noise in the lists, the more swaps there are to estimate propensities from.

Below come two smaller tables: the width of intervals by a tenth of the queries and by a tenth of the pages, and how
often a winner is named at a tie by someone who looks again with every tenth of the queries that is added.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measurement import Measurement, write
from ultr.arrays import Doubles, Floats, Integers
from ultr.bias import EM, ResampledPropensities
from ultr.clicks.model import ClickModel
from ultr.clicks.registry import CLICK_MODELS, click_model
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.datasets.letor_like import letor_like
from ultr.evaluation.counterfactual import Valuation
from ultr.evaluation.evidence import Evidence
from ultr.evaluation.halves import Halves
from ultr.evaluation.placement import placement_by
from ultr.evaluation.trial import Answer, Certainty, Trial, Valued
from ultr.metrics import Interval
from ultr.simulation.log import simulate
from ultr.simulation.ranking_svm import RankingSVM

POOL, RANKINGS, SAMPLES = 5_000, 4, 200
PAIRS = ("gain", "tie", "loss")
WINNERS = {"gain": "B", "tie": None, "loss": "A"}
BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Column:
    """A ranker by one of the features, which here are the scores of the rankers."""

    number: int

    def score(self, features: Floats, offsets: Integers) -> Floats:
        """The column itself."""
        return features[:, self.number]


@dataclass(frozen=True)
class Setting:
    """The size of a log and how much its lists differ from each other."""

    queries: int
    impressions: int
    noise: float

    @classmethod
    def of(cls, text: str) -> Setting:
        """The setting of a text such as `100x40/0.5`.

        >>> Setting.of("100x40/0.5")
        Setting(queries=100, impressions=40, noise=0.5)
        """
        size, _, noise = text.partition("/")
        queries, _, impressions = size.partition("x")
        return cls(int(queries), int(impressions), float(noise))

    def log(self, pool: JudgedLists, model: ClickModel, *, seed: int) -> ClickLog:
        """A log on queries of the pool, which the first feature has ranked."""
        chosen = np.sort(np.random.default_rng(seed).choice(pool.queries, self.queries, replace=False))
        judged = pool.select(chosen)
        return simulate(
            judged,
            model,
            scores=judged.features[:, 0].astype(np.float64),
            impressions=self.queries * self.impressions,
            rankings=RANKINGS,
            noise=self.noise,
            seed=seed,
        )


def pool_of(positions: int) -> tuple[JudgedLists, dict[str, tuple[int, int]]]:
    """Queries with the documents that the Ranking SVM puts first, scores as features, and the pairs of columns A, B."""
    judged = letor_like(train_queries=POOL, validation_queries=10, test_queries=10).train
    scores = RankingSVM.fit(judged, share=0.01).score(judged.features)
    order = np.lexsort((-scores, ragged.list_numbers(judged.offsets)))
    ranks = np.arange(len(order)) - np.repeat(judged.offsets[:-1], np.diff(judged.offsets))
    kept = np.sort(order[ranks < positions])
    offsets = ragged.from_lengths(np.minimum(np.diff(judged.offsets), positions))
    labels, logged, lists = judged.labels[kept], scores[kept], ragged.list_numbers(offsets)
    random = np.random.default_rng(5)
    logged = (logged - logged.mean()) / logged.std()
    better = labels + random.normal(size=len(kept))
    follows = 0.5 * labels + 0.5 * random.normal(size=len(kept)) + logged
    # The scores of the documents of one label and query, dealt out at random.
    mixed = np.empty_like(follows)
    mixed[np.lexsort((random.random(len(kept)), labels, lists))] = follows[np.lexsort((-follows, labels, lists))]
    worse = logged + random.normal(size=len(kept))
    columns = np.stack([logged, better, follows, mixed, worse], axis=1).astype(np.float32)
    pool = JudgedLists.of(features=columns, labels=labels, offsets=offsets, max_label=judged.max_label)
    return pool, {"gain": (0, 1), "tie": (2, 3), "loss": (0, 4)}


def expected_clicks(judged: JudgedLists, model: ClickModel, scores: Doubles | Floats) -> float:
    """The mean over queries of the clicks on a list in the order of the scores."""
    order = np.lexsort((-scores, ragged.list_numbers(judged.offsets)))
    labels = ragged.pad(judged.labels[order], judged.offsets, width=model.positions, fill=-1)
    return float(model.probabilities(labels, max_label=judged.max_label).sum(axis=1).mean())


@dataclass(frozen=True, eq=False)
class Case:
    """A log, or a part of one, that two columns are compared on, with the swaps of the whole."""

    log: ClickLog
    swaps: ClickLog
    pair: tuple[int, int]

    def answer(self, estimator: str, *, halves: bool, judge: Certainty, seed: int) -> Answer:
        """The answer on whether B is better, by the checks and intervals of `ultr compare`."""
        a, b = (Column(number) for number in self.pair)
        theta = ResampledPropensities.of_log(self.swaps, estimator, samples=SAMPLES, seed=seed)
        both = Halves.of((a, b), self.swaps, estimator, seed=seed) if halves else None
        trial = Trial(self.log, Valuation(theta.estimate), theta, both, judge, seed)
        evidence = Evidence.of(self.log)
        placed: dict[str, Valued] = {
            name: [(placement_by(ranker, evidence), evidence)] for name, ranker in (("A", a), ("B", b))
        }
        return trial.answer(placed, "B", "A")

    def before(self, *, seed: int) -> Answer:
        """The answer by all-pairs propensities, the same for all documents."""
        return self.answer("all-pairs", halves=False, judge=Certainty(), seed=seed)

    def after(self, judge: Certainty | None = None, *, seed: int) -> Answer:
        """The answer of today."""
        return self.answer(EM, halves=True, judge=judge or Certainty(), seed=seed)


@dataclass(frozen=True)
class Record:
    """The answers to one question on many logs."""

    answers: tuple[Answer, ...]
    truth: float
    """The lead of B in clicks."""
    winner: str | None
    """By labels."""

    @property
    def covered(self) -> float:
        """The share of intervals that hold the truth."""
        return float(np.mean([each.low <= self.truth <= each.high for each in self._intervals]))

    @property
    def width(self) -> float:
        """The median width of the intervals."""
        return float(np.median([each.high - each.low for each in self._intervals]))

    @property
    def bias(self) -> float:
        """The mean error of the estimate."""
        return float(np.mean([each.mean for each in self._intervals]) - self.truth)

    @property
    def _intervals(self) -> list[Interval]:
        return [each.difference for each in self.answers if each.difference is not None]

    def named(self, winner: str) -> float:
        """The share of answers that name this winner."""
        return float(np.mean([each.winner == winner for each in self.answers]))

    @property
    def right(self) -> float | None:
        """The share of answers that name the winner; None at a tie."""
        return None if self.winner is None else self.named(self.winner)

    @property
    def wrong(self) -> float:
        """The share of answers that name a winner at a tie, or the worse one."""
        return sum(self.named(name) for name in "AB" if name != self.winner)


def verdicts(settings: list[Setting], models: list[str], repetitions: int) -> list[Measurement]:
    """Print and give coverage, power and false alarms of both ways to compare."""
    print("| clicks | log | pair | true gain | bias | width | covered | right | wrong |")
    print("|---|---|---|---|---|---|---|---|---|")
    measurements = []
    for name in models:
        model = click_model(name)
        pool, pairs = pool_of(model.positions)
        for setting in settings:
            answers: dict[tuple[str, str], list[Answer]] = {}
            for seed in range(repetitions):
                log = setting.log(pool, model, seed=seed)
                for pair, columns in pairs.items():
                    case = Case(log, log, columns)
                    answers.setdefault((pair, BEFORE), []).append(case.before(seed=seed))
                    answers.setdefault((pair, AFTER), []).append(case.after(seed=seed))
            for pair, columns in pairs.items():
                a, b = (expected_clicks(pool, model, pool.features[:, number]) for number in columns)
                both = [Record(tuple(answers[pair, how]), b - a, WINNERS[pair]) for how in (BEFORE, AFTER)]
                where = f"{name} | {setting.queries} x {setting.impressions}, noise {setting.noise:g} | {pair}"
                print(f"| {where} | {b - a:+.3f} | {' | '.join(_cells(*both))} |", flush=True)
                measurements += _measured(f"{where}".replace(" | ", ", "), both)
    return measurements


def _cells(before: Record, after: Record) -> list[str]:
    """Before → after, for each column of the table."""
    columns = [
        (f"{before.bias:+.3f}", f"{after.bias:+.3f}"),
        *((_short(getattr(before, name)), _short(getattr(after, name))) for name in ("width", "covered")),
        ("", "") if before.right is None or after.right is None else (_share(before.right), _share(after.right)),
        (_share(before.wrong), _share(after.wrong)),
    ]
    return [f"{first} → {second}" if first else "" for first, second in columns]


def _short(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1)


def _share(value: float) -> str:
    return f"{value:.0%}".replace("%", " %")


def _measured(where: str, both: list[Record]) -> list[Measurement]:
    return [
        Measurement(f"{where}, {how}: {what}", value, "share", headline=how == AFTER)
        for how, record in zip((BEFORE, AFTER), both, strict=True)
        for what, value in (("right winner", record.right), ("wrong winner", record.wrong))
        if value is not None
    ]


def held_out(setting: Setting, models: list[str], repetitions: int) -> list[Measurement]:
    """Print and give what a tenth of the queries tells beside a tenth of the pages of all queries."""
    print(
        f"\n| clicks, {setting.queries} x {setting.impressions}, noise {setting.noise:g} | held out | width | right |"
    )
    print("|---|---|---|---|")
    measurements = []
    for name in models:
        model = click_model(name)
        pool, pairs = pool_of(model.positions)
        for by in ("query", "page"):
            found = []
            for seed in range(repetitions):
                log = setting.log(pool, model, seed=seed)
                part = log.split(0.1, by=by, seed=seed)[1]
                found.append(Case(part, log, pairs["gain"]).after(seed=seed))
            record = Record(tuple(found), 0.0, "B")
            print(f"| {name} | {by} | {_short(record.width)} | {_share(record.named('B'))} |", flush=True)
            measurements.append(Measurement(f"{name}, a tenth by {by}: right winner", record.named("B"), "share"))
    return measurements


def looking(setting: Setting, looks: int, repetitions: int) -> list[Measurement]:
    """Print and give how often a winner is named at a tie, or rightly, by someone who looks as the log grows."""
    print(f"\n| {looks} looks, up to {setting.queries} x {setting.impressions} | intervals | gain: B | tie: A or B |")
    print("|---|---|---|---|")
    model = click_model("position-based")
    pool, pairs = pool_of(model.positions)
    measurements = []
    for judge in (Certainty(), Certainty(looks=looks)):
        named: dict[str, list[bool]] = {"gain": [], "tie": []}
        for pair, winners in named.items():
            for seed in range(repetitions):
                log = setting.log(pool, model, seed=seed)
                # Queries in random order, since those of a pool are in no order of time.
                order = np.random.default_rng(seed).permutation(setting.queries)
                for look in range(1, looks + 1):
                    part = log.select(order[log.queries] < look * setting.queries // looks)
                    answer = Case(part, part, pairs[pair]).after(judge, seed=seed)
                    if answer.winner is not None:
                        break
                winners.append(answer.winner is not None and (pair == "tie" or answer.winner == "B"))
        shares = {pair: float(np.mean(winners)) for pair, winners in named.items()}
        print(f"| | for {judge.looks} | {_share(shares['gain'])} | {_share(shares['tie'])} |", flush=True)
        measurements.append(
            Measurement(f"a winner at a tie in {looks} looks, intervals for {judge.looks}", shares["tie"], "share")
        )
    return measurements


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=16, help="logs for each row")
    parser.add_argument("--clicks", choices=list(CLICK_MODELS), nargs="+", default=list(CLICK_MODELS))
    parser.add_argument("--logs", nargs="+", default=["100x40/0.5", "400x100/0.5"])
    parser.add_argument("--only", choices=("verdicts", "held-out", "looks"), help="one of the three tables")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    measurements = []
    if asked.only in {None, "verdicts"}:
        measurements += verdicts([Setting.of(each) for each in asked.logs], asked.clicks, asked.repetitions)
    if asked.only in {None, "held-out"}:
        both = [name for name in ("position-based", "trust") if name in asked.clicks]
        measurements += held_out(Setting(1_000, 40, 0.5), both, asked.repetitions)
    if asked.only in {None, "looks"}:
        measurements += looking(Setting(300, 40, 0.5), 10, asked.repetitions)
    write(measurements, asked.json)


if __name__ == "__main__":
    main()
