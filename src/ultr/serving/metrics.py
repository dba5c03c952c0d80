"""Counters of the service, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from ultr.serving.model_slot import Loaded

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The counters of one service; no label comes from a request."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter("ultr_requests", "Answered requests.", ["route", "status"], registry=self.registry)
        self.seconds = Histogram(
            "ultr_request_seconds",
            "From the headers of a request to the end of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.refused = Counter("ultr_refused", "Requests that were refused.", ["reason"], registry=self.registry)
        self.in_flight = Gauge("ultr_in_flight", "Requests that have no answer yet.", registry=self.registry)
        self.queries = Counter("ultr_queries", "Ranked queries.", registry=self.registry)
        self.candidates = Counter("ultr_candidates", "Scored candidates.", registry=self.registry)
        self.reloads = Counter(
            "ultr_reloads", "Attempts to load another model: new, same or failed.", ["result"], registry=self.registry
        )
        self.model = Gauge(
            "ultr_model_loaded_timestamp_seconds",
            "When the model that answers was loaded.",
            ["digest", "method"],
            registry=self.registry,
        )
        for result in ("new", "same", "failed"):
            self.reloads.labels(result)

    def show_model(self, loaded: Loaded) -> None:
        """Name the model that answers now."""
        self.model.clear()
        card = loaded.scorer.card
        self.model.labels(loaded.scorer.digest, card.method).set(loaded.since.timestamp())

    def text(self) -> bytes:
        """All of them in the format that Prometheus reads."""
        return generate_latest(self.registry)
