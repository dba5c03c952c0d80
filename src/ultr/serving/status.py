"""The state of the service as one small answer that its page is made from."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.samples import Sample

from ultr.serving.model_slot import Loaded
from ultr.serving.schemas import LoadedModel, Overview
from ultr.serving.service import Service

_LEFT_OUT = ("_created", "_bucket")


def overview(service: Service) -> Overview:
    """The models, what the service was told to do, and all counters by name."""
    settings, loaded = service.settings, service.slot.current
    return Overview(
        model=_model(loaded),
        features=len(loaded.scorer.card.feature_names),
        ranges=loaded.scorer.training_range is not None,
        ready=not service.closing and service.stuck < settings.cores,
        logs=settings.log_to is not None,
        explore=settings.explore.active,
        share=settings.interleaved_share if service.interleaving is not None else 0.0,
        rivals={role: _model(rival.current) for role, rival in service.rivals.items()},
        numbers=numbers(service.metrics.registry.collect()),
    )


def numbers(families: Iterable[Metric]) -> dict[str, float]:
    """All samples but those of buckets, by the names and labels that Prometheus gives them."""
    samples = (sample for family in families for sample in family.samples)
    return {_name(sample): sample.value for sample in samples if not sample.name.endswith(_LEFT_OUT)}


def _name(sample: Sample) -> str:
    labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
    return f"{sample.name}{{{labels}}}" if labels else sample.name


def _model(loaded: Loaded) -> LoadedModel:
    card = loaded.scorer.card
    return LoadedModel(
        digest=loaded.scorer.digest, method=card.method, loaded=loaded.since.isoformat(timespec="milliseconds")
    )
