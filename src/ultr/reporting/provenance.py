"""Provenance of models: options and data, their differences, and the commands to repeat them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ultr.counted import counted
from ultr.methods.description import summary
from ultr.methods.origin import found_from
from ultr.methods.registry import kind_of
from ultr.pages import Section, Table
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.model import Model
from ultr.version import __version__

MAIN_FACTS = ("method", "dimension", "dimension chosen", "learned from", "weights chosen by", "seed", "training data")
"""Facts that are shown at once; the rest is folded."""
OWN = ("weights",)
"""Facts that always differ and say nothing."""
SHORT = 12
"""Letters of a fingerprint that are enough to tell two apart."""


def provenance(inputs: ReportInputs) -> Section:
    """Method, options, data, seeds, versions and fingerprints of each model."""
    facts = {model.name: facts_of(model) for model in inputs.models}
    names = list(dict.fromkeys(fact for each in facts.values() for fact in each))

    def rows(chosen: Iterable[str]) -> list[dict[str, str]]:
        return [{"": fact} | {name: each.get(fact, "") for name, each in facts.items()} for fact in chosen]

    methods = dict.fromkeys(model.manifest.method for model in inputs.models if not model.is_bound)
    told = [f"{method}: {summary(kind_of(method))}" for method in methods]
    if inputs.log is not None:
        told.append(
            f"The log {inputs.log_name} has {inputs.log.impressions.sum():,} impressions of {inputs.log.lists:,} lists "
            f"with {inputs.log.clicks.sum():,} clicks."
        )
    if inputs.judged is not None:
        told.append(f"Rankings are measured on {inputs.judged.queries:,} judged queries of {inputs.judged_name}.")
    features = inputs.subject.manifest.feature_names
    others = rows(fact for fact in names if fact not in MAIN_FACTS)
    return Section(
        "What was trained on what",
        " ".join(told),
        advice=" ".join([*misfits(inputs), *inputs.missing]),
        tables=[
            Table("", rows(fact for fact in MAIN_FACTS if fact in names)),
            Table("all options, versions and fingerprints", others, folded=True),
            Table(f"the {counted(len(features), 'feature')}", [{"names": ", ".join(features)}], folded=True),
        ],
        numbers={
            "models": {
                model.name: model.manifest.model_dump(exclude={"history", "scaling", "tensors"})
                for model in inputs.models
            },
            "missing": list(inputs.missing),
            "log_is_that_of": [model.name for model in inputs.click_models if inputs.trained_on_log(model)],
        },
        name="models",
    )


def facts_of(model: Model) -> dict[str, str]:
    """Everything that decided a model, in words, by name."""
    manifest, origin = model.manifest, model.manifest.origin
    facts = {"method": manifest.method}
    options = dict(manifest.options)
    relevance = options.pop("relevance")
    options |= {"relevance model" if name == "kind" else name: value for name, value in relevance.items()}
    for name, value in options.items():
        if value is not None:
            facts[name] = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    if "candidates" in manifest.choices:
        facts["dimension chosen from"] = ", ".join(str(each["dimension"]) for each in manifest.choices["candidates"])
    facts["features"] = f"{len(manifest.feature_names):,}"
    facts["bias factors"] = ", ".join(f"{factor.name} ({len(factor.levels)})" for factor in manifest.factors) or "none"
    if origin is not None:
        source = origin.log or origin.data
        facts["learned from"] = "" if source is None else found_from(model.folder, source)
        chosen = "held-out clicks" if origin.validation == "clicks" else origin.validation
        facts["weights chosen by"] = f"{chosen}, by {origin.hold_out}" if origin.hold_out else chosen
    facts["training data"] = model.ranker.data_fingerprint[:SHORT]
    facts["weights"] = manifest.weights_digest[:SHORT]
    if manifest.provenance is not None and manifest.provenance.init_model is not None:
        facts["began with weights"] = manifest.provenance.init_model[:SHORT]
    return facts | {
        f"version of {name}" if name != "threads" else name: text for name, text in manifest.versions.items()
    }


def differences(inputs: ReportInputs, second: Model) -> Section:
    """Options and data in which the subject and another differ, and, folded, those in which they do not."""
    first = inputs.subject
    facts = facts_of(first), facts_of(second)
    names = [name for name in dict.fromkeys([*facts[0], *facts[1]]) if name not in OWN]
    other = [name for name in names if facts[0].get(name) != facts[1].get(name)]
    rows = [{"": name, first.name: facts[0].get(name, ""), second.name: facts[1].get(name, "")} for name in other]
    same = [{"": name, "both": facts[0][name]} for name in names if name not in other]
    tables = [Table("what differs", rows), Table("what is the same", same, folded=True)]
    alike = first.ranker.data_fingerprint == second.ranker.data_fingerprint
    data = f"They learned from {'the same' if alike else 'different'} data."
    if not rows:
        data += " They differ in nothing that decides training."
    return Section(
        "What differs?",
        data,
        advice=" ".join([*misfits(inputs), *inputs.missing]),
        tables=[table for table in tables if table.rows],
        numbers={"differ": {name: [facts[0].get(name), facts[1].get(name)] for name in other}},
        name="differences",
    )


def reproduction(inputs: ReportInputs, command: str) -> Section:
    """The commands that gave the models and this page."""
    origins = {model.name: model.manifest.origin for model in inputs.models}
    commands = [*dict.fromkeys(origin.command for origin in origins.values() if origin is not None), command]
    silent = [name for name, origin in origins.items() if origin is None]
    text = (
        "The same seed gives the same weights bit for bit on the same data, with the versions and the numbers of "
        "threads and processes that stand above."
    )
    if silent:
        text += f" How {', '.join(silent)} was trained, its folder does not say: it was not `ultr train` that saved it."
    numbers = {"commands": commands, "version": __version__}
    return Section("How to reproduce it", text, commands=commands, numbers=numbers, name="reproduce")


def misfits(inputs: ReportInputs) -> Sequence[str]:
    """A sentence where the log at hand is not the one that a model learned from."""
    if inputs.log is None:
        return []
    others = [model for model in inputs.click_models if not inputs.trained_on_log(model)]
    unknown = [model.name for model in others if model.manifest.provenance is None]
    known = [model.name for model in others if model.name not in unknown]
    told = []
    if known:
        told.append(
            f"{inputs.log_name} is not the log that {' and '.join(known)} learned from: its fingerprint is another."
        )
    if unknown:
        told.append(f"Whether {' and '.join(unknown)} learned from {inputs.log_name} is not recorded.")
    return [*told, "What is said of the log below may not be what the model saw."] if told else []
