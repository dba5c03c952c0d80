"""What was trained on what, and how to do it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ultr.methods.description import summary
from ultr.methods.origin import found_from
from ultr.pages import Section, Table
from ultr.reporting.material import Material
from ultr.reporting.model import Model
from ultr.reporting.part import Part
from ultr.version import __version__

MAIN_FACTS = ("method", "dimension", "dimension chosen", "learned from", "weights chosen by", "seed", "training data")
"""What is shown at once; the rest is folded."""
SHORT = 12
"""So many letters of a fingerprint are enough to tell two apart."""


def provenance(material: Material) -> Part:
    """Method, options, data, seeds, versions and fingerprints of each model."""
    facts = {model.name: facts_of(model) for model in material.models}
    names = list(dict.fromkeys(fact for each in facts.values() for fact in each))

    def rows(chosen: Iterable[str]) -> list[dict[str, str]]:
        return [{"": fact} | {name: each.get(fact, "") for name, each in facts.items()} for fact in chosen]

    features = material.subject.manifest.feature_names
    return Part(
        "models",
        Section(
            "What was trained on what",
            text=" ".join([*_methods(material), _about_log(material), _about_judged(material)]).strip(),
            advice=" ".join([*misfits(material), *material.missing]),
            tables=[
                Table("", rows(fact for fact in MAIN_FACTS if fact in names)),
                Table(
                    "all options, versions and fingerprints", rows(f for f in names if f not in MAIN_FACTS), folded=True
                ),
                Table(f"the {len(features):,} features", [{"names": ", ".join(features)}], folded=True),
            ],
        ),
        {
            "models": {
                model.name: model.manifest.model_dump(exclude={"history", "scaling", "tensors"})
                for model in material.models
            },
            "missing": list(material.missing),
            "log_is_that_of": [model.name for model in material.click_models if material.trained_on_log(model)],
        },
    )


def _methods(material: Material) -> Iterator[str]:
    """What each method does, once."""
    told = {summary(type(model.ranker)): model.manifest.method for model in material.models if not model.is_bound}
    for sentence, method in told.items():
        yield f"{method}: {sentence}"


def facts_of(model: Model) -> dict[str, str]:
    """What decided a model, in words, by what it is called."""
    manifest, origin = model.manifest, model.manifest.origin
    facts = {"method": manifest.method}
    facts |= {name: _written(value) for name, value in manifest.options.items() if value is not None}
    if "dimension" in manifest.choices and manifest.options.get("dimension") == "auto":
        facts["dimension chosen"] = str(manifest.choices["dimension"])
    facts["features"] = f"{len(manifest.feature_names):,}"
    facts["bias factors"] = ", ".join(f"{factor.name} ({len(factor.levels)})" for factor in manifest.factors) or "none"
    if origin is not None:
        source = origin.log or origin.data
        facts["learned from"] = "" if source is None else found_from(model.folder, source)
        chosen = "held-out clicks" if origin.validation == "clicks" else origin.validation
        facts["weights chosen by"] = f"{chosen}, by {origin.hold_out}" if origin.hold_out else chosen
    facts["training data"] = manifest.data_fingerprint[:SHORT]
    facts["weights"] = manifest.weights_digest[:SHORT]
    return facts | {
        f"version of {name}" if name != "threads" else name: text for name, text in manifest.versions.items()
    }


def reproduction(material: Material, command: str) -> Part:
    """The commands that gave the models and this page."""
    commands = list(
        dict.fromkeys(model.manifest.origin.command for model in material.models if model.manifest.origin is not None)
    )
    silent = [model.name for model in material.models if model.manifest.origin is None]
    text = (
        "The same seed gives the same weights bit for bit on the same data, with the versions and the numbers of "
        "threads and processes that stand above."
    )
    if silent:
        text += f" How {', '.join(silent)} was trained, its folder does not say: it was not `ultr train` that saved it."
    return Part(
        "reproduce",
        Section("How to reproduce it", text=text, commands=[*commands, command]),
        {"commands": [*commands, command], "version": __version__},
    )


def _about_log(material: Material) -> str:
    if material.log is None:
        return ""
    log = material.log
    return (
        f"The log {material.log_name} has {log.impressions.sum():,} impressions of {log.lists:,} lists with "
        f"{log.clicks.sum():,} clicks."
    )


def _about_judged(material: Material) -> str:
    if material.judged is None:
        return ""
    return f"Rankings are measured on {material.judged.queries:,} judged queries of {material.judged_name}."


def misfits(material: Material) -> Sequence[str]:
    """A sentence where the log at hand is not the one that a model learned from."""
    if material.log is None:
        return []
    others = [model for model in material.click_models if not material.trained_on_log(model)]
    unknown = [model.name for model in others if model.manifest.provenance is None]
    known = [model.name for model in others if model.name not in unknown]
    doubt = "What is said of the log below may not be what the model saw."
    told = []
    if known:
        told.append(
            f"{material.log_name} is not the log that {' and '.join(known)} learned from: its fingerprint is another."
        )
    if unknown:
        told.append(f"Whether {' and '.join(unknown)} learned from {material.log_name} is not recorded.")
    return [*told, doubt] if told else []


def _written(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
