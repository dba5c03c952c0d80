"""A second ranker beside the one that answers."""

from __future__ import annotations

from ultr.errors import ModelFileError
from ultr.scoring import Scorer


def obstacle(answering: Scorer, rival: Scorer) -> str | None:
    """The reason why a ranker cannot be held against the one that answers, in a word; None if it can."""
    if rival.digest == answering.digest:
        return "same_model"
    return "other_features" if _difference(answering, rival) else None


def check_fit(answering: Scorer, rival: Scorer) -> None:
    """Raise a `ModelFileError` unless both take the same features, as the same numbers in the same order."""
    if difference := _difference(answering, rival):
        raise ModelFileError(
            f"{rival.file} cannot be held against {answering.file}, because it {difference}; "
            "give a file of a model with the same features"
        )


def _difference(answering: Scorer, rival: Scorer) -> str | None:
    """The first difference between the features of two rankers, as the end of a sentence; None if there is none."""
    ours, theirs = answering.feature_names, rival.feature_names
    if ours != theirs:
        if lacking := [name for name in ours if name not in theirs]:
            return f"lacks feature {lacking[0]!r}"
        if further := [name for name in theirs if name not in ours]:
            return f"has a further feature {further[0]!r}"
        return "has the features in another order"
    for column, name in enumerate(ours):
        if answering.codes.get(column) != rival.codes.get(column):
            return f"has other categories of feature {name!r}"
    return None
