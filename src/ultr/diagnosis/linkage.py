"""Whether the values of the bias factors are linked by documents, so that their bias can be told from relevance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ultr.bias.identifiability import BiasGraph, Link, bias_graph
from ultr.bias.identities import same_features
from ultr.data.click_log import ClickLog
from ultr.diagnosis.finding import Finding, Verdict, sentences
from ultr.pages import Table

FEW_CLICKS_ON_A_LINK = 100
"""A ratio of two biases that rests on fewer clicks is known to a fifth at best."""
NEXT_TO_NONE = 10
"""With fewer clicks on a link, no ratio can be told from it."""
MOST_ROWS = 12
"""So many links are shown, the weakest ones."""


@dataclass(frozen=True)
class Linkage:
    """The graphs of positions alone, and of all bias factors together if there are several; links have clicks."""

    position: BiasGraph
    together: BiasGraph | None
    features: bool
    """Whether the log has features; then documents with the same ones count as one, as a model sees them."""

    @classmethod
    def of(cls, log: ClickLog) -> Linkage:
        """The links of a log."""
        features = log.features.shape[1] > 0
        identities = same_features(log.features) if features else None
        names = [factor.name for factor in log.factors if factor.values.min() < factor.values.max()]
        graph = bias_graph(log, identities=identities).with_clicks()
        together = bias_graph(log, factors=names, identities=identities).with_clicks() if len(names) > 1 else None
        return cls(graph, together, features)

    @property
    def whole(self) -> BiasGraph:
        """The graph that a model with all bias factors needs to be connected."""
        return self.position if self.together is None else self.together

    @property
    def weakest(self) -> Link | None:
        """The link that holds the graph together with the fewest clicks."""
        return min(self.whole.backbone, key=lambda link: link.clicks, default=None)

    def finding(self) -> Finding:
        """Whether the bias can be identified."""
        graph = self.whole
        if len(graph.names) == 1:
            verdict, answer, advice = (
                Verdict.BAD,
                ["only one value was seen, so bias cannot be told from relevance"],
                ["log documents at several positions"],
            )
        elif graph.connected:
            verdict, answer, advice = self._linked()
        else:
            verdict, answer, advice = self._apart()
        return Finding(
            name="identifiability",
            question="Can bias be told from relevance?",
            verdict=verdict,
            answer=sentences(answer),
            advice=sentences(advice),
            numbers=self._numbers(),
            tables=self._tables(),
        )

    @property
    def _values(self) -> str:
        return f"{len(self.whole.names)} {'positions' if self.together is None else 'combinations of bias factors'}"

    def _linked(self) -> tuple[Verdict, list[str], list[str]]:
        graph, weakest = self.whole, self.weakest
        assert weakest is not None, "a connected graph of several values has links"
        answer = (
            f"clicked documents that were seen under several values link all {self._values}; the weakest link that is "
            f"needed, {graph.names[weakest.first]} with {graph.names[weakest.second]}, rests on {weakest.documents:,} "
            f"documents with {weakest.clicks:,} click{'' if weakest.clicks == 1 else 's'}"
        )
        if weakest.clicks >= FEW_CLICKS_ON_A_LINK:
            return Verdict.GOOD, [answer], []
        useless = weakest.clicks < NEXT_TO_NONE and not self.features
        verdict = Verdict.BAD if useless else Verdict.CAREFUL
        return verdict, [answer], ["log more swaps between these two, or merge them"]

    def _apart(self) -> tuple[Verdict, list[str], list[str]]:
        graph = self.whole
        parts = int(graph.parts.max()) + 1
        alone = self.together is not None and self.position.connected
        answer = [
            f"no clicked document was seen under two of the {self._values}"
            if not graph.links
            else f"the {self._values} fall into {parts} parts that no clicked document links; the largest has "
            f"{graph.shares[0]:.0%} of the traffic",
            "by position alone all are linked" if alone else "",
            "so only the model's belief that documents with similar features are alike tells bias from relevance"
            if self.features
            else "so the bias of one part cannot be compared with that of another",
        ]
        merges, swaps = self._pairs(graph.merges(), " with "), self._pairs(graph.swaps(), " and ")
        advice = [
            "leave the other factors out of the model, or do one of the following" if alone else "",
            "show neighbouring documents the other way round, at random, on a small share of the pages"
            if not graph.links
            else f"show some documents, at random, for a while, at both {_listed(swaps)}; or merge {_listed(merges)}",
        ]
        return Verdict.CAREFUL if self.features else Verdict.BAD, answer, advice

    def _pairs(self, pairs: tuple[tuple[int, int], ...], between: str) -> list[str]:
        return [f"{self.whole.names[a]}{between}{self.whole.names[b]}" for a, b in pairs]

    def _numbers(self) -> dict[str, Any]:
        graph = self.whole
        return {
            "values": list(graph.names),
            "parts": graph.parts.tolist(),
            "shares": graph.shares.tolist(),
            "connected": graph.connected,
            "positions_connected": self.position.connected,
            "swaps": self._pairs(graph.swaps(), " and "),
            "merges": self._pairs(graph.merges(), " with "),
            "links": [
                {
                    "first": graph.names[link.first],
                    "second": graph.names[link.second],
                    "documents": link.documents,
                    "strength": link.strength,
                    "clicks": link.clicks,
                    "bridge": link.bridge,
                }
                for link in graph.backbone
            ],
        }

    def _tables(self) -> tuple[Table, ...]:
        graph = self.whole
        tables = []
        if not graph.connected:
            rows = [
                {
                    "part": str(part + 1),
                    "traffic": f"{share:.1%}",
                    "values": _listed([graph.names[value] for value in np.flatnonzero(graph.parts == part)]),
                }
                for part, share in enumerate(graph.shares[:MOST_ROWS])
            ]
            tables.append(Table("parts that nothing links", rows))
        if graph.backbone:
            rows = [
                {
                    "link": f"{graph.names[link.first]} - {graph.names[link.second]}",
                    "documents": f"{link.documents:,}",
                    "effective impressions": f"{link.strength:,.0f}",
                    "clicks": f"{link.clicks:,}",
                    "no way round": "yes" if link.bridge else "",
                }
                for link in graph.backbone[:MOST_ROWS]
            ]
            tables.append(Table("the links that hold it together, weakest first", rows))
        return tuple(tables)


def _listed(names: list[str], *, most: int = 3) -> str:
    return "; ".join(names[:most]) + (f"; and {len(names) - most:,} more" if len(names) > most else "")
