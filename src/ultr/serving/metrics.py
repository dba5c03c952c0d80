"""Counters of the service, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from ultr.serving.model_slot import Loaded
from ultr.serving.recent_queries import JOINED

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The counters of one service; no label comes from a request."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter("ultr_requests", "Answered requests.", ["route", "status"], registry=registry)
        said = "From the headers of a request to the end of its answer."
        self.seconds = Histogram("ultr_request_seconds", said, ["route"], buckets=SECONDS, registry=registry)
        self.refused = Counter("ultr_refused", "Requests that were refused.", ["reason"], registry=registry)
        self.in_flight = Gauge("ultr_in_flight", "Requests that have no answer yet.", registry=registry)
        self.queries = Counter("ultr_queries", "Ranked queries.", registry=registry)
        self.candidates = Counter("ultr_candidates", "Scored candidates.", registry=registry)
        said = "Values of categorical features that were never seen in training."
        self.unseen = Counter("ultr_unseen_values", said, registry=registry)
        said = "Values below or above those of training, or missing where none was."
        self.outside = Counter("ultr_outside_training", said, registry=registry)
        said = "Attempts to load another model: new, same or failed."
        self.reloads = Counter("ultr_reloads", said, ["result"], registry=registry)
        name, said = "ultr_model_loaded_timestamp_seconds", "When the model that answers was loaded."
        self.model = Gauge(name, said, ["digest", "method"], registry=registry)
        said = "Threads that still work on requests which were given up."
        self.stuck = Gauge("ultr_stuck_threads", said, registry=registry)
        said = "Lines of the log that could not be written."
        self.dropped = Counter("ultr_log_lines_dropped", said, registry=registry)
        said = "Shown lists: logged, lost by the queue or the disk, repeated, or without an id or the user's query."
        self.shown = Counter("ultr_shown_queries", said, ["result"], registry=registry)
        said = "Logged lists of which a pair was exchanged."
        self.explored = Counter("ultr_explored_queries", said, registry=registry)
        said = "What users did, by how it fits what was shown: joined, duplicate, late, not_shown, unknown."
        self.events = Counter("ultr_events", said, ["result"], registry=registry)
        said = "Events that were not logged because of the queue or the disk."
        self.events_lost = Counter("ultr_events_lost", said, ["reason"], registry=registry)
        for joined in JOINED:
            self.events.labels(joined)
        for reason in ("queue", "disk"):
            self.events_lost.labels(reason)
        said = "Files of the click log that gave way to newer ones."
        self.files_removed = Counter("ultr_click_log_files_removed", said, registry=registry)
        for result in ("logged", "queue", "disk", "repeated", "no_ids", "no_user_query"):
            self.shown.labels(result)
        for result in ("new", "same", "failed"):
            self.reloads.labels(result)

    def show_model(self, loaded: Loaded) -> None:
        """Name the model that answers now."""
        self.model.clear()
        self.model.labels(loaded.scorer.digest, loaded.scorer.card.method).set(loaded.since.timestamp())

    def text(self) -> bytes:
        """All of them in the format that Prometheus reads."""
        return generate_latest(self.registry)
