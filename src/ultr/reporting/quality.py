"""Quality of the rankings: by labels where there are some, by clicks alone where there are none."""

from __future__ import annotations

import math
from dataclasses import astuple
from functools import partial

from ultr.evaluation import Evaluation, QueryLikelihoods, UnseenPart, click_fit, gap_closed
from ultr.metrics import bootstrap_ratio
from ultr.pages import Section, Table, figures
from ultr.reporting.inputs import MAIN, ReportInputs
from ultr.reporting.model import LOWER, UPPER, colours

TITLE = "How good are the rankings?"


def quality(inputs: ReportInputs) -> Section:
    """Measures with intervals and the subject's lead over the others, or what clicks say."""
    if inputs.evaluations:
        return _by_labels(inputs, inputs.evaluations)
    if inputs.unseen is None or not inputs.click_models:
        return Section(TITLE, advice="This needs judged lists, or the log: give --data or --log.", name="quality")
    return _by_clicks(inputs, inputs.unseen)


def _by_labels(inputs: ReportInputs, found: dict[str, Evaluation]) -> Section:
    assert inputs.judged is not None
    subject, measures = inputs.subject, list(next(iter(found.values())).values)
    intervals = {name: {measure: each.interval(measure) for measure in measures} for name, each in found.items()}
    gaps = _gaps(inputs, found)
    rows = [
        {"model": name}
        | {measure: each.text("\n") for measure, each in by_measure.items()}
        | ({"gap closed": f"{gaps[name]:.0%}"} if gaps else {})
        for name, by_measure in intervals.items()
    ]
    leads = [
        {
            "against": name,
            **{name: f"{getattr(test, name):+.4f}".replace("+nan", "") for name in ("difference", "low", "high")},
            "p": f"{test.p_value:.4f}",
        }
        for name, test in inputs.leads.items()
    ]
    queries = f"{inputs.judged.with_relevant().queries:,}"
    text = f"Measured on the {queries} queries of {inputs.judged_name} that have a relevant document."
    if gaps:
        text += " Gap closed: 0 % is training on raw clicks, 100 % is training on labels."
    tables = [Table("means over queries, 95 % bootstrap intervals", rows)]
    if leads:
        tables.append(
            Table(f"{MAIN} of {subject.name} minus that of the others, query by query, 95 % intervals", leads)
        )
    order = dict(sorted(intervals.items(), key=lambda item: item[1][MAIN].mean))
    means = {name: astuple(each[MAIN]) for name, each in order.items()}
    return Section(
        TITLE,
        text,
        figures={
            f"{MAIN} on judged queries": partial(figures.intervals, means, colours(inputs.models), measure=MAIN),
        },
        tables=tables,
        numbers={
            "judged": inputs.judged_name,
            "measures": {name: {m: vars(each) for m, each in by.items()} for name, by in intervals.items()},
            "lead": {name: vars(test) for name, test in inputs.leads.items()},
            "gap_closed": gaps,
        },
        name="quality",
    )


def _gaps(inputs: ReportInputs, found: dict[str, Evaluation]) -> dict[str, float]:
    """Share of the gap from raw clicks to labels that each model closes; empty where a bound is missing."""
    bounds = {model.manifest.method: found[model.name].mean(MAIN) for model in inputs.models if model.is_bound}
    if len(bounds) < 2:
        return {}
    return {name: gap_closed(each.mean(MAIN), lower=bounds[LOWER], upper=bounds[UPPER]) for name, each in found.items()}


def _by_clicks(inputs: ReportInputs, unseen: UnseenPart) -> Section:
    assert inputs.log is not None
    rows, numbers = [], {}
    for model in inputs.click_models:
        fit = click_fit(model.ranker, inputs.log, unseen=unseen)
        queries = QueryLikelihoods.of(model.ranker, unseen.log)
        likelihood = bootstrap_ratio(queries.list_totals, queries.clicks)
        ends = "" if math.isnan(likelihood.low) else f"\n{likelihood.low:.4f} to {likelihood.high:.4f}"
        rows.append(
            {
                "model": model.name,
                "log-likelihood of a click": f"{likelihood.mean:.4f}{ends}",
                "log-likelihood of a click or skip": f"{fit.log_likelihood:.4f}",
                "perplexity": f"{fit.perplexity:.4f}",
            }
        )
        numbers[model.name] = {"list_log_likelihood": vars(likelihood), "perplexity": fit.perplexity}
    text = (
        f"There are no judged lists, so clicks must tell, on {unseen.name}. A click counts among the documents of its "
        "list; higher is better, and a perplexity of 1 would be perfect. A model may predict clicks well because it "
        "knows the bias, so this alone does not prove a better ranking."
    )
    measured = {"compared_on": unseen.name, "warnings": unseen.warnings, "notes": unseen.notes, "clicks": numbers}
    advice = "To learn whether it ranks better than another model, give --against MODEL; with labels, --data."
    if (found := inputs.comparison) is not None:
        told = {
            field: {"verdict": answer.verdict, "reason": answer.reason, "winner": answer.winner}
            for field, answer in found.answers.items()
        }
        measured |= {"against": found.names[0], "answers": told}
        advice = found.assumed
    return Section(
        TITLE,
        text,
        advice=" ".join([*unseen.remarks, advice]),
        tables=[Table("clicks predicted, 95 % intervals over queries", rows)],
        parts=[] if found is None else found.parts(),
        numbers=measured,
        name="quality",
    )
