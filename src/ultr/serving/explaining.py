"""Why candidates are ranked where they are, in the answer to a request that asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ultr.arrays import Floats, Integers
from ultr.data.training_range import Flag
from ultr.errors import OptionError
from ultr.scoring import Scorer
from ultr.scoring.file_explanation import explain_file
from ultr.serving.refusal import Refusal
from ultr.serving.schemas import Where

EXPLAINED = 10
"""Candidates of each query that are explained, from the top."""
MOST_MIXED = 500_000
"""Mixed candidates that may be scored for the explanations of a request."""
PARAMETER = {
    "name": "explain",
    "in": "query",
    "required": False,
    "description": f"`true` adds to the first {EXPLAINED} candidates of each query what each feature contributed.",
    "schema": {"type": "string", "enum": ["true", "false"], "default": "false"},
}


def is_wanted(parameters: Mapping[str, str]) -> bool:
    """True if the parameters of a request ask for explanations."""
    given = parameters.get("explain", "false")
    if given not in ("true", "false"):
        raise Refusal(422, "explain", "explain must be true or false", where=Where(field="explain"))
    return given == "true"


def explained(scorer: Scorer, features: Floats, offsets: Integers) -> tuple[str, dict[int, dict[str, Any]]]:
    """The way it is explained, and the explanation of the best candidates of each query by their rows."""
    try:
        found = explain_file(scorer, features, offsets, top=EXPLAINED, most=MOST_MIXED)
    except OptionError as error:
        raise Refusal(422, "not_explained", f"this cannot be explained: {error}") from None
    return found.how, {row: found.as_json(number) for number, row in enumerate(found.candidates.tolist())}


def outside(scorer: Scorer, features: Floats) -> int:
    """The number of values that training did not have, those of categories aside; 0 if the file does not know."""
    if scorer.training_range is None:
        return 0
    flags = scorer.training_range.flags(features)
    return int(np.count_nonzero((flags != Flag.INSIDE) & (flags != Flag.NEVER_SEEN)))
