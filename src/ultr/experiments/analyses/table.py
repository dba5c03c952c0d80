"""Every ranker of each click setting in a table, as tables 1 and 2 of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ultr.experiments import plots, tables
from ultr.experiments.experiment import Experiment
from ultr.experiments.findings import Findings, TitledTable
from ultr.experiments.results import Results


def table(experiment: Experiment) -> Findings:
    """A table for each click setting and way of choosing weights, each with the other way beside it."""
    settings = all_results(experiment)
    figures = {f"{results[0].clicks}-clicks": plots.quality(results) for results in settings}
    return in_tables(experiment, settings, figures)


def all_results(experiment: Experiment) -> list[list[Results]]:
    """For each click setting, the results of each way of choosing weights."""
    spec = experiment.spec
    return [[experiment.results(clicks, way) for way in spec.validation] for clicks in spec.clicks]


def in_tables(experiment: Experiment, settings: Sequence[Sequence[Results]], figures: plots.Figures) -> Findings:
    """The results as tables, with every number behind them."""
    published = experiment.spec.paper
    written, content = [], []
    for ways in settings:
        for results in ways:
            beside = next((other for other in ways if other is not results), None)
            rows = tables.rows(results, beside=beside, published=published)
            title = f"{results.clicks} clicks, weights chosen by {tables.CHOSEN_BY[results.validation]}"
            written.append(TitledTable(title, rows, tables.best(results)))
            content.append({**results.as_json(), "paper": published})
    notes = list(_notes(settings[0][0], experiment))
    return Findings(experiment.spec.title, written, notes, content, figures)


def _notes(results: Results, experiment: Experiment) -> Iterator[str]:
    """How to read the tables, as far as they have it."""
    measure = results.measures[results.main]
    methods = {line.contender.method for line in results.lines}
    yield (
        "Mean ± standard deviation over seeds; the value of a seed is the mean over the test queries of all folds that "
        f"have a relevant document. All columns but those of measures and seconds are about {measure}."
    )
    if results.gap_closed(results.lines[0]) is not None:
        yield "Gap closed: 0 % is training on raw clicks, 100 % on the labels of all candidates."
    yield (
        "To best baseline: the mean difference over test queries, each averaged over seeds, to the best ranker that is "
        "neither Vectorization nor knows labels, with the p-value of a paired randomisation test."
    )
    if "click-model" in methods:
        yield "Knows the clicks: ranks by the click model itself, averaged over positions."
    if any(line.contender.shown_only for line in results.lines):
        yield "Labeled, shown: learns from the labels of the shown documents alone, which is all that clicks are about."
    for label in experiment.left_out():
        yield f"{label} is left out, because it is not installed: pip install 'ultr[peers]'."
