"""The OpenAPI document, with the features of the loaded model in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic_core import to_json

from ultr.scoring import Scorer
from ultr.serving.features import LARGEST, FeatureRules
from ultr.serving.parsing import MOST_EVENT_BYTES
from ultr.serving.ranking import rank
from ultr.serving.refusal import Refusal
from ultr.serving.schemas import EventsRequest, Message, Problem, RankRequest
from ultr.serving.settings import ServiceSettings
from ultr.version import __version__

ABOUT = """\
Candidates go in with their features, and come back in order. Features are given by name or as an array in the order
that `GET /model` shows. Every error has one shape: a sentence, and the place in the request that it is about.
"""


def refusals_of(settings: ServiceSettings) -> dict[str, dict[int | str, dict[str, Any]]]:
    """Refusals of each route, by route and status."""
    limits = settings.limits
    everywhere = {405: "Another method than this."}
    if settings.hosts is not None:
        everywhere |= {421: "The header Host has another name than those of this service."}
    protected = {401: "No token, or a wrong one."} if settings.token is not None else {}
    body = {
        400: "The body is not JSON.",
        408: f"The body took more than {limits.body_seconds:g} seconds to arrive.",
        415: "Another type than application/json, or compressed.",
        429: f"More than {limits.all_body_bytes:,} bytes at once; Retry-After says when to try again.",
        503: "The service was stopped before the answer was ready.",
    }
    events = {
        404: "The service was started without a folder for its log.",
        413: f"The body has more than {MOST_EVENT_BYTES:,} bytes.",
        422: "JSON, but not events: the sentence names the field.",
    }
    rank = {
        413: f"The body has more than {limits.body_bytes:,} bytes.",
        422: "JSON, but not a request that this model can answer: the sentence names the candidate and the feature. "
        f"Or more than {limits.queries:,} queries, {limits.candidates:,} candidates in a query or "
        f"{limits.all_candidates:,} candidates in all, or more values than they can have.",
        429: f"More than {limits.requests:,} requests or {limits.all_body_bytes:,} bytes at once, or no answer within "
        f"{limits.score_seconds:g} seconds; Retry-After says when to try again.",
    }
    ready = {503: "The service is shutting down, or every thread works on a request that was given up."}
    by_route: dict[str, dict[int, str]] = {
        "/rank": protected | body | rank | everywhere,
        "/events": protected | body | events | everywhere,
        "/model": protected | everywhere,
        "/health": everywhere,
        "/ready": ready | everywhere,
        "/metrics": protected | everywhere,
        "/status": protected | everywhere,
    }
    return {
        route: {status: {"model": Problem, "description": text} for status, text in sorted(texts.items())}
        for route, texts in by_route.items()
    }


def specification(app: FastAPI, scorer: Scorer, settings: ServiceSettings) -> dict[str, Any]:
    """The routes of the app; requests as this model understands them, with examples that it answers."""
    spec = get_openapi(title="ultr", version=__version__, description=ABOUT, routes=app.routes)
    limits = settings.limits
    examples = _examples(scorer, candidates=min(2, limits.candidates))
    _add_body(spec, "/rank", RankRequest, examples=examples)
    event = {"query_id": "a query", "object_id": "a", "action_name": "click"}
    _add_body(spec, "/events", EventsRequest, example={"events": [event]})
    schemas = spec["components"]["schemas"]
    schemas["RankRequest"]["properties"]["queries"]["maxItems"] = limits.queries
    schemas["Query"]["properties"]["candidates"]["maxItems"] = limits.candidates
    schemas["Candidate"]["properties"]["features"] |= _features(scorer, settings)
    with suppress(Refusal):
        answer = rank(to_json(examples["by name"]["value"]), scorer, limits=limits).content
        answered = spec["paths"]["/rank"]["post"]["responses"]["200"]
        answered["content"]["application/json"]["example"] = json.loads(answer)
    if settings.token is not None:
        spec["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path in ("/rank", "/events", "/model", "/metrics", "/status"):
            for each in spec["paths"][path].values():
                each["security"] = [{"token": []}]
    return spec


def _add_body(spec: dict[str, Any], path: str, kind: type[Message], **examples: Any) -> None:
    """Let the route at a path take a message of this kind, such as these examples."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    spec["components"]["schemas"] |= schema.pop("$defs") | {kind.__name__: schema}
    content = {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}, **examples}
    spec["paths"][path]["post"]["requestBody"] = {"required": True, "content": {"application/json": content}}


def _features(scorer: Scorer, settings: ServiceSettings) -> dict[str, Any]:
    rules = FeatureRules(scorer, settings.missing)
    names = rules.names
    kinds = [_kind(name, rules, categorical=column in rules.codes) for column, name in enumerate(names)]
    by_name = {
        "type": "object",
        "properties": dict(zip(names, kinds, strict=True)),
        "required": [] if rules.fills else names,
        "additionalProperties": False,
    }
    as_array: dict[str, Any] = {"type": "array", "minItems": len(names), "maxItems": len(names)}
    as_array |= {"items": kinds[0]} if kinds.count(kinds[0]) == len(kinds) else {"prefixItems": kinds}
    return {"anyOf": [by_name, as_array]}


def _kind(name: str, rules: FeatureRules, *, categorical: bool) -> dict[str, Any]:
    """The values that a feature may have."""
    types = ["string", "integer"] if categorical else ["number"]
    types += ["null"] if name in rules.may_miss else []
    bound = 2**63 - 1 if categorical else LARGEST
    return {"type": types if len(types) > 1 else types[0], "minimum": -bound, "maximum": bound}


def _examples(scorer: Scorer, *, candidates: int) -> dict[str, Any]:
    """A typical candidate, and one that differs from it in the first number."""
    card, names = scorer.card, scorer.card.feature_names
    typical: list[Any] = [round(value, 6) for value in card.typical]
    for column, codes in scorer.codes.items():
        typical[column] = next((value for value, code in codes.items() if code == typical[column]), None)
    other = next((column for column, value in enumerate(typical) if isinstance(value, float)), None)
    raised = [value + 1 if column == other else value for column, value in enumerate(typical)]
    arrays = [typical, raised][:candidates]
    by_name = [dict(zip(names, values, strict=True)) for values in arrays]

    def request(rows: Sequence[Any]) -> dict[str, Any]:
        named = [{"id": name, "features": features} for name, features in zip("ab", rows, strict=False)]
        return {"queries": [{"id": "a query", "candidates": named}]}

    return {"by name": {"value": request(by_name)}, "as arrays": {"value": request(arrays)}}
