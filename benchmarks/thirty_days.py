"""Thirty days of a closed loop: `python -m benchmarks.thirty_days [--seeds 5] [--plot FILE.png]`.

Users with trust bias look at ten of twenty candidates. What they like is a direction in the space of features, which
turns a little every day. Each day the current ranker shows its ranking, with an exchanged adjacent pair on one page in
twenty, and is trained again on the clicks of the last days, from the weights of the day before. Rankers that are
trained again learn from clicks that their own rankings have brought about.

    frozen          the first ranker of the loop, never trained again
    raw clicks      `click` on all queries, served at once
    no gate         the method of the loop on all queries, served at once
    loop            `ultr update`: `--method` on all but a fifth of the queries, served if the gate lets it
    taste known     documents by the day's taste itself, which labels without end would teach: a bound

Of each day it is measured what users think of that day's ranking, by the grades of that day: nDCG@10 on other queries,
and the clicks to be expected on a page of those that were shown. Both are exact, not drawn.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import torch

from benchmarks.measurement import Measurement, with_error, write
from ultr import ClickLog, Ranker
from ultr.arrays import Doubles, Floats, Integers
from ultr.clicks.trust_bias import TrustBias
from ultr.errors import UltrWarning
from ultr.methods import flat_options, method
from ultr.metrics import ndcg
from ultr.pages.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, blank
from ultr.seeding import generator
from ultr.updating import UpdateSettings, judge, promotes
from ultr.updating.candidate import NewRanker, Shares

ARMS = {"frozen": GREY, "raw clicks": ORANGE, "no gate": PURPLE, "loop": BLUE, "taste known": GREEN}
QUERIES, TESTED, CANDIDATES, SHOWN, FEATURES = 500, 300, 20, 10, 12
GRADES = 5
UNKNOWN = 0.5
"""Spread of what no feature tells, beside 1 of what features tell."""
QUANTILES = (0.5, 0.75, 0.88, 0.96)
"""Shares of documents below each grade."""
BEFORE = 7
"""Days that the first ranker has shown lists before the loop begins."""
SWAPS = 0.05
OPTIONS: dict[str, Any] = {"hidden": [16], "steps": 500}
WARM_STEPS = 100
USERS = TrustBias()


@dataclass(frozen=True, eq=False)
class World:
    """Documents, and users whose taste turns."""

    seed: int
    degrees: float
    """By how much taste turns over the thirty days."""
    features: Floats
    """[queries, candidates, features]."""
    unknown: Doubles
    """[queries, candidates], what is liked about them and no feature tells."""
    directions: Doubles
    """[3, features]: taste at first, what it turns to, and what has nothing to do with it."""

    @classmethod
    def of(cls, seed: int, degrees: float) -> World:
        """The world of a seed."""
        random = generator(seed, "world")
        features = random.normal(size=(QUERIES + TESTED, CANDIDATES, FEATURES)).astype(np.float32)
        unknown = UNKNOWN * random.normal(size=features.shape[:2])
        return cls(seed, degrees, features, unknown, np.linalg.qr(random.normal(size=(FEATURES, 3)))[0].T)

    def taste(self, day: int) -> Doubles:
        """How much users like what features tell of each candidate on a day, [queries, candidates]."""
        angle = np.deg2rad(self.degrees) * max(day, 0) / 30
        now, then, _ = self.directions
        liked: Doubles = self.features @ (np.cos(angle) * now + np.sin(angle) * then)
        return liked

    def grades(self, day: int) -> Integers:
        """The grade of each candidate on a day, [queries, candidates]."""
        liked = self.taste(day) + self.unknown
        bounds = [NormalDist(sigma=np.sqrt(1 + UNKNOWN**2)).inv_cdf(share) for share in QUANTILES]
        grades: Integers = np.searchsorted(bounds, liked)
        return grades

    def first_scores(self) -> Doubles:
        """Scores of the ranker that showed lists before: half right, half beside the point."""
        now, _, other = self.directions
        scores: Doubles = self.features @ (now + other)
        return scores


@dataclass(eq=False)
class Pages:
    """Lists shown on a day, and their clicks, summed by list."""

    queries: Integers
    shown: Integers
    """[lists, places], candidates of the query."""
    impressions: Integers
    clicks: Integers


def show(world: World, ranking: Integers, day: int, pages: int) -> Pages:
    """Pages of a day: queries at random, an adjacent pair exchanged on some of them, clicks as users make them."""
    random = generator(world.seed, "pages", day + BEFORE)
    queries = random.integers(QUERIES, size=pages)
    pair = np.where(random.random(pages) < SWAPS, random.integers(SHOWN - 1, size=pages), -1)
    keys, counts = np.unique(queries * SHOWN + pair + 1, return_counts=True)
    queries, pair = keys // SHOWN, keys % SHOWN - 1
    shown = ranking[queries, :SHOWN].copy()
    moved = np.flatnonzero(pair >= 0)
    for place in (0, 1):
        shown[moved, pair[moved] + place] = ranking[queries[moved], pair[moved] + 1 - place]
    grades = np.take_along_axis(world.grades(day)[queries], shown, axis=1)
    chance = USERS.probabilities(grades, max_label=GRADES - 1)
    return Pages(queries, shown, counts, random.binomial(counts[:, None], chance))


def log_of(world: World, days: Sequence[tuple[int, Pages]]) -> ClickLog:
    """The click log of some days."""
    queries = np.concatenate([pages.queries for _, pages in days])
    shown = np.concatenate([pages.shown for _, pages in days])
    names = [str(np.datetime64("2026-01-15") + day) for day, _ in days]
    return ClickLog.of(
        features=world.features.reshape(-1, FEATURES),
        documents=(queries[:, None] * CANDIDATES + shown).ravel(),
        offsets=np.arange(len(queries) + 1) * SHOWN,
        clicks=np.concatenate([pages.clicks for _, pages in days]).ravel(),
        impressions=np.concatenate([pages.impressions for _, pages in days]),
        queries=queries,
        periods=np.repeat(names, [len(pages.queries) for _, pages in days]),
    )


@dataclass(eq=False)
class Arm:
    """One way to keep a ranker up to date, and what it was worth day by day."""

    name: str
    ranker: Ranker | None = None
    days: list[tuple[int, Pages]] = field(default_factory=list)
    ndcg: list[float] = field(default_factory=list)
    clicks: list[float] = field(default_factory=list)
    promoted: int = 0
    reasons: list[str] = field(default_factory=list)

    def scores(self, world: World, day: int) -> Floats | Doubles:
        """Scores of all candidates, [queries, candidates]."""
        if self.name == "taste known":
            return world.taste(day)
        if self.ranker is None:
            return world.first_scores()
        flat = world.features.reshape(-1, FEATURES)
        return self.ranker.score(flat, np.arange(0, len(flat) + 1, CANDIDATES)).reshape(world.features.shape[:2])

    def live(self, world: World, day: int, pages: int) -> None:
        """Show the rankings of a day, and measure them."""
        scores = self.scores(world, day)
        ranking = np.argsort(-scores, axis=1, kind="stable")
        grades = world.grades(day)
        if day >= 1:
            offsets = np.arange(0, TESTED * CANDIDATES + 1, CANDIDATES)
            flat = scores[QUERIES:].ravel().astype(np.float64), grades[QUERIES:].ravel()
            self.ndcg.append(float(np.nanmean(ndcg(*flat, offsets, cutoff=10))))
            top = np.take_along_axis(grades, ranking[:, :SHOWN], axis=1)[:QUERIES]
            self.clicks.append(float(USERS.probabilities(top, max_label=GRADES - 1).sum(axis=1).mean()))
        self.days.append((day, show(world, ranking, day, pages)))


def first_ranker(name: str, log: ClickLog, settings: UpdateSettings) -> Ranker:
    """The ranker of the first day, by the method of an arm."""
    if name in ("frozen", "loop"):
        return NewRanker.train(Shares.of(log, settings), settings, None).ranker
    return _retrained(name, log, settings, None)


def _retrained(name: str, log: ClickLog, settings: UpdateSettings, before: Ranker | None) -> Ranker:
    """A ranker on all queries, by raw clicks or by the default method."""
    kind = method("click" if name == "raw clicks" else settings.method)
    options = dict(settings.options) | ({} if before is None else {"steps": WARM_STEPS})
    estimator = flat_options.estimator(kind, options | {"seed": settings.seed})
    kept, held_out = log.split(seed=settings.seed)
    return estimator.fit(kept, validation=held_out, init_model=before).ranker_


def retrain(arm: Arm, world: World, settings: UpdateSettings) -> None:
    """Train on the last days, and exchange the ranker or not."""
    log = log_of(world, arm.days[-settings.days :])
    if arm.name != "loop":
        arm.ranker = _retrained(arm.name, log, settings, arm.ranker)
        return
    assert arm.ranker is not None
    shares = Shares.of(log, settings)
    new = NewRanker.train(shares, settings, arm.ranker).ranker
    found = judge(arm.ranker, new, shares.reserved, swaps=log, seed=settings.seed)
    promoted, reason = promotes(found, tolerance=settings.tolerance, largest_shift=settings.largest_shift)
    arm.reasons.append(f"{'promoted' if promoted else 'kept'}: {reason}")
    if promoted:
        arm.ranker, arm.promoted = new, arm.promoted + 1


def run(seed: int, names: Sequence[str], settings: UpdateSettings, *, degrees: float, pages: int) -> list[Arm]:
    """All arms in one world; until the loop begins they are the same."""
    settings = settings.model_copy(update={"seed": seed})
    world = World.of(seed, degrees)
    before = Arm("before")
    for day in range(1 - BEFORE, 1):
        before.live(world, day, pages)
    log = log_of(world, before.days)
    arms = [Arm(name, days=list(before.days)) for name in names]
    for arm in arms:
        if arm.name != "taste known":
            arm.ranker = first_ranker(arm.name, log, settings)
    for day in range(1, 31):
        for arm in arms:
            arm.live(world, day, pages)
            if arm.name not in ("frozen", "taste known"):
                retrain(arm, world, settings)
        told = ", ".join(f"{arm.name} {arm.ndcg[-1]:.3f} {arm.clicks[-1]:.3f}" for arm in arms)
        why = next((arm.reasons[-1] for arm in arms if arm.reasons), "")
        print(f"seed {seed} day {day}: {told}; {why}", flush=True)
    return arms


def draw(found: Sequence[dict[str, Any]], path: Path) -> None:
    """nDCG@10 and clicks by day, mean over seeds and the spread between the lowest and the highest."""
    figure, panels = blank(9.6, 3.8, columns=2, width_ratios=(1, 1))
    axes: Any
    for axes, (key, title, label) in zip(
        panels,
        (("ndcg", "How good is what is shown?", "nDCG@10"), ("clicks", "How much is clicked?", "clicks per page")),
        strict=True,
    ):
        for name, colour in ARMS.items():
            values = np.array([each[key] for each in found if each["name"] == name])
            if len(values):
                days = np.arange(1, values.shape[1] + 1)
                axes.plot(days, values.mean(axis=0), color=colour, linewidth=1.8, label=name)
                axes.fill_between(days, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, linewidth=0)
        axes.set(xlabel="day", ylabel=label)
        axes.grid(alpha=0.3)
        axes.set_title(title, loc="left")
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def tables(found: Sequence[dict[str, Any]]) -> list[Measurement]:
    """Print and give the means over the thirty days and over the last ten, by arm."""
    seeds = len({each["seed"] for each in found})
    print(f"\nmean over {seeds} seeds +- standard error\n")
    print("| | nDCG@10, days 1-30 | nDCG@10, days 21-30 | clicks per page, days 1-30 | days 21-30 | promoted |")
    print("|---|---|---|---|---|---|")
    measurements = []
    for name in ARMS:
        mine = [each for each in found if each["name"] == name]
        if not mine:
            continue
        cells = []
        for key, unit in (("ndcg", "nDCG@10"), ("clicks", "clicks per page")):
            for first, what in ((0, "days 1-30"), (20, "days 21-30")):
                values = [float(np.mean(each[key][first:])) for each in mine]
                cells.append(with_error(values, sign=""))
                measurements.append(
                    Measurement(
                        f"{name}, {what}", float(np.mean(values)), unit, min(values), max(values), headline=True
                    )
                )
        promoted = ", ".join(str(each["promoted"]) for each in mine) if name == "loop" else ""
        print(f"| {name} | {' | '.join(cells)} | {promoted} |")
    return measurements


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 2, 4])
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=[name for name in ARMS if name != "no gate"])
    parser.add_argument("--method", default="vectorization", help="method of the loop")
    parser.add_argument("--pages", type=int, default=20_000, help="pages a day")
    parser.add_argument("--days", type=int, default=14, help="days that are trained on")
    parser.add_argument("--degrees", type=float, default=90.0, help="by how much taste turns in thirty days")
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--compare-days", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="file that the curves are added to, a line for each arm and seed")
    parser.add_argument("--show", type=Path, help="show the curves of such a file and run nothing")
    parser.add_argument("--plot", type=Path, help="file for the figure")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UltrWarning)
    settings = UpdateSettings(
        log="log",
        source="{day}",
        served="served.onnx",
        method=asked.method,
        options=OPTIONS,
        warm_steps=WARM_STEPS,
        days=asked.days,
        tolerance=asked.tolerance,
        compare_days=asked.compare_days,
    )
    found: list[dict[str, Any]] = []
    if asked.show is not None:
        found = [json.loads(line) for line in asked.show.read_text().splitlines()]
    for seed in asked.seeds if asked.show is None else ():
        for arm in run(seed, asked.arms, settings, degrees=asked.degrees, pages=asked.pages):
            each = {"seed": seed, "name": arm.name, "ndcg": arm.ndcg, "clicks": arm.clicks}
            found.append(each | {"promoted": arm.promoted, "reasons": arm.reasons})
            if asked.keep is not None:
                with asked.keep.open("a") as lines:
                    lines.write(json.dumps(found[-1]) + "\n")
    write(tables(found), asked.json)
    if asked.plot is not None:
        draw(found, asked.plot)


if __name__ == "__main__":
    main()
