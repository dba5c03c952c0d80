"""Options as commands and files give them: by one flat name each, those of the relevance model among the method's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from ultr import checks
from ultr.methods.estimator import Estimator
from ultr.relevance.kinds import KINDS
from ultr.relevance.mlp import MLP

RELEVANCE = "relevance"


def types(method: type[Estimator], relevance: str = MLP.kind) -> dict[str, Any]:
    """The type of each option; `relevance` is the name of a kind, and an option like any other."""
    found: dict[str, Any] = {}
    for kind in (KINDS[checks.one_of(RELEVANCE, relevance, KINDS)], method):
        hints = get_type_hints(kind)
        found |= {field.name: hints[field.name] for field in fields(kind)}
    return found | {RELEVANCE: str}


def estimator(method: type[Estimator], options: Mapping[str, Any]) -> Estimator:
    """An estimator with these options, of which lists are taken as tuples."""
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
    }
    name_of_kind = given.pop(RELEVANCE, MLP.kind)
    known, kind = types(method, name_of_kind), KINDS[name_of_kind]
    for name in given:
        checks.one_of(f"option of {method.__name__}", name, known)
    inner = {field.name for field in fields(kind)}
    own = {name: value for name, value in given.items() if name not in inner}
    made = method(relevance=kind(**{name: value for name, value in given.items() if name in inner}), **own)
    made.check()
    return made
