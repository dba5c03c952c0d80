"""Learning curves: loss and validation value of each stage."""

from __future__ import annotations

from ultr.pages import Drawing, Section, Table, model_figures
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.model import Model, colours
from ultr.reporting.report_section import ReportSection


def learning(inputs: ReportInputs) -> ReportSection:
    """The learning curves of all models, those of one stage in one chart."""
    stages = list(dict.fromkeys(record.stage for model in inputs.models for record in model.ranker.history))
    by_model = colours(inputs.models)
    drawings: list[Drawing] = []
    for stage in stages:
        losses, values = {}, {}
        for model in inputs.models:
            records = [record for record in model.ranker.history if record.stage == stage]
            steps = [record.step for record in records]
            if records:
                losses[model.name] = steps, [record.loss for record in records]
            known = [record for record in records if record.value is not None]
            if known:
                values[model.name] = [record.step for record in known], [record.value or 0.0 for record in known]
        title = f"stage “{stage}”"
        drawings.append(model_figures.learning_curves(losses, by_model, title=title, ylabel="training loss"))
        if values:
            ylabel = _value_name(inputs)
            drawings.append(model_figures.learning_curves(values, by_model, title=title, ylabel=ylabel, best=True))
    rows = [row for model in inputs.models for row in _rows(model)]
    return ReportSection(
        "learning",
        Section(
            "How training went",
            text="Each stage of training has a chart of its own; a ring marks its highest validation value."
            if any(record.value is not None for model in inputs.models for record in model.ranker.history)
            else "Each stage of training has a chart of its own. Nothing was held out, so the last weights were kept.",
            drawings=drawings,
            tables=[Table("stages", rows, folded=True)] if rows else [],
        ),
        {model.name: [vars(record) for record in model.ranker.history] for model in inputs.models},
    )


def _rows(model: Model) -> list[dict[str, str]]:
    rows = []
    for stage in dict.fromkeys(record.stage for record in model.ranker.history):
        records = [record for record in model.ranker.history if record.stage == stage]
        best = max(
            (record for record in records if record.value is not None), key=lambda r: r.value or 0.0, default=None
        )
        rows.append(
            {
                "model": model.name,
                "stage": stage,
                "steps": f"{records[-1].step:,}",
                "last loss": f"{records[-1].loss:.4f}",
                "best value": "" if best is None else f"{best.value:.4f}",
                "at step": "" if best is None else f"{best.step:,}",
            }
        )
    return rows


def _value_name(inputs: ReportInputs) -> str:
    """Name of the validation value, where all models say the same."""
    kinds = {None if model.manifest.origin is None else model.manifest.origin.validation for model in inputs.models}
    if kinds == {"clicks"}:
        return "minus held-out loss"
    return "validation nDCG@10" if not kinds & {None, "clicks", "none"} else "validation value"
