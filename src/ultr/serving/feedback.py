"""Lists that the service showed and what users did with them, kept for the next training."""

from __future__ import annotations

import logging
import secrets
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from ultr.arrays import Floats
from ultr.serving import logs
from ultr.serving.exploration import Exploration, exchanged
from ultr.serving.hourly_files import HourlyFiles
from ultr.serving.interleaving import Contest
from ultr.serving.journal import Entry, Journal
from ultr.serving.metrics import Metrics
from ultr.serving.recent_queries import RecentQueries
from ultr.serving.schemas import EventsAnswer, Query, UserEvent
from ultr.serving.settings import ServiceSettings
from ultr.serving.shown import Action, ShownList


class Feedback:
    """Decides what a query is shown, and writes that down once it was answered."""

    def __init__(self, folder: Path, settings: ServiceSettings, metrics: Metrics) -> None:
        self.shown = settings.shown
        """Documents of a page, for queries that do not say."""
        self.exploration = settings.explore
        self._metrics = metrics
        self._secret = secrets.token_bytes(32)
        self._recent = RecentQueries()
        self._said: set[str] = set()
        files = HourlyFiles(
            folder,
            most_bytes=int(settings.log_gigabytes * 1e9),
            parquet=settings.log_format == "parquet",
            removed=metrics.files_removed.inc,
        )
        self._journal = Journal(files, self._told)

    def show(
        self,
        query: Query,
        order: list[int],
        scores: Floats,
        *,
        policy: str,
        query_id: str,
        contest: Contest | None = None,
    ) -> tuple[ShownList | None, list[int]]:
        """A list as it is shown, explored, interleaved or as it is, and its order; None if it cannot be learned from.

        `query_id` is the id that it has unless another list has it.
        """
        size = min(self.shown if query.shown is None else query.shown, len(order))
        names = [query.candidates[index].id for index in order[:size]]
        missing = "no_user_query" if query.user_query is None else "no_ids" if None in names else None
        if missing is not None:
            self._metrics.shown.labels(missing).inc()
            self._say(missing)
            return None, order
        at = datetime.now(UTC)
        while True:
            draft = None if contest is None else contest(order, size, query_id)
            if draft is None:
                pair = self.exploration.drawn(size, query_id=query_id, secret=self._secret)
                base_ranks = exchanged(list(range(size)), pair)
            else:
                base_ranks = [pick.rank for pick in draft.picks]
            documents = tuple(str(query.candidates[order[rank]].id) for rank in base_ranks)
            if self._recent.claim(query_id, documents, at):
                break
            # The client has used this id for another list, whose events must stay apart.
            query_id = str(uuid4())
        moved = set(base_ranks)
        rest = [index for rank, index in enumerate(order) if rank not in moved]
        order = [*(order[rank] for rank in base_ranks), *rest]
        shown = ShownList(
            query_id=query_id,
            user_query=str(query.user_query),
            at=at,
            policy=policy,
            exploration=self.exploration if draft is None else Exploration(),
            candidates=len(order),
            documents=documents,
            scores=tuple(scores[order[:size]].tolist()),
            base_ranks=tuple(base_ranks),
            client_id=None if query.client_id is None else str(query.client_id),
            draft=draft,
        )
        return shown, order

    def keep(self, lists: Iterable[ShownList]) -> None:
        """Write lists down that are being answered, each id once."""
        for shown in lists:
            if self._recent.is_kept(shown.query_id):
                self._metrics.shown.labels("repeated").inc()
            elif self._journal.put(shown):
                self._recent.keep(shown.query_id)
                self._metrics.explored.inc(shown.is_explored)
                self._metrics.interleaved.labels("shown").inc(shown.draft is not None)

    def take(self, events: Iterable[UserEvent]) -> EventsAnswer:
        """Write down what users did, and tell how it fits what was shown."""
        told: Counter[str] = Counter()
        for event in events:
            query_id, document = str(event.query_id), str(event.object_id)
            at = event.timestamp or datetime.now(UTC)
            joined, rank = self._recent.join(query_id, document, event.action_name, at)
            told[joined] += 1
            self._metrics.events.labels(joined).inc()
            told["lost"] += not self._journal.put(Action(query_id, document, event.action_name, at, rank))
        return EventsAnswer(**told)

    def close(self) -> bool:
        """Write what waits; False if the disk holds that up."""
        return self._journal.close()

    def _told(self, entry: Entry, result: str) -> None:
        if isinstance(entry, ShownList):
            self._metrics.shown.labels(result).inc()
        elif result != "logged":
            self._metrics.events_lost.labels(result).inc()
        if result == "logged":
            self._said.discard("disk")
        else:
            self._say(result)

    def _say(self, reason: str) -> None:
        """Tell once, not for every query, why something is missing in the log; the metrics count them."""
        if reason not in self._said:
            self._said.add(reason)
            logs.write("not logged", level=logging.WARNING, reason=reason)
