"""Counters of the service, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

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
        counter = self._counter
        self.requests = counter("requests", "Answered requests.", route=(), status=())
        said = "From the headers of a request to the end of its answer."
        self.seconds = Histogram("ultr_request_seconds", said, ["route"], buckets=SECONDS, registry=registry)
        self.refused = counter("refused", "Requests that were refused.", reason=())
        self.in_flight = Gauge("ultr_in_flight", "Requests that have no answer yet.", registry=registry)
        self.queries = counter("queries", "Ranked queries.")
        self.candidates = counter("candidates", "Scored candidates.")
        self.unseen = counter("unseen_values", "Values of categorical features that were never seen in training.")
        said = "Values below or above those of training, or missing where none was."
        self.outside = counter("outside_training", said)
        said = "Attempts to load another model: new, same or failed."
        self.reloads = counter("reloads", said, result=("new", "same", "failed"))
        name, said = "ultr_model_loaded_timestamp_seconds", "When the model that answers was loaded."
        self.model = Gauge(name, said, ["digest", "method"], registry=registry)
        said = "Threads that still work on requests which were given up."
        self.stuck = Gauge("ultr_stuck_threads", said, registry=registry)
        self.dropped = counter("log_lines_dropped", "Lines of the log that could not be written.")
        said = "Shown lists: logged, lost by the queue or the disk, repeated, or without an id or the user's query."
        results = ("logged", "queue", "disk", "repeated", "no_ids", "no_user_query")
        self.shown = counter("shown_queries", said, result=results)
        self.explored = counter("explored_queries", "Logged lists of which a pair was exchanged.")
        said = "What users did, by how it fits what was shown: joined, duplicate, late, not_shown, unknown."
        self.events = counter("events", said, result=JOINED)
        said = "Events that were not logged because of the queue or the disk."
        self.events_lost = counter("events_lost", said, reason=("queue", "disk"))
        self._add_rivals(registry)
        self.files_removed = counter("click_log_files_removed", "Files of the click log that gave way to newer ones.")

    def _counter(self, name: str, said: str, **labels: Iterable[str]) -> Counter:
        """A counter whose labels have these values, from 0 at the start where they are known."""
        made = Counter(f"ultr_{name}", said, list(labels), registry=self.registry)
        for values in product(*labels.values()) if labels else ():
            made.labels(*values)
        return made

    def _add_rivals(self, registry: CollectorRegistry) -> None:
        """Counts of a second model, interleaved with the first or in its shadow."""
        counter = self._counter
        said = "Queries drawn for interleaving: shown, or in the old order because of the second model."
        results = ("shown", "slow", "failed", "resting", "same_model", "other_features")
        self.interleaved = counter("interleaved_queries", said, result=results)
        said = "Queries for the model in the shadow: compared, or not for this reason."
        reasons = ("compared", "dropped", "failed", "same_model", "other_features")
        self.shadowed = counter("shadow_queries", said, result=reasons)
        said = "Share of the first ten candidates that are the first ten of the model in the shadow."
        self.shadow_overlap = Histogram("ultr_shadow_overlap", said, buckets=SHARES, registry=registry)
        said = "Compared queries in which the model in the shadow has another candidate first."
        self.shadow_first = counter("shadow_first_changed", said)
        said = "Ranks by which a candidate among the first ten moves in the shadow, at most."
        self.shadow_move = Histogram("ultr_shadow_largest_move", said, buckets=MOVES, registry=registry)
        said = "Mean difference of the scores of a query in units of their standard deviation."
        self.shadow_drift = Histogram("ultr_shadow_score_drift", said, buckets=DRIFTS, registry=registry)
        said = "Attempts to load another second model: new, same or failed."
        self.rival_reloads = counter("rival_reloads", said, role=(), result=())
        name, said = "ultr_rival_loaded_timestamp_seconds", "When the second model was loaded."
        self.rival = Gauge(name, said, ["role", "digest", "method"], registry=registry)

    def show_models(self, answering: Loaded, rivals: Mapping[str, Loaded]) -> None:
        """Name the model that answers now, and the second models by what they are for."""
        self.model.clear()
        self.model.labels(answering.scorer.digest, answering.scorer.card.method).set(answering.since.timestamp())
        self.rival.clear()
        for role, loaded in rivals.items():
            self.rival.labels(role, loaded.scorer.digest, loaded.scorer.card.method).set(loaded.since.timestamp())

    def text(self) -> bytes:
        """All of them in the format that Prometheus reads."""
        return generate_latest(self.registry)
