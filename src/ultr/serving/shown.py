"""Lists that were shown and what users did with them, as lines of UBI 1.3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic_core import to_json

from ultr.serving.exploration import Exploration
from ultr.serving.team_draft import Draft

IMPRESSION = "impression"
_APPLICATION = "ultr"


@dataclass(frozen=True)
class ShownList:
    """A list as it was answered, down to the last document that is on the page."""

    query_id: str
    user_query: str
    at: datetime
    policy: str
    """The digest of the model."""
    exploration: Exploration
    """The random changes that it was subject to."""
    candidates: int
    """Documents that were ranked, shown or not."""
    documents: tuple[str, ...]
    scores: tuple[float, ...]
    base_ranks: tuple[int, ...]
    """The rank of each document before exploration, from 0."""
    client_id: str | None = None
    """The user or browser, if the query names it."""
    draft: Draft | None = None
    """The draft by which two rankers made the list, if they did."""

    @property
    def is_explored(self) -> bool:
        """True if a pair was exchanged."""
        return self.draft is None and any(rank != base for rank, base in enumerate(self.base_ranks))

    def query_line(self) -> bytes:
        """Its line of `ubi_queries`."""
        ultr: dict[str, object] = {
            "policy": self.policy,
            "explore": self.exploration.kind,
            "epsilon": self.exploration.epsilon,
            "shown": len(self.documents),
            "candidates": self.candidates,
        }
        if self.draft is not None:
            ultr |= self.draft.of_query()
        return _line(
            {
                "application": _APPLICATION,
                "query_id": self.query_id,
                **({} if self.client_id is None else {"client_id": self.client_id}),
                "user_query": self.user_query,
                "timestamp": _written(self.at),
                "query_response_hit_ids": self.documents,
                "query_attributes": {"ultr": ultr},
            }
        )

    def event_lines(self) -> Iterator[bytes]:
        """Its impressions, lines of `ubi_events`: ordinals count from 1, and so does `base_rank`."""
        explored = self.exploration.propensities(self.base_ranks) if self.draft is None else []
        for rank, (name, score, base) in enumerate(zip(self.documents, self.scores, self.base_ranks, strict=True)):
            ultr: dict[str, object] = {"score": score, "base_rank": base + 1}
            ultr |= {"propensity": explored[rank]} if self.draft is None else self.draft.of_place(rank)
            yield _event(self.query_id, name, IMPRESSION, self.at, rank=rank, ultr=ultr)


@dataclass(frozen=True)
class Action:
    """Something that a user did with a document."""

    query_id: str
    document: str
    name: str
    """Such as click, add_to_cart or purchase."""
    at: datetime
    rank: int | None
    """Rank at which it was shown, from 0, if that is known."""

    def event_line(self) -> bytes:
        """Its line of `ubi_events`."""
        return _event(self.query_id, self.document, self.name, self.at, rank=self.rank)


def _event(
    query_id: str, document: str, name: str, at: datetime, *, rank: int | None, ultr: dict[str, object] | None = None
) -> bytes:
    attributes: dict[str, object] = {"object": {"object_id": document}}
    if rank is not None:
        attributes["position"] = {"ordinal": rank + 1}
    if ultr is not None:
        attributes["ultr"] = ultr
    return _line(
        {
            "application": _APPLICATION,
            "action_name": name,
            "query_id": query_id,
            "timestamp": _written(at),
            "event_attributes": attributes,
        }
    )


def _line(content: dict[str, object]) -> bytes:
    return to_json(content) + b"\n"


def _written(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
