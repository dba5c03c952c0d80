"""From the bytes of a body to a message, or to what users did."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from ultr.serving.refusal import Refusal
from ultr.serving.schemas import EventsRequest, Message, UserEvent, Where
from ultr.serving.shown import IMPRESSION

M = TypeVar("M", bound=Message)
MOST_EVENT_BYTES = 2**20
"""Size of a request with events: a parser makes hundreds of bytes out of each part."""
_IDS = ("id", "query_id", "object_id")


def parse(kind: type[M], body: bytes) -> M:
    """The message in a body; what is none is a `Refusal` that tells the first fault."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if fault["type"] == "json_invalid":
        raise Refusal(400, "not_json", f"the body is not JSON: {fault['msg'].removeprefix('Invalid JSON: ')}")
    field = ".".join(map(str, fault["loc"]))[:200]
    name = next((each for each in _IDS if each in fault["loc"]), None)
    if fault["type"] == "missing":
        said = "is missing"
    elif name is not None:
        # What follows are the kinds of id that were tried.
        field = ".".join(map(str, fault["loc"][: fault["loc"].index(name) + 1]))
        said = "must be a text of at most 256 characters or an integer of 64 bits"
    else:
        told = f"{fault['msg'][:1].lower()}{fault['msg'][1:]}"
        said = "is not known here" if fault["type"] == "extra_forbidden" else f"is wrong: {told}"
    raise Refusal(
        422, "wrong_shape", f"{field or 'the body'} {said}; /docs shows an example", where=Where(field=field or None)
    )


def parse_events(body: bytes) -> list[UserEvent]:
    """The events of a request; one that cannot be taken is a `Refusal`."""
    if len(body) > MOST_EVENT_BYTES:
        error = f"the body has more than {MOST_EVENT_BYTES} bytes; send fewer events at once"
        raise Refusal(413, "body_bytes", error)
    events = parse(EventsRequest, body).events
    for number, event in enumerate(events):
        if event.action_name.lower() == IMPRESSION:
            said = f"events.{number} is an impression, which the service itself writes; leave it out"
            raise Refusal(422, "wrong_shape", said, where=Where(field=f"events.{number}.action_name"))
    return events
