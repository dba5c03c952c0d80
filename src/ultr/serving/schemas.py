"""Requests and answers as they go over the wire."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    SkipValidation,
    StrictStr,
)

from ultr.scoring import Card


def _number(value: object) -> object:
    """1.0 is an integer to JSON, true and "1" are not."""
    if type(value) not in (int, float):
        raise ValueError("input should be a text or an integer")
    return value


Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Id = (
    Annotated[StrictStr, Field(max_length=256)]
    | Annotated[Integer, BeforeValidator(_number, json_schema_input_type=Integer)]
)
"""A name that the client chose; it is given back as it came."""


def _in_utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("the time is beyond the calendar") from error


class Message(BaseModel):
    """The base of all that is sent and answered; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Candidate(Message):
    """A document that can be shown."""

    id: Id | None = None
    # They are checked in bulk, because one by one they would cost more than the scores.
    features: SkipValidation[dict[str, float | str | None] | list[float | str | None]] = Field(
        description="By name, or as an array in the order of `feature_names` in `GET /model`; categories as texts."
    )


def _whole(value: object) -> object:
    """A whole number that was written as 3.0, which JSON takes for the same, as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Query(Message):
    """Candidates that compete for the same places."""

    id: Id | None = None
    user_query: Annotated[StrictStr, Field(min_length=1, max_length=1_000)] | None = Field(
        default=None, description="What the user typed; without it the list is not logged."
    )
    client_id: Id | None = Field(
        default=None, description="The user or browser, without a name; it is logged, so that each can count once."
    )
    shown: Annotated[int, Field(strict=True, ge=1), BeforeValidator(_whole)] | None = Field(
        default=None, description="How many of the best the user gets to see; by default as the service was started."
    )
    candidates: Annotated[list[Candidate], FailFast()]


class RankRequest(Message):
    """One query or several."""

    queries: Annotated[list[Query], FailFast()] = Field(min_length=1)


class UserEvent(Message):
    """Something that a user did with a document that was shown."""

    query_id: Id = Field(description="The `query_id` of the answer.")
    object_id: Id = Field(description="The id of the candidate.")
    action_name: Annotated[StrictStr, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")] = Field(
        description="Such as `click`, `add_to_cart` or `purchase`; impressions are written by the service itself."
    )
    timestamp: Annotated[AwareDatetime, AfterValidator(_in_utc)] | None = Field(
        default=None, description="ISO 8601 with its offset; by default now."
    )


class EventsRequest(Message):
    """One event or several."""

    events: Annotated[list[UserEvent], FailFast()] = Field(min_length=1, max_length=1_000)


class EventsAnswer(Message):
    """Counts of events by how they fit what was shown; all of them are logged, but those that are lost."""

    joined: int = 0
    duplicate: int = Field(default=0, description="The same action on the same document of the same query, again.")
    late: int = Field(default=0, description="More than 30 minutes after the answer.")
    not_shown: int = Field(default=0, description="On another document than those that were shown.")
    unknown: int = Field(default=0, description="Of a query that was never answered, or too long ago.")
    lost: int = Field(default=0, description="Those of them that the log has no room for at this moment.")


class CandidateReasons(Message):
    """The features that moved a candidate against the mean score of its query."""

    mean_score: float = Field(description="The mean score of the candidates of the query.")
    contributions: dict[str, float] = Field(description="By feature; they add up to the score less the mean score.")
    gap: float = Field(description="What they lack to that.")
    complete: bool = Field(description="True if the gap is within the tolerance.")
    largest_error: float | None = Field(default=None, description="The largest standard error, if they were sampled.")


class Ranked(Message):
    """A candidate at its place."""

    index: int = Field(description="Which of the candidates as sent, counted from 0.")
    id: Id | None = Field(default=None, description="As sent; left out if there was none.")
    score: float = Field(description="Higher is better; comparable within a query.")
    explanation: CandidateReasons | None = Field(default=None, description="If `explain=true`, of the first ones.")


class RankedQuery(Message):
    """A query with its candidates, the best first."""

    id: Id | None = Field(default=None, description="As sent; left out if there was none.")
    query_id: str | None = Field(
        default=None, description="What events refer to: the id as sent, or a new one. Left out if it is not logged."
    )
    ranking: list[Ranked] = Field(
        description="The best first, but for a pair that exploration exchanged, or as two models have interleaved it; "
        "ties in the order they were sent."
    )


class RankAnswer(Message):
    """Every query in the order sent, and the file that ranked it."""

    model: str = Field(description="The digest of the model file.")
    explained_by: str | None = Field(default=None, description="How contributions were found, if `explain=true`.")
    queries: list[RankedQuery]


class ModelAnswer(Message):
    """The ranker that answers now."""

    digest: str = Field(description="The same for the same file.")
    loaded: str = Field(description="When, in UTC.")
    missing: Literal["as-trained", "refuse", "fill"] = Field(
        description="Features that may be missing: those under `missing` on the card, none, or all."
    )
    limits: dict[str, int | float]
    card: Card


class StatusAnswer(Message):
    """Status of the service."""

    status: Literal["alive", "ready"]


class LoadedModel(Message):
    """A model that was loaded."""

    digest: str
    method: str
    loaded: str = Field(description="When, in UTC.")


class Overview(Message):
    """The state of the service."""

    model: LoadedModel = Field(description="The one that answers.")
    features: int
    ranges: bool = Field(description="The file says which values training had.")
    ready: bool = Field(description="Requests may be sent.")
    logs: bool = Field(description="Shown lists and events are logged.")
    explore: bool = Field(description="Shown lists are explored.")
    share: float = Field(description="The share of queries that are interleaved.")
    rivals: dict[str, LoadedModel] = Field(description="Second models: `interleave` and `shadow`.")
    numbers: dict[str, float] = Field(description="What `/metrics` counts, without buckets.")


class Where(Message):
    """The place in the request that an error is about; numbers count from 0."""

    query: int | None = None
    query_id: Id | None = None
    candidate: int | None = None
    candidate_id: Id | None = None
    feature: str | None = None
    field: str | None = Field(
        default=None, description="A place outside of the features, such as `queries.0.candidates`."
    )


class Problem(Message):
    """The reason why a request was not answered."""

    error: str = Field(description="One sentence: what is wrong, where, what to do.")
    where: Where
