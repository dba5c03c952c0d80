"""The pictures of the home page and the concepts, drawn by the library at every build, so that they cannot grow stale.

A page asks for one with a comment, `<!-- picture: NAME -->`; it takes the colours of the page.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from ultr.arrays import Doubles
from ultr.bias import bias_graph
from ultr.bias.identifiability import BiasGraph
from ultr.clicks import ClickMatrix, PositionBased, TrustBias
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.methods import ClickBaseline, LabelBaseline
from ultr.methods.estimator import Estimator
from ultr.methods.vectorization import Vectorization
from ultr.pages.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Drawing, blank, tip
from ultr.relevance import MLP
from ultr.simulation.log import simulate

GRADES = (GREY, PURPLE, BLUE, GREEN, ORANGE)
PLACES = np.arange(1, 11)


def on_page_content(html: str, **_: Any) -> str:
    """Put the pictures in their places."""
    return re.sub(r"<!-- picture: ([a-z-]+) -->", lambda found: _element(found[1]), html)


@cache
def _element(name: str) -> str:
    return f'<figure class="picture">{PICTURES[name]().svg(name)}</figure>'


def wanted() -> Drawing:
    """How much users want what stands at each rank, by three rankers."""
    data = letor_like(train_queries=1_000, validation_queries=100, test_queries=500)
    log = simulate(data.train, TrustBias(), impressions=1_000_000, svm_share=0.02, rankings=4, noise=0.5)
    network = MLP(hidden=(64, 32), steps=600)
    trained: dict[str, tuple[str, Estimator]] = {
        "trained on labels": (GREEN, LabelBaseline(relevance=network).fit(data.train, validation=data.validation)),
        "on debiased clicks": (BLUE, Vectorization(relevance=network).fit(log)),
        "on raw clicks": (GREY, ClickBaseline(relevance=network).fit(log)),
    }
    long = np.flatnonzero(np.diff(data.test.offsets) >= len(PLACES))
    test = data.test.select(long)
    figure, axes = blank(4.9, 2.9)
    told = []
    for name, (colour, ranker) in trained.items():
        scores = ragged.pad(ranker.score(test.features, test.offsets), test.offsets, fill=-np.inf)
        order = np.argsort(-scores, axis=1, kind="stable")[:, : len(PLACES)]
        grades = np.take_along_axis(ragged.pad(test.labels, test.offsets, fill=0), order, axis=1).mean(axis=0)
        axes.plot(PLACES, grades, "o-", color=colour, markersize=4, linewidth=1.6, label=name)
        for place, grade in zip(PLACES, grades, strict=True):
            tip(axes, place, grade, f"{name}, rank {place}: mean grade {grade:.2f}")
        told.append(f"{name} {grades[0]:.2f} at rank 1 and {grades[-1]:.2f} at rank 10")
    axes.set_xticks(PLACES)
    axes.set_xlabel("rank")
    axes.set_ylabel("mean grade, 0 to 4")
    axes.set_title("how much people want what stands there", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    return Drawing(
        figure, f"Mean grade of the document at each rank, on queries that nobody learned from: {'; '.join(told)}."
    )


def examination() -> Drawing:
    """Click rates under the examination hypothesis, and the same over those of the first position."""
    rates = PositionBased().rates(4)
    figure, (left, right) = blank(9.0, 3.2, columns=2, width_ratios=(1, 1))
    _curves(left, rates)
    left.set_ylabel("click rate")
    left.set_title("click rate = examination x relevance", loc="left", fontsize=10)
    left.legend(frameon=False, fontsize=8, title="grade", title_fontsize=8)
    _curves(right, rates / rates[:, :1])
    right.set_ylabel("over the rate at position 1")
    right.set_title("one curve for every grade", loc="left", fontsize=10)
    told = " ".join(f"{value:.2f}" for value in rates[-1])
    return Drawing(
        figure,
        f"Left: click rates of five grades at ten positions; the highest grade has {told}. "
        "Right: divided by the rate at position 1, all five are the same curve.",
    )


def departures() -> Drawing:
    """Click rates over those of the first position where the hypothesis does not hold."""
    figure, (left, right) = blank(9.0, 3.2, columns=2, width_ratios=(1, 1))
    for axes, model, title in ((left, TrustBias(), "trust bias"), (right, ClickMatrix(), "measured on TianGong-ST")):
        rates = model.rates(4)
        _curves(axes, rates / rates[:, :1])
        axes.set_title(title, loc="left", fontsize=10)
    left.set_ylabel("over the rate at position 1")
    left.legend(frameon=False, fontsize=8, title="grade", title_fontsize=8)
    return Drawing(
        figure,
        "Click rates of five grades over their rate at position 1. Under trust bias low grades fall faster than "
        "high ones; in the measured rates the curves cross.",
    )


def click_matrix() -> Drawing:
    """The measured click rates by grade and position."""
    rates = ClickMatrix().rates(4)
    figure, axes = blank(8.0, 2.8)
    axes.imshow(rates, aspect="auto", cmap="Blues", vmin=0)
    for (grade, place), rate in np.ndenumerate(rates):
        text = (f"{rate:.2f}" if rate >= 0.095 else f"{rate:.3f}").removeprefix("0")
        colour = "white" if rate > 0.55 * rates.max() else "#1f2328"
        axes.annotate(text, (place, grade), ha="center", va="center", fontsize=8, color=colour)
    axes.set_xticks(range(10), PLACES)
    axes.set_yticks(range(5))
    axes.set_xlabel("position")
    axes.set_ylabel("grade")
    return Drawing(
        figure,
        "Click rates of TianGong-ST by grade and position: at position 1 from .50 (grade 1) to .74 (grade 4), "
        "at position 10 from .002 to .015.",
    )


def singular_values() -> Drawing:
    """The singular values of three click matrices, over the first."""
    models = {"position-based": PositionBased(), "trust bias": TrustBias(), "TianGong-ST": ClickMatrix()}
    figure, axes = blank(7.2, 3.0)
    told = []
    for number, (name, model) in enumerate(models.items()):
        values = np.linalg.svd(model.rates(4), compute_uv=False)
        values = values / values[0]
        places = np.arange(1, 6) + 0.27 * (number - 1)
        axes.bar(places, values, width=0.25, color=(GREY, BLUE, ORANGE)[number], label=name)
        for place, value in zip(places, values, strict=True):
            text = "0" if value < 5e-4 else f"{value:.3f}".removeprefix("0") if value < 1 else "1"
            axes.annotate(text, (place, value), (0, 2), textcoords="offset points", ha="center", fontsize=7)
        told.append(f"{name} {' '.join(f'{value:.3f}' for value in values)}")
    axes.set_xticks(range(1, 6), ["first", "second", "third", "fourth", "fifth"])
    axes.set_ylabel("singular value over the first")
    axes.legend(frameon=False, fontsize=9)
    return Drawing(figure, f"Singular values over the first: {'; '.join(told)}.")


def base_vector() -> Drawing:
    """What a model with two dimensions learned from trust-bias clicks: documents, positions and base vectors."""
    ranker, relevance, labels, base = _learned()
    positions = ranker.observation_embeddings()["position"].astype(np.float64)
    figure, (left, right) = blank(9.4, 4.2, columns=2, width_ratios=(1, 1))
    shown = np.random.default_rng(0).permutation(len(relevance))[:900]
    for grade in range(5):
        these = relevance[shown][labels[shown] == grade]
        left.plot(*these.T, ".", color=GRADES[grade], markersize=4, alpha=0.7, label=str(grade))
    # Only differences between documents of a list count, so the directions start in the middle of the documents.
    centre = relevance.mean(axis=0)
    reach = float(np.quantile(np.linalg.norm(relevance - centre, axis=1), 0.97))
    for name, vector, colour in (
        ("position 1", positions[0], RED),
        ("position 10", positions[-1], PURPLE),
        ("base vector", base.mean(axis=0), "black"),
    ):
        end = centre + vector / np.linalg.norm(vector) * reach
        left.annotate("", end, centre, arrowprops={"arrowstyle": "->", "linewidth": 2, "color": colour})
        left.annotate(name, end, (3, 3), textcoords="offset points", fontsize=8, color=colour)
    left.set_xlabel("first dimension")
    left.set_ylabel("second dimension")
    left.set_title("documents by grade, and directions", loc="left", fontsize=10)
    left.legend(frameon=False, fontsize=7, loc="lower left", title="grade", title_fontsize=7)
    left.set_aspect("equal", adjustable="datalim")
    left.margins(0.15)

    right.plot(*positions.T, "-", color=GREY, linewidth=1)
    right.plot(*positions.T, "o", color=BLUE, markersize=5, label="observation of each position")
    for place, point in zip(PLACES, positions, strict=True):
        right.annotate(str(place), point, (5, 3), textcoords="offset points", fontsize=8)
    right.plot(*base.T, ".", color=ORANGE, markersize=4, alpha=0.6, label="base vector of each query")
    right.set_xlabel("first dimension")
    right.set_title("base vectors lie among the positions", loc="left", fontsize=10)
    right.legend(frameon=False, fontsize=8)
    right.margins(0.1)
    return Drawing(
        figure,
        "A model with two dimensions, trained on simulated clicks with trust bias. Left: relevance vectors of "
        "documents, higher grades further along the base vector. Right: the observation vectors of ten positions on "
        "a curve, and the base vectors of the queries in a small cloud among them.",
    )


def graphs() -> Drawing:
    """Which positions are linked by documents, in a log that says enough and in one that does not."""
    linked = _log([[0, 1, 2, 3, 4, 5], [1, 0, 2, 3, 5, 4], [0, 2, 1, 4, 3, 5], [0, 1, 3, 2, 4, 5]])
    apart = _log([[0, 1, 2, 3, 4, 5], [1, 2, 0, 3, 5, 4], [2, 0, 1, 4, 3, 5]])
    figure, (left, right) = blank(9.0, 1.9, columns=2, width_ratios=(1, 1))
    for axes, log, title in ((left, linked, "connected"), (right, apart, "two parts")):
        _graph(axes, bias_graph(log))
        axes.set_title(title, loc="left", fontsize=10)
    return Drawing(
        figure,
        "Six positions as dots; an edge joins two at which the same document was seen. Left: swaps of neighbours "
        "join all six. Right: documents moved among positions 1 to 3 and among 4 to 6, but never between.",
    )


def scales() -> Drawing:
    """Two different truths with the same click rates."""
    relevance, bias = np.array([0.9, 0.75, 0.6, 0.5, 0.45, 0.3]), np.array([1, 0.8, 0.65, 0.5, 0.4, 0.35])
    factor = np.array([1, 1, 1, 1.9, 1.9, 1.9])
    figure, (left, right) = blank(9.0, 3.0, columns=2, width_ratios=(1, 1))
    places = np.arange(1, 7)
    for axes, first, second, title in (
        (left, bias, bias / factor, "position bias"),
        (right, relevance, relevance * factor, "relevance of the document at that position"),
    ):
        axes.plot(places, first, "o-", color=BLUE, label="one truth")
        axes.plot(places, second, "s--", color=ORANGE, label="another")
        axes.set_ylim(0, 1.05)
        axes.set_xlabel("position")
        axes.set_title(title, loc="left", fontsize=10)
    left.legend(frameon=False, fontsize=9)
    return Drawing(
        figure,
        "Left: two curves of position bias that agree at positions 1 to 3 and differ by a factor of 1.9 below. Right: "
        "two sets of relevance that differ by the same factor the other way. Their products, the click rates, are "
        "the same, but the order of the documents is not.",
    )


def _curves(axes: Any, rates: Doubles) -> None:
    for grade, (values, colour) in enumerate(zip(rates, GRADES, strict=True)):
        axes.plot(PLACES, values, "o-", color=colour, markersize=3, linewidth=1.3, label=str(grade))
    axes.set_xticks(PLACES)
    axes.set_xlabel("position")
    axes.set_ylim(bottom=0)


def _learned() -> tuple[Vectorization, Doubles, Doubles, Doubles]:
    """A small model with two dimensions, and relevance vectors, labels and base vectors of test queries."""
    data = letor_like(train_queries=600, validation_queries=50, test_queries=100)
    log = simulate(data.train, TrustBias(), impressions=600_000, svm_share=0.05, rankings=4, noise=0.5)
    ranker = Vectorization(dimension=2, relevance=MLP(hidden=(64, 32), steps=400)).fit(log, validation=data.validation)
    relevance = ranker.relevance_embeddings(data.test.features).astype(np.float64)
    base = ranker.base_vectors(data.test.features, data.test.offsets).astype(np.float64)
    return ranker, relevance, data.test.labels.astype(np.float64), base


def _log(rankings: list[list[int]]) -> ClickLog:
    """A log of one query with these rankings of the same documents."""
    documents = np.array(rankings)
    lists, width = documents.shape
    return ClickLog.of(
        features=np.eye(width),
        documents=documents.ravel(),
        offsets=np.arange(0, documents.size + 1, width),
        impressions=np.full(lists, 100),
        clicks=np.full(documents.size, 20),
        queries=["a"] * lists,
    )


def _graph(axes: Any, graph: BiasGraph) -> None:
    """Positions on a line, links as arcs, a colour for each part."""
    for link in graph.links:
        middle, reach = (link.first + link.second) / 2, (link.second - link.first) / 2
        turn = np.linspace(0, np.pi, 40)
        height = 0.0 if reach <= 0.5 else 0.7 * reach
        axes.plot(middle + reach * np.cos(turn), height * np.sin(turn), "-", color=GREY, linewidth=1.6, zorder=1)
    for value, part in enumerate(graph.parts):
        axes.plot(value, 0, "o", color=(BLUE, ORANGE)[part], markersize=22, zorder=2)
        axes.annotate(str(value + 1), (value, 0), ha="center", va="center", fontsize=10, color="white")
    axes.set_xlim(-0.6, len(graph.names) - 0.4)
    axes.set_ylim(-0.35, 0.9)
    axes.axis("off")


PICTURES = {
    "wanted": wanted,
    "examination": examination,
    "departures": departures,
    "click-matrix": click_matrix,
    "singular-values": singular_values,
    "base-vector": base_vector,
    "graphs": graphs,
    "scales": scales,
}
