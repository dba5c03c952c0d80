"""The smallest exploration that would identify the bias of a log: which positions to exchange, and how often.

A link between two positions is missing, or rests on too few clicks. If documents of a pair of positions (j, k) on both
sides of it change places on a share q of the pages, N pages have about q N (rate_j + rate_k) clicks on exchanged
documents. For all pairs to have enough after the same number of pages, q is shared out in proportion to the pages that
a pair would need alone; all together are exchanged on `SHARE` of the pages.
"""

from __future__ import annotations

import math

import numpy as np

from ultr.arrays import Integers, Mask
from ultr.bias.identifiability import BiasGraph
from ultr.counted import counted
from ultr.data.exploration_plan import MOST_PAIRS, SMALLEST_SHARE, ExplorationPlan, PlannedPair
from ultr.diagnosis.linkage import FEW_CLICKS_ON_A_LINK, Linkage
from ultr.diagnosis.supported_dimension import side_of

SHARE = 0.05
"""Share of the pages on which a pair is exchanged, all pairs together."""
_DIGITS = 6


def exploration_plan(linkage: Linkage, *, pages: int, wanted: int = 1) -> ExplorationPlan:
    """The pairs of positions that would link all, each by enough clicks; none where that is so already.

    `pages` is the number of pages of the log; `wanted` is the dimension of bias that its clicks ask for.
    """
    graph = linkage.position
    if len(graph.names) == 1:
        return ExplorationPlan(note="the log has one position only, so that there are no two to exchange")
    asked: dict[tuple[int, int], tuple[int, str]] = {}
    for first, second in graph.swaps():
        asked[first, second] = FEW_CLICKS_ON_A_LINK, "no clicked document links the positions above with those below"
    for link in graph.backbone:
        if link.clicks < FEW_CLICKS_ON_A_LINK:
            pair = _nearest_across(graph, side_of(graph, link), int(graph.parts[link.first]))
            why = f"the link between the two sides rests on {counted(link.clicks, 'click')}"
            missing = FEW_CLICKS_ON_A_LINK - link.clicks
            asked[pair] = max((missing, why), asked.get(pair, (0, "")))
    asked = dict(sorted(asked.items())[:MOST_PAIRS])
    # Pages that each pair would need if it were exchanged on every page.
    alone = {pair: missing / _clicks_a_page(graph, pair, pages) for pair, (missing, _) in asked.items()}
    total = sum(alone.values())
    positions = graph.levels[:, 0] + 1
    planned = [
        PlannedPair(
            first=int(positions[pair[0]]),
            second=int(positions[pair[1]]),
            probability=max(float(f"{SHARE * alone[pair] / total:.{_DIGITS}g}"), SMALLEST_SHARE),
            pages=math.ceil(total / SHARE),
            why=why,
        )
        for pair, (_, why) in asked.items()
    ]
    return ExplorationPlan(
        pairs=tuple(planned),
        most_ranks_lost=max((pair.ranks for pair in planned), default=0),
        note=_note(linkage, wanted),
    )


def in_words(plan: ExplorationPlan) -> str:
    """The plan as a sentence or two."""
    note = f" {plan.note[0].upper()}{plan.note[1:]}." if plan.note else ""
    if not plan.pairs:
        return f"Nothing needs to be explored to tell one number for each position from relevance.{note}"
    pairs = ", ".join(f"{pair.first} and {pair.second} ({pair.probability:.2%})" for pair in plan.pairs)
    return (
        f"Exchange positions {pairs} of the pages, at most one pair on a page and no document by more than "
        f"{plan.most_ranks_lost} rank{'' if plan.most_ranks_lost == 1 else 's'}; after about {plan.pages:,} pages each "
        f"link rests on {FEW_CLICKS_ON_A_LINK} clicks.{note}"
    )


def _nearest_across(graph: BiasGraph, side: Mask, part: int) -> tuple[int, int]:
    """The positions of a part on either side of a cut that are the nearest and, of these, have the most clicks."""
    ends = [np.flatnonzero((graph.parts == part) & where) for where in (side, ~side)]
    pairs: Integers = np.stack([each.ravel() for each in np.meshgrid(*ends)], axis=1)
    ranks = np.abs(np.diff(graph.levels[pairs, 0], axis=1)[:, 0])
    clicks = (graph.impressions * graph.click_rates)[pairs].min(axis=1)
    first, second = pairs[np.lexsort((-clicks, ranks))[0]].tolist()
    return min(first, second), max(first, second)


def _clicks_a_page(graph: BiasGraph, pair: tuple[int, int], pages: int) -> float:
    """Clicks at both positions on a page of the log, if they are as frequent as where both are shown."""
    ends = list(pair)
    clicks = graph.impressions[ends] * graph.click_rates[ends]
    # Half a click more, so that a position without one is not given up.
    rates = (clicks + 0.5) / (graph.impressions[ends] + 1)
    return float(rates.sum() * graph.impressions[ends].min() / max(pages, 1))


def _note(linkage: Linkage, wanted: int) -> str:
    """A sentence on the questions that exchanges of positions leave open."""
    if linkage.together is not None and linkage.position.connected and not linkage.together.connected:
        return "positions are exchanged within the values of other bias factors, which it does not link with each other"
    if wanted > max(linkage.supported.dimension, 1):
        return (
            f"the clicks ask for dimension {wanted}, for which documents must be seen at more positions than two, as "
            "the doctor says; the plan serves one number for each position"
        )
    return ""
