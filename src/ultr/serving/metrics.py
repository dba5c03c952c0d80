"""Counters of the service, for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from ultr.serving.model_slot import Loaded
from ultr.serving.recent_queries import JOINED

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
MOVES = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
DRIFTS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
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
        self._add_rivals(registry)
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

    def _add_rivals(self, registry: CollectorRegistry) -> None:
        """Counts of a second model, interleaved with the first or in its shadow."""
        said = "Queries drawn for interleaving: shown, or in the old order because of the second model."
        self.interleaved = Counter("ultr_interleaved_queries", said, ["result"], registry=registry)
        for result in ("shown", "slow", "failed", "resting", "same_model", "other_features"):
            self.interleaved.labels(result)
        said = "Queries for the model in the shadow: compared, or not for this reason."
        self.shadowed = Counter("ultr_shadow_queries", said, ["result"], registry=registry)
        for result in ("compared", "dropped", "failed", "same_model", "other_features"):
            self.shadowed.labels(result)
        said = "Share of the first ten candidates that are the first ten of the model in the shadow."
        self.shadow_overlap = Histogram("ultr_shadow_overlap", said, buckets=SHARES, registry=registry)
        said = "Compared queries in which the model in the shadow has another candidate first."
        self.shadow_first = Counter("ultr_shadow_first_changed", said, registry=registry)
        said = "Ranks by which a candidate among the first ten moves in the shadow, at most."
        self.shadow_move = Histogram("ultr_shadow_largest_move", said, buckets=MOVES, registry=registry)
        said = "Mean difference of the scores of a query in units of their standard deviation."
        self.shadow_drift = Histogram("ultr_shadow_score_drift", said, buckets=DRIFTS, registry=registry)
        said = "Attempts to load another second model: new, same or failed."
        self.rival_reloads = Counter("ultr_rival_reloads", said, ["role", "result"], registry=registry)
        name, said = "ultr_rival_loaded_timestamp_seconds", "When the second model was loaded."
        self.rival = Gauge(name, said, ["role", "digest", "method"], registry=registry)

    def show_model(self, loaded: Loaded) -> None:
        """Name the model that answers now."""
        self.model.clear()
        self.model.labels(loaded.scorer.digest, loaded.scorer.card.method).set(loaded.since.timestamp())

    def show_rivals(self, rivals: Mapping[str, Loaded]) -> None:
        """Name the second models by what they are for."""
        self.rival.clear()
        for role, loaded in rivals.items():
            self.rival.labels(role, loaded.scorer.digest, loaded.scorer.card.method).set(loaded.since.timestamp())

    def text(self) -> bytes:
        """All of them in the format that Prometheus reads."""
        return generate_latest(self.registry)
