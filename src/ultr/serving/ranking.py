"""From the bytes of a request to the bytes of its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from pydantic_core import to_json

from ultr.arrays import Floats
from ultr.scoring import Scorer
from ultr.serving.explaining import explained, outside
from ultr.serving.features import FeatureRules, Missing, refusal
from ultr.serving.feedback import Feedback
from ultr.serving.interleaving import Interleaving
from ultr.serving.limits import RequestLimits
from ultr.serving.parsing import parse
from ultr.serving.parts import check_parts
from ultr.serving.refusal import Refusal
from ultr.serving.schemas import Query, RankRequest, Where
from ultr.serving.shadow import Shadow
from ultr.serving.shown import ShownList

if TYPE_CHECKING:
    from onnxruntime import RunOptions


@dataclass(frozen=True)
class RankResponse:
    """An answer and how much was asked."""

    content: bytes
    queries: int
    candidates: int
    unseen: int
    """Values of categorical features that were never seen in training."""
    outside: int
    """Other values that training did not have."""
    shown: tuple[ShownList, ...] = ()
    """The lists to be logged once they are answered."""


def rank(
    body: bytes,
    scorer: Scorer,
    *,
    limits: RequestLimits,
    missing: Missing = "as-trained",
    explain: bool = False,
    feedback: Feedback | None = None,
    interleaving: Interleaving | None = None,
    shadow: Shadow | None = None,
    run: RunOptions | None = None,
) -> RankResponse:
    """The answer to a request; one that cannot be answered is a `Refusal`. `run.terminate = True` ends the scoring."""
    check_parts(body, limits, features=len(scorer.card.feature_names))
    queries = parse(RankRequest, body).queries
    sizes = [len(query.candidates) for query in queries]
    _check_sizes(sizes, limits)
    _check_ids(queries)
    rules = FeatureRules(scorer, missing)
    features = rules.matrix(queries)
    _check_keys(body, queries, rules)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = scorer.score(features, offsets, run=run)
    _check_scores(scores, queries, offsets)
    how, reasons = explained(scorer, features, offsets) if explain else ("", {})
    query_ids = [str(uuid4()) if query.id is None else str(query.id) for query in queries] if feedback else []
    contests = interleaving.contests(queries, query_ids, features, offsets, scorer) if interleaving else {}
    if shadow is not None:
        shadow.put(scorer, features, offsets, scores)
    answers: list[dict[str, Any]] = []
    lists: list[ShownList] = []
    for number, (query, start, end) in enumerate(zip(queries, offsets.tolist(), offsets[1:].tolist(), strict=False)):
        own = scores[start:end]
        # Ties keep the order in which they were sent.
        order: list[int] = np.argsort(-own, kind="stable").tolist()
        query_id = None
        if feedback is not None:
            shown, order = feedback.show(
                query, order, own, policy=scorer.digest, query_id=query_ids[number], contest=contests.get(number)
            )
            if shown is not None:
                lists.append(shown)
                query_id = shown.query_id
        why = {row - start: reason for row, reason in reasons.items()}
        answers.append(_answer(query, order, own, why, query_id=query_id))
    content = to_json({"model": scorer.digest, **({"explained_by": how} if explain else {}), "queries": answers})
    return RankResponse(content, len(queries), len(features), rules.unseen, outside(scorer, features), tuple(lists))


def _check_sizes(sizes: Sequence[int], limits: RequestLimits) -> None:
    if len(sizes) > limits.queries:
        error = f"{len(sizes)} queries in one request, at most {limits.queries} may be; send several requests"
        raise Refusal(422, "queries", error)
    for number, size in enumerate(sizes):
        if size > limits.candidates:
            error = f"query {number} has {size} candidates, at most {limits.candidates} may be; send the best of them"
            raise Refusal(422, "candidates", error, where=Where(query=number))
    if sum(sizes) > limits.all_candidates:
        most = f"at most {limits.all_candidates} may be; send several requests"
        raise Refusal(422, "all_candidates", f"{sum(sizes)} candidates in one request, {most}")


def _check_ids(queries: Sequence[Query]) -> None:
    """Refuse candidates of one query with the same id, of which the client could not tell which is meant."""
    for number, query in enumerate(queries):
        # The log has texts, in which 7 and "7" are one.
        first: dict[str, int] = {}
        for index, candidate in enumerate(query.candidates):
            if candidate.id is not None and first.setdefault(str(candidate.id), index) != index:
                fault = f"has the same id as candidate {first[str(candidate.id)]}; give each an id of its own, or none"
                raise refusal(number, query, index, "same_id", fault)


def _check_keys(body: bytes, queries: Sequence[Query], rules: FeatureRules) -> None:
    """Refuse an object with the same key twice, of which parsers keep the last without a word.

    Each key has a colon, and the parsed request tells how many keys and other colons there should be. If the body has
    more, plain or escaped, it is parsed once more by a parser that looks at every key but takes ten times as long.
    """
    texts: list[str] = []
    keys = 1
    for query in queries:
        keys += len(query.model_fields_set)
        texts += [str(query.id), str(query.client_id), query.user_query or ""]
        for candidate in query.candidates:
            keys += len(candidate.model_fields_set)
            texts.append(str(candidate.id))
            if isinstance(candidate.features, dict):
                keys += len(candidate.features)
                texts.extend(candidate.features)
            if rules.codes:
                texts.extend(rules.texts_of(candidate.features))
    # A backslash before an escape makes it no colon, which only adds to the left side: nothing cancels out.
    colons = body.count(b":") + body.count(rb"\u003a") + body.count(rb"\u003A")
    if colons != keys + "".join(texts).count(":"):
        json.loads(body.decode(), object_pairs_hook=_without_twins)


def _without_twins(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise Refusal(
                422, "same_key", f"an object has the key {key[:60]!r} twice; give it once", where=Where(field=key[:200])
            )
        seen.add(key)


def _check_scores(scores: Floats, queries: Sequence[Query], offsets: np.ndarray) -> None:
    if np.isfinite(scores).all():
        return
    row = int(np.argmin(np.isfinite(scores)))
    number = int(np.searchsorted(offsets, row, side="right")) - 1
    fault = "has no score that is a finite number, because of features far outside of what the model was trained on"
    raise refusal(number, queries[number], row - int(offsets[number]), "no_score", fault)


def _answer(
    query: Query, order: list[int], scores: Floats, reasons: Mapping[int, Any], *, query_id: str | None
) -> dict[str, Any]:
    """The candidates of a query in their order, with the reasons that there are."""
    named: dict[str, Any] = {} if query.id is None else {"id": query.id}
    if query_id is not None:
        named["query_id"] = query_id
    ranking: list[dict[str, Any]] = [
        {"index": index, "score": score}
        if (name := query.candidates[index].id) is None
        else {"index": index, "id": name, "score": score}
        for index, score in zip(order, scores[order].tolist(), strict=True)
    ]
    for each in ranking if reasons else ():
        if each["index"] in reasons:
            each["explanation"] = reasons[each["index"]]
    return {**named, "ranking": ranking}
