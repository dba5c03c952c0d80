"""From the bytes of a request with events to what users did."""

from __future__ import annotations

from ultr.serving.parsing import parse
from ultr.serving.refusal import Refusal
from ultr.serving.schemas import EventsRequest, UserEvent, Where
from ultr.serving.shown import IMPRESSION

MOST_BYTES = 2**20
"""Size of a request with events: a parser makes hundreds of bytes out of each part."""


def parse_events(body: bytes) -> list[UserEvent]:
    """The events of a request; one that cannot be taken is a `Refusal`."""
    if len(body) > MOST_BYTES:
        raise Refusal(413, "body_bytes", f"the body has more than {MOST_BYTES} bytes; send fewer events at once")
    events = parse(EventsRequest, body).events
    for number, event in enumerate(events):
        if event.action_name.lower() == IMPRESSION:
            said = f"events.{number} is an impression, which the service itself writes; leave it out"
            raise Refusal(422, "wrong_shape", said, where=Where(field=f"events.{number}.action_name"))
    return events
