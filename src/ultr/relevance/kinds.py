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


def relevance_of(content: Mapping[str, Any]) -> Relevance:
    """The options that `Relevance.content` gave, lists being tuples again."""
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
    kind = KINDS[checks.one_of("kind of relevance model", str(options.pop("kind", None)), KINDS)]
    try:
        return kind(**options)
    except TypeError as error:
        raise OptionError(f"a relevance model {kind.__name__} does not have these options: {error}") from error
