"""The quality that a ranker loses by being exported as something simpler."""

from __future__ import annotations

from dataclasses import dataclass

from ultr.data.judged import JudgedLists
from ultr.evaluation.judged import RankerLike, evaluate
from ultr.metrics import PairedTest

MEASURE = "nDCG@10"


@dataclass(frozen=True)
class Cost:
    """nDCG@10 of a ranker and of what was made of it, on the same queries."""

    queries: int
    model: float
    exported: float
    change: PairedTest


def cost_of(model: RankerLike, exported: RankerLike, lists: JudgedLists) -> Cost | None:
    """The cost on the lists that have a relevant candidate; None if there is none."""
    lists = lists.with_relevant()
    if not lists.queries:
        return None
    before, after = (evaluate(each, lists, [MEASURE]) for each in (model, exported))
    return Cost(lists.queries, before.mean(MEASURE), after.mean(MEASURE), after.against(before, MEASURE))
