"""Learning curves: loss and validation value of each stage."""

from __future__ import annotations

from functools import partial
from operator import itemgetter

from ultr.methods.registry import kind_of
from ultr.pages import Draw, Section, Table, figures
from ultr.pages.figures import Line
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.model import colours


def learning(inputs: ReportInputs) -> Section:
    """The learning curves of all models, those of one stage in one chart."""
    losses: dict[str, dict[str, Line]] = {}
    values: dict[str, dict[str, Line]] = {}
    rows = []
    for model in inputs.models:
        for stage in dict.fromkeys(record.stage for record in model.ranker.history):
            records = [record for record in model.ranker.history if record.stage == stage]
            told = [(record.step, record.loss) for record in records if record.loss is not None]
            curves = losses.setdefault(stage, {})
            if told:
                curves[model.name] = [step for step, _ in told], [loss for _, loss in told]
            known = [(record.value, record.step) for record in records if record.value is not None]
            if known:
                values.setdefault(stage, {})[model.name] = [step for _, step in known], [value for value, _ in known]
            value, step = max(known, key=itemgetter(0), default=(None, None))
            rows.append(
                {
                    "model": model.name,
                    "stage": stage,
                    "steps": f"{records[-1].step:,}",
                    "last loss": f"{told[-1][1]:.4f}" if told else "",
                    "best value": "" if value is None else f"{value:.4f}",
                    "at step": "" if step is None else f"{step:,}",
                }
            )
    drawn: dict[str, Draw] = {}
    by_model = colours(inputs.models)
    for stage, found in losses.items():
        if found:
            drawn[f"stage “{stage}”: training loss"] = partial(
                figures.learning_curves, found, by_model, ylabel="training loss"
            )
        if stage in values:
            ylabel = _value_name(inputs)
            drawn[f"stage “{stage}”: {ylabel}"] = partial(
                figures.learning_curves, values[stage], by_model, ylabel=ylabel, best=True
            )
    return Section(
        "How training went",
        "Each stage of training has a chart of its own; a ring marks its highest validation value."
        if values
        else "Each stage of training has a chart of its own. Nothing was held out, so the last weights were kept.",
        figures=drawn,
        tables=[Table("stages", rows, folded=True)] if rows else [],
        numbers={model.name: [vars(record) for record in model.ranker.history] for model in inputs.models},
        name="learning",
    )


def _value_name(inputs: ReportInputs) -> str:
    """Name of the validation value, where all models say the same."""
    kinds = {None if model.manifest.origin is None else model.manifest.origin.validation for model in inputs.models}
    measures = {kind_of(model.ranker.method).held_out_measure for model in inputs.models}
    if kinds == {"clicks"} and len(measures) == 1:
        return measures.pop()
    return "validation nDCG@10" if not kinds & {None, "clicks", "none"} else "validation value"
