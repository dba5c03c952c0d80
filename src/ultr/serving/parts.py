"""The parts of a body, counted before any of them is built."""

from __future__ import annotations

import numpy as np

from ultr.serving.limits import RequestLimits
from ultr.serving.refusal import Refusal

SPARE = 1_000
"""Parts beyond those of a right request, so that one that is nearly right is told what is wrong with it."""


def check_parts(body: bytes, limits: RequestLimits, *, features: int) -> None:
    """Refuse a body with more parts than a request within the limits has, for a model of so many features.

    A parser makes hundreds of bytes out of `{},` and an error out of each part that is wrong; to count them takes
    milliseconds. What stands in texts is no part, but that is only looked at if there seems to be too much.
    """
    if _is_too_much(body, limits, features) and _is_too_much(_outside_of_texts(body), limits, features):
        error = (
            f"the body has more parts than {limits.queries} queries with {limits.all_candidates} candidates of "
            f"{features} features; GET /model lists the features and the limits"
        )
        raise Refusal(422, "parts", error)


def _is_too_much(text: bytes, limits: RequestLimits, features: int) -> bool:
    containers = 2 * (1 + limits.queries + limits.all_candidates)
    values = 2 * (2 * limits.queries + limits.all_candidates * (1 + features))
    if text.count(b"{") + text.count(b"[") > containers + SPARE or text.count(b",") > values + SPARE:
        return True
    # Of the keys of an object that are not known, each is an error; here they are those between two braces.
    return max(part.count(b":") for part in text.split(b"{")) > 2 * features + SPARE


def _outside_of_texts(body: bytes) -> bytes:
    """Bytes outside of quotes; behind the first fault in the JSON, where a parser stops, it may be anything."""
    bare = np.frombuffer(body.replace(rb"\\", b"").replace(rb"\"", b""), dtype=np.uint8)
    is_inside = np.logical_xor.accumulate(bare == ord('"'))
    return bare[~is_inside].tobytes()
