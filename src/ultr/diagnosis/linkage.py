"""The links between values of the bias factors by documents, without which bias cannot be told from relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ultr.bias.identifiability import BiasGraph, Link, bias_graph
from ultr.bias.identities import same_features
from ultr.bias.rigidity import LARGEST
from ultr.bias.value_sets import value_sets
from ultr.counted import counted
from ultr.data.click_log import ClickLog
from ultr.diagnosis.supported_dimension import SupportedDimension
from ultr.pages import Drawing, Section, Table, Verdict, figures, sentences

FEW_CLICKS_ON_A_LINK = 100
"""A ratio of two biases that rests on fewer clicks is known to a fifth at best."""
NEXT_TO_NONE = 10
"""With fewer clicks on a link, no ratio can be told from it."""
TAIL = 0.01
"""Places below all others with less of the traffic are better left out than linked."""
MOST_ROWS = 12
"""So many links are shown, those with the fewest clicks."""


@dataclass(frozen=True)
class Linkage:
    """The graphs of positions alone, and of all bias factors together if there are several; links have clicks."""

    position: BiasGraph
    together: BiasGraph | None
    supported: SupportedDimension
    """The dimension that the links of the latter support."""
    features: bool
    """True if the log has features; then documents with the same ones count as one, as a model sees them."""
    alike: tuple[int, int] | None = None
    """Documents and their different sets of features, if only documents with the same ones link the values."""

    @classmethod
    def of(cls, log: ClickLog) -> Linkage:
        """The links of a log."""
        features = log.features.shape[1] > 0
        identities = same_features(log.features) if features else None
        names = [factor.name for factor in log.factors if factor.values.min() < factor.values.max()]
        graph = bias_graph(log, identities=identities).with_clicks()
        together = bias_graph(log, factors=names, identities=identities).with_clicks() if len(names) > 1 else None
        whole, factors = (graph, ["position"]) if together is None else (together, names)
        sets = value_sets(log, factors=factors, identities=identities)
        alike = None
        if identities is not None and whole.connected:
            count, different = len(identities), int((identities == np.arange(len(identities))).sum())
            if different < count and not bias_graph(log, factors=factors).with_clicks().connected:
                alike = count, different
        return cls(graph, together, SupportedDimension.of(whole, sets), features, alike)

    @property
    def whole(self) -> BiasGraph:
        """The graph that a model with all bias factors needs to be connected."""
        return self.position if self.together is None else self.together

    @property
    def weakest(self) -> Link | None:
        """The link that holds the graph together with the fewest clicks."""
        return next(iter(self._needed), None)

    @property
    def _needed(self) -> list[Link]:
        """The links that hold the graph together, those with the fewest clicks first."""
        return sorted(self.whole.backbone, key=lambda link: link.clicks)

    def section(self, wanted: int = 1) -> Section:
        """The answer on whether bias of a dimension, the rank of click rates, can be identified."""
        graph = self.whole
        if len(graph.names) == 1:
            verdict, answer, advice = (
                Verdict.BAD,
                ["only one value was seen, so bias cannot be told from relevance"],
                ["log documents at several positions"],
            )
        elif graph.connected:
            verdict, answer, advice = self._linked(wanted)
        else:
            verdict, answer, advice = self._apart()
        return Section(
            name="identifiability",
            title="Can bias be told from relevance?",
            verdict=verdict,
            answer=sentences(answer),
            advice=sentences(advice),
            numbers=self._numbers(wanted),
            tables=self._tables(),
            figures={"links by documents that were seen under both values": self._drawing},
        )

    @property
    def _values(self) -> str:
        return f"{len(self.whole.names)} {'positions' if self.together is None else 'combinations of bias factors'}"

    def _linked(self, wanted: int) -> tuple[Verdict, list[str], list[str]]:
        weakest = self.weakest
        assert weakest is not None, "a connected graph of several values has links"
        clicks = weakest.clicks
        placed = (
            "" if all(link.documents for link in self.whole.backbone) else ", or that exploration placed by chance,"
        )
        rests_on = counted(weakest.documents, "document") if weakest.documents else "placements by exploration"
        answer = [
            f"clicked documents that were seen under several values{placed} link all {self._values}; the weakest link "
            f"that is needed, {self._ends(weakest)}, rests on {rests_on} with {counted(clicks, 'click')}",
            self._supported(wanted),
            ""
            if self.alike is None
            else f"but that is so only because documents with the same features count as one, {self.alike[0]:,} "
            f"documents as {self.alike[1]:,}: if they are not equally relevant, bias is told wrong",
        ]
        if wanted > self.supported.dimension:
            verdict, more, advice = self._too_thin(wanted)
            return verdict, [*answer, *more], advice
        remedy = f"log more swaps between {self._ends(weakest, ' and ')}, or merge them"
        if wanted > 1:
            found = {cut: self.supported.crossing(cut, wanted) for cut in self.supported.cuts}
            cut = min(found, key=lambda cut: found[cut][1])
            documents, telling = found[cut]
            answer.append(
                f"the clicks ask for dimension {wanted}, the rank of their rates; for that the thinnest link, "
                f"{self._ends(cut.link)}, rests on {counted(documents, 'document')} with {counted(telling, 'click')}"
            )
            if telling < clicks:
                clicks = telling
                remedy = f"show more documents, at random, {self._window(self.supported.around(cut, wanted))}"
        if self.alike is not None:
            return Verdict.CAREFUL, answer, ["add features that tell documents apart, or show some at other positions"]
        if clicks >= FEW_CLICKS_ON_A_LINK:
            return Verdict.GOOD, answer, []
        useless = clicks < NEXT_TO_NONE and not self.features
        return Verdict.BAD if useless else Verdict.CAREFUL, answer, [remedy]

    def _supported(self, wanted: int) -> str:
        """The dimension that is identified, and what limits it unless less is wanted."""
        found = self.supported
        identify = (
            f"they identify one number for each {'position' if self.together is None else 'combination'}"
            if found.dimension == 1
            else f"they identify bias vectors up to dimension {found.dimension}"
        )
        if not found.exact:
            return f"{identify} at least"
        if found.dimension == len(self.whole.names) - 1:
            return f"{identify}, the most that {self._values} can"
        if found.dimension > wanted:
            return identify
        more, cut = found.dimension + 1, found.thinnest
        limited = f"{identify}, but no vectors of dimension {more}"
        if cut is None:
            return f"{limited}: too few documents were seen under more than {more} values"
        documents, _ = found.crossing(cut, more)
        there = f"{'are' if documents != 1 else 'is'} {documents or 'none'}"
        return (
            f"{limited}: these take {more} documents or more across every link, each seen under more than {more} "
            f"values, and across {self._ends(cut.link)} there {there}"
            + (", seen under too few values on one side" if documents >= more else "")
        )

    def _too_thin(self, wanted: int) -> tuple[Verdict, list[str], list[str]]:
        """The answer where the clicks ask for a larger dimension than is identified."""
        found = self.supported
        answer = [
            f"but the clicks ask for dimension {wanted}, the rank of their rates: different biases, with different "
            "orders of the documents, give the same click rates",
            "only the model's belief that documents with similar features are alike tells them apart"
            if self.features
            else "",
        ]
        windows = [self._window(window) for window in found.windows(wanted)]
        advice = [
            f"show some documents, {wanted} at least, at random, for a while, {_listed(windows)}"
            if windows
            else f"log documents under more than {wanted} values",
            "or train Affine, whose trust bias these links identify" if wanted == 2 and found.affine else "",
        ]
        return Verdict.CAREFUL if self.features else Verdict.BAD, answer, advice

    def _ends(self, link: Link, between: str = " with ") -> str:
        return self._pairs([(link.first, link.second)], between)[0]

    def _window(self, values: tuple[int, ...]) -> str:
        names = [self.whole.names[value] for value in values]
        if len(names) == len(self.whole.names):
            return f"under all {self._values}"
        return f"under each of {(', ' if self.together is None else ' / ').join(names)}"

    def _apart(self) -> tuple[Verdict, list[str], list[str]]:
        graph = self.whole
        parts, tail = int(graph.parts.max()) + 1, self._tail
        traffic, without = f"the largest has {graph.shares[0]:.0%} of the traffic", ""
        if tail is not None:
            last, below = tail
            traffic = f"all but the largest lie below position {last}, which {below:.2%} of the traffic does"
            without = (
                f"leave out what was shown below position {last}: ultr prepare "
                f"\"sql:SELECT * FROM 'FILE' WHERE position <= {last}\" --overwrite, with the options of before"
            )
        alone = self.together is not None and self.position.connected
        answer = [
            f"no clicked document was seen under two of the {self._values}"
            if not graph.links
            else f"the {self._values} fall into {parts} parts that no clicked document links; {traffic}",
            "by position alone all are linked" if alone else "",
            "so only the model's belief that documents with similar features are alike tells bias from relevance"
            if self.features
            else "so the bias of one part cannot be compared with that of another",
        ]
        merges, swaps = self._pairs(graph.merges(), " with "), self._pairs(graph.swaps(), " and ")
        advice = [
            without,
            "leave the other factors out of the model, or do one of the following" if alone else "",
            "show neighbouring documents the other way round, at random, on a small share of the pages"
            if not graph.links
            else f"show some documents, at random, for a while, at both {_listed(swaps)}; or merge {_listed(merges)}",
        ]
        return Verdict.CAREFUL if self.features else Verdict.BAD, answer, advice

    @property
    def _tail(self) -> tuple[int, float] | None:
        """The place below which all lies that is not in the largest part, and the traffic there, if that is little.

        What hangs on next to no clicks there lies below it, too.
        """
        graph = self.whole
        if not all(name.startswith("position ") for name in graph.names):
            return None
        places = graph.levels[:, 0]
        first = places[graph.parts > 0].min()
        weak = [max(places[[link.first, link.second]]) for link in graph.backbone if link.clicks < NEXT_TO_NONE]
        for last in sorted({first, *weak}):
            below = float(graph.impressions[places >= last].sum() / graph.impressions.sum())
            if 0 < last <= first and below <= TAIL:
                return int(last), below
        return None

    def _pairs(self, pairs: Sequence[tuple[int, int]], between: str) -> list[str]:
        return [f"{self.whole.names[a]}{between}{self.whole.names[b]}" for a, b in pairs]

    def _numbers(self, wanted: int) -> dict[str, Any]:
        graph, found = self.whole, self.supported
        thin = 0 < found.dimension < wanted
        return {
            "dimension": found.dimension,
            "dimension_is_exact": found.exact,
            "wanted_dimension": wanted,
            "affine": found.affine,
            "windows": [[graph.names[value] for value in window] for window in found.windows(wanted)] if thin else [],
            "values": list(graph.names),
            "parts": graph.parts.tolist(),
            "shares": graph.shares.tolist(),
            "connected": graph.connected,
            "positions_connected": self.position.connected,
            "swaps": self._pairs(graph.swaps(), " and "),
            "merges": self._pairs(graph.merges(), " with "),
            "links": [
                {
                    **vars(link),
                    "first": graph.names[link.first],
                    "second": graph.names[link.second],
                    "dimension": self._limits.get(link),
                }
                for link in self._needed
            ],
        }

    def _drawing(self) -> Drawing | None:
        graph = self.whole
        strength = np.zeros((len(graph.names), len(graph.names)))
        for link in graph.links:
            strength[link.first, link.second] = strength[link.second, link.first] = link.strength
        names = [name.removeprefix("position ") for name in graph.names]
        return figures.links(names, strength, parts=int(graph.parts.max()) + 1)

    @property
    def _limits(self) -> dict[Link, int]:
        return {cut.link: cut.dimension for cut in self.supported.cuts}

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
                    "link": self._ends(link, " - "),
                    "documents": f"{link.documents:,}",
                    "effective impressions": f"{link.strength:,.0f}",
                    "clicks": f"{link.clicks:,}",
                    "bridge": "yes" if link.bridge else "",
                    "supports dimension": _limit(self._limits.get(link)),
                }
                for link in self._needed[:MOST_ROWS]
            ]
            tables.append(Table("the links that hold it together, fewest clicks first", rows, folded=True))
        return tuple(tables)


def _listed(names: list[str], *, most: int = 3) -> str:
    return "; ".join(names[:most]) + (f"; and {len(names) - most:,} more" if len(names) > most else "")


def _limit(dimension: int | None) -> str:
    return "" if dimension is None else f"{dimension}+" if dimension == LARGEST else str(dimension)
