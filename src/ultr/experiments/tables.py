"""Results as rows of text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ultr.arrays import Doubles
from ultr.experiments.results import UPPER, Line, Results
from ultr.experiments.spec import REFERENCES

Row = dict[str, str]
Published = Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]
"""Published means and deviations by data set and label, for each measure."""
DATA_SETS = {"yahoo": "Yahoo!", "istella-s": "Istella-S"}
CHOSEN_BY = {"labels": "labels", "clicks": "held-out clicks"}


def rows(results: Results, *, beside: Results | None = None, published: Published | None = None) -> list[Row]:
    """A row of text for each ranker.

    `beside` are the same rankers with their weights chosen in another way, `published` what others found.
    """
    others = {} if beside is None else {line.label: line for line in beside.lines}
    rows = []
    for line in results.lines:
        row = {"ranker": line.label}
        for number, measure in enumerate(results.measures):
            row[measure] = spread_of(line.by_seed(number))
        for kind, gap in results.gap_closed(line).items():
            column = "gap closed" if len(results.bounds) == 1 else f"gap closed, {kind}"
            row[column] = "" if line.contender.method in REFERENCES else f"{round(gap, 2) + 0:.0%}"
        if results.best_baseline is not None and len(results.lines) > 1:
            row["to best baseline"] = _difference(results, line)
        if beside is not None:
            other = others.get(line.label)
            row[f"by {CHOSEN_BY[beside.validation]}"] = "" if other is None else spread_of(other.by_seed(results.main))
        for name, values in (published or {}).items():
            found = values.get(line.label)
            row[f"paper, {DATA_SETS.get(name, name)}"] = "" if found is None else spread(*found[results.main])
        row["seconds"] = f"{line.seconds:.0f}"
        rows.append(row)
    return rows


def spread_of(values: Sequence[float] | Doubles) -> str:
    """The mean of some values with their standard deviation, which a single one has not."""
    return spread(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else math.nan)


def spread(mean: float, deviation: float) -> str:
    """A mean with its deviation, if it has one; nothing for no number.

    >>> spread(0.7312, 0.0123), spread(0.7312, math.nan), spread(math.nan, math.nan)
    ('.731 ± .012', '.731', '')
    """
    if math.isnan(mean):
        return ""
    return figure(mean) if math.isnan(deviation) else f"{figure(mean)} ± {figure(deviation)}"


def _difference(results: Results, line: Line) -> str:
    if line is results.best_baseline:
        return "best baseline"
    test = results.against_best.get(line.label)
    if test is None:
        return ""
    return f"{signed(test.difference)} {'p<.001' if test.p_value < 0.001 else f'p={figure(test.p_value)}'}"


def figure(value: float) -> str:
    """Three digits without the zero in front.

    >>> figure(0.7312), figure(1.0), figure(-0.0123)
    ('.731', '1.000', '-.012')
    """
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 0.9995 else f"{value:.3f}"


def signed(value: float) -> str:
    """Three digits with the sign.

    >>> signed(0.0123), signed(-0.0123)
    ('+.012', '-.012')
    """
    return ("+" if value >= 0 else "") + figure(value)


def published_rows(found: Mapping[str, Sequence[tuple[float, float]]], measures: Sequence[str]) -> list[Row]:
    """A row of text for each ranker of a published table, and its increments."""
    rows = [
        {"ranker": label, **{measure: spread(*pair) for measure, pair in zip(measures, values, strict=True)}}
        for label, values in found.items()
    ]
    return rows + increments({label: [mean for mean, _ in values] for label, values in found.items()}, measures)


def increments(means: Mapping[str, Sequence[float]], measures: Sequence[str]) -> list[Row]:
    """The lead of Vectorization over the others that the paper names, in per cent of theirs.

    >>> increments({"Vectorization": [0.747], "DLA": [0.725]}, ["nDCG@10"])
    [{'ranker': 'increment to DLA', 'nDCG@10': '+3.03%'}]
    """
    rows = []
    for other in ("DLA", "Affine"):
        if {other, "Vectorization"} <= means.keys():
            shares = [ours / theirs - 1 for ours, theirs in zip(means["Vectorization"], means[other], strict=True)]
            texts = ["" if math.isnan(share) else f"{share:+.2%}" for share in shares]
            rows.append({"ranker": f"increment to {other}", **dict(zip(measures, texts, strict=True))})
    return rows


def best(results: Results) -> dict[str, str]:
    """By measure, the label of the best ranker that learns from clicks."""
    learned = [line for line in results.lines if line.contender.method not in (UPPER, *REFERENCES)]
    found = {measure: results.best(learned, number) for number, measure in enumerate(results.measures)}
    return {measure: line.label for measure, line in found.items() if line is not None}
