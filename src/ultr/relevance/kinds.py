"""The kinds of relevance models by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ultr import checks
from ultr.errors import OptionError
from ultr.relevance.mlp import MLP
from ultr.relevance.relevance_model import Relevance
from ultr.relevance.trees import Trees

KINDS: dict[str, type[Relevance]] = {kind.kind: kind for kind in (MLP, Trees)}


def with_tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as they were before JSON made lists of their tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}


def relevance_of(content: Mapping[str, Any]) -> Relevance:
    """The options that `Relevance.content` gave."""
    options = with_tuples(content)
    kind = KINDS[checks.one_of("kind of relevance model", str(options.pop("kind", None)), KINDS)]
    try:
        return kind(**options)
    except TypeError as error:
        raise OptionError(f"a relevance model {kind.__name__} does not have these options: {error}") from error
