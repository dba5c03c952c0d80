"""Cost of choosing a ranker without labels: regret against the one that labels would have picked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ultr.experiments.experiment import Experiment
from ultr.experiments.model_selection import (
    MEASURE,
    RANDOM,
    RIGHT,
    UNSURE,
    WRONG,
    ModelSelection,
    Scores,
    is_candidate,
    is_default,
    model_selection,
)
from ultr.experiments.tables import Row, figure, spread_of
from ultr.methods.vectorization import Vectorization
from ultr.pages import Section, Table

LEVEL = 0.05
NOTES = (
    f"Regret: how much higher the test {MEASURE} of the best candidate is than that of the chosen one; mean ± standard "
    "deviation over folds and seeds; Auto, which weighs raw and debiased clicks itself, is no candidate, so that its "
    "regret can be negative. *queries*: by clicks on queries held out of training, which also chose the "
    "weights of each candidate. *pages*: by as many new impressions of the lists trained on. Values have propensities "
    "from all swaps of the log, and rank the shown documents.\n\n"
    "Which of two: pairs of methods whose labels differ by more than 1.64 standard errors, and how often the 95 % "
    "interval on held-out queries names the better one, names the worse one, or holds 0."
)


def selection(experiment: Experiment) -> Section:
    """Regrets of choosing a method, and of choosing a dimension."""
    spec = experiment.spec
    selections: dict[str, list[ModelSelection]] = {}
    for clicks in spec.clicks:
        outcomes = [experiment.outcomes(each, clicks, "clicks") for each in experiment.contenders()]
        selections[clicks] = [
            model_selection(of_one_seed_and_fold) for of_one_seed_and_fold in zip(*outcomes, strict=True)
        ]
    contests = {
        "which method": [each.label for each in experiment.contenders() if is_default(each) and is_candidate(each)],
        "which dimension": [each.label for each in experiment.contenders() if each.method == Vectorization.name],
    }
    tables, content = [], []
    for title, candidates in contests.items():
        if len(candidates) < 2:
            continue
        regrets = {clicks: [selected.regrets(candidates) for selected in found] for clicks, found in selections.items()}
        tables.append(Table(f"{title}: regret in {MEASURE}", _rows(regrets)))
        content.append({"contest": title, "candidates": candidates, "regrets": regrets})
    tables.append(Table("which of two methods", _verdict_rows(selections)))
    qualities = {
        clicks: [selected.quality | selected.blended for selected in found] for clicks, found in selections.items()
    }
    tables.append(Table(f"{MEASURE} of the candidates", _quality_rows(qualities)))
    whole: dict[str, Any] = {
        "contests": content,
        "qualities": qualities,
        "verdicts": {clicks: [each.verdicts for each in found] for clicks, found in selections.items()},
        "rank_p_values": {clicks: [each.rank_p_value for each in found] for clicks, found in selections.items()},
    }
    return Section(spec.title, NOTES, tables=tables, numbers=whole)


def _verdict_rows(selections: Mapping[str, Sequence[ModelSelection]]) -> list[Row]:
    rows = []
    for clicks, found in selections.items():
        tested = [selected.rank_p_value for selected in found if selected.rank_p_value is not None]
        rejected = f"{sum(value <= LEVEL for value in tested)} of {len(tested)}"
        for name in found[0].verdicts:
            verdicts = [verdict for selected in found for verdict in selected.verdicts.get(name, ())]
            shares = {kind: f"{verdicts.count(kind) / max(len(verdicts), 1):.0%}" for kind in (RIGHT, WRONG, UNSURE)}
            row = {"clicks": clicks, "one number for each position rejected": rejected, "by": name}
            rows.append(row | {"pairs": str(len(verdicts))} | shares)
    return rows


def _rows(regrets: Mapping[str, Sequence[Scores]]) -> list[Row]:
    """A row for each way to choose, the best on average first."""
    everything = [each for found in regrets.values() for each in found]
    ways = [way for way in everything[0] if all(way in each for each in everything)]
    rows = []
    for way in sorted(ways, key=lambda way: np.mean([each[way] for each in everything])):
        values = [each[way] for each in everything]
        rows.append(
            {
                "chosen by": way,
                **{clicks: spread_of([each[way] for each in found]) for clicks, found in regrets.items()},
                "all": spread_of(values),
                "worst": figure(max(values)),
                "best picked": "" if way == RANDOM else f"{np.mean(np.array(values) <= 0):.0%}",
            }
        )
    return rows


def _quality_rows(qualities: Mapping[str, Sequence[Scores]]) -> list[Row]:
    labels = next(iter(qualities.values()))[0]
    return [
        {"ranker": label, **{clicks: spread_of([each[label] for each in found]) for clicks, found in qualities.items()}}
        for label in labels
    ]
