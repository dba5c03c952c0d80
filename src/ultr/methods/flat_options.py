"""Options as commands and files give them: by one flat name each, those of the relevance model among the method's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any, get_type_hints

from ultr import checks
from ultr.methods.estimator import Estimator
from ultr.relevance.kinds import KINDS, with_tuples
from ultr.relevance.relevance_model import Relevance

RELEVANCE = "relevance"
_hints = cache(get_type_hints)
"""Every look compiles the annotations anew, and a spec asks thousands of times."""


def types(method: type[Estimator], relevance: str | None = None) -> dict[str, Any]:
    """The type of each option; `relevance` is the name of a kind, by default the method's, and an option like any."""
    found: dict[str, Any] = {}
    for kind, prefix in ((type(usual_relevance(method, relevance)), f"{RELEVANCE}__"), (method, "")):
        hints = _hints(kind)
        names = (field.name for field in fields(kind))
        found |= {name: hints[name] for name in names if f"{prefix}{name}" not in method.without}
    return found | {RELEVANCE: str}


def usual_relevance(method: type[Estimator], relevance: str | None = None) -> Relevance:
    """The relevance model of this kind, or of the method's own, with the options that it has there by default."""
    usual = method().relevance
    if relevance is None:
        return usual
    kind = KINDS[checks.one_of(RELEVANCE, relevance, KINDS)]
    return usual if type(usual) is kind else kind()


def estimator(method: type[Estimator], options: Mapping[str, Any]) -> Estimator:
    """An estimator with these options, of which lists are taken as tuples."""
    given = with_tuples(options)
    name_of_kind = given.pop(RELEVANCE, None)
    known, usual = types(method, name_of_kind), usual_relevance(method, name_of_kind)
    for name in given:
        checks.one_of(f"option of {method.__name__}", name, known)
    inner = {field.name for field in fields(usual)}
    own = {name: value for name, value in given.items() if name not in inner}
    made = method(relevance=replace(usual, **{name: given[name] for name in given if name in inner}), **own)
    made.check()
    return made
