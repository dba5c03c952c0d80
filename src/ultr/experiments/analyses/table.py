"""Every ranker of each click setting in a table, as tables 1 and 2 of the paper, and over the dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from ultr.errors import how_to_install
from ultr.experiments import tables
from ultr.experiments.experiment import Experiment
from ultr.experiments.results import OURS, UPPER, Results
from ultr.experiments.spec import REFERENCES
from ultr.methods.vectorization import Vectorization
from ultr.pages import Draw, Section, Table, figures
from ultr.pages.drawing import GREEN, GREY


def table(experiment: Experiment) -> Section:
    """A table for each click setting and way of choosing weights, each with the other way beside it."""
    return _in_tables(experiment, _quality)


def dimension(experiment: Experiment) -> Section:
    """The same tables, and a curve over the dimension for each click setting, as the paper's figure."""
    return _in_tables(experiment, _over_dimensions)


def _quality(results: Sequence[Results]) -> Draw:
    """The main measure of every ranker; labels and references in colours of their own."""
    first = results[0]
    lines = [line for line in first.lines if line.contender.method != "click-model"]
    apart = [line for line in lines if line.contender.method in (UPPER, *REFERENCES)]
    return partial(
        figures.values_by_seed,
        {
            tables.CHOSEN_BY[found.validation]: {line.label: line.by_seed(found.main) for line in found.lines}
            for found in results
        },
        {line.label: GREEN if line.contender.method == UPPER else GREY for line in apart},
        labels=[line.label for line in lines],
        measure=first.measures[first.main],
    )


def _over_dimensions(results: Sequence[Results]) -> Draw:
    """The main measure over the dimension, with the other rankers as lines."""
    first, curves = results[0], {}
    for found in results:
        ours = [line for line in found.lines if line.contender.method == OURS]
        curves[f"Vectorization, chosen by {tables.CHOSEN_BY[found.validation]}"] = (
            np.array([line.contender.options.get("dimension", Vectorization.dimension) for line in ours]),
            np.array([line.mean(found.main) for line in ours]),
            np.nan_to_num([line.deviation(found.main) for line in ours]),
        )
    others = {line.label: line.mean(first.main) for line in first.lines if line.contender.method != OURS}
    return partial(
        figures.bands,
        curves,
        {label: (mean, mean, mean) for label, mean in others.items()},
        xlabel="dimension",
        ylabel=first.measures[first.main],
    )


def _in_tables(experiment: Experiment, drawing: Callable[[Sequence[Results]], Draw]) -> Section:
    """The results as tables, with every number behind them and a figure for each click setting."""
    spec = experiment.spec
    settings = [[experiment.results(clicks, way) for way in spec.validation] for clicks in spec.clicks]
    written, content = [], []
    drawn: dict[str, Draw] = {}
    for ways in settings:
        drawn[f"{ways[0].clicks} clicks"] = drawing(ways)
        for results in ways:
            beside = next((other for other in ways if other is not results), None)
            rows = tables.rows(results, beside=beside, published=spec.paper)
            if spec.paper:
                means = {
                    line.label: [line.mean(number) for number in range(len(spec.measures))] for line in results.lines
                }
                rows += [dict.fromkeys(rows[0], "") | row for row in tables.increments(means, spec.measures)]
            title = f"{results.clicks} clicks, weights chosen by {tables.CHOSEN_BY[results.validation]}"
            written.append(Table(title, rows, bold=tables.best(results)))
            content.append({**results.as_json(), "paper": spec.paper})
    for name, published in spec.paper.items():
        rows = tables.published_rows(published, spec.measures)
        written.append(Table(f"published, {tables.DATA_SETS.get(name, name)}", rows))
    notes = "\n\n".join(_notes(settings[0][0], experiment))
    return Section(spec.title, notes, tables=written, figures=drawn, numbers=content)


def _notes(results: Results, experiment: Experiment) -> Iterator[str]:
    """Notes on how to read the columns that the tables have."""
    measure = results.measures[results.main]
    methods = {line.contender.method for line in results.lines}
    yield (
        "Mean ± standard deviation over seeds; the value of a seed is the mean over the test queries of all folds that "
        f"have a relevant document. All columns but those of measures and seconds are about {measure}."
    )
    if results.bounds:
        yield "Gap closed: 0 % is training on raw clicks, 100 % on the labels of all candidates."
    if len(results.bounds) > 1:
        yield f"Each gap is between two rankers with the same kind of relevance model: {', '.join(results.bounds)}."
    yield (
        "To best baseline: the mean difference over test queries, each averaged over seeds, to the best ranker that is "
        "neither Vectorization nor knows labels, with the p-value of a paired randomisation test."
    )
    if "click-model" in methods:
        yield (
            "Perfect: knows the click rate of each grade at each position, and ranks by what a method makes of it. "
            "Click and RegressionEM take its mean over positions, DLA and InversePropensity the mean of its ratio to "
            "the click rate of the position, Vectorization the mean of its logarithm."
        )
    if any(line.contender.shown_only for line in results.lines):
        yield "Labeled, shown: learns from the labels of the shown documents alone, which is all that clicks are about."
    for label, tried in results.selected.items():
        values = ", ".join(f"{each} {tables.figure(value)}" for each, value in tried.items())
        yield f"{label}: the one with the best mean value of validation of {values}."
    for label in experiment.left_out():
        yield f"{label} is left out, because its library is not installed: {how_to_install('trees', 'xgboost')}."
