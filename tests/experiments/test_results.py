"""Means, deviations and gaps against figures worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.datasets.source import Source
from ultr.experiments import tables
from ultr.experiments.results import Line, Results
from ultr.experiments.run import Run
from ultr.experiments.spec import Contender, Simulation, read_spec
from ultr.experiments.store import Outcome
from ultr.pages import Table

NAN = float("nan")


def _line(method: str, label: str, values: dict[tuple[int, int], list[float]], **options: object) -> Line:
    """A line with one measure, from the values of each query by seed and fold."""
    contender = Contender(method=method, label=label, options=options)
    outcomes = []
    for (seed, fold), each in values.items():
        run = Run(Source("letor-like", fold=fold), "trust", Simulation(), contender, "labels", ("nDCG@10",), seed)
        outcomes.append(Outcome(run, np.array([each]), 2.0 + seed, Path()))
    return Line(contender, tuple(outcomes))


@pytest.fixture
def results() -> Results:
    def shifted(by: float) -> dict[tuple[int, int], list[float]]:
        return {
            (0, 1): [0.1 + by, 0.2 + by, NAN],
            (0, 2): [0.3 + by],
            (1, 1): [0.2 + by, 0.3 + by, NAN],
            (1, 2): [0.7 + by],
        }

    lines = (
        _line("label", "Labeled", shifted(0.2)),
        _line("click", "Click", shifted(0.0)),
        _line("dla", "DLA", shifted(0.05)),
        _line("vectorization", "Vectorization", shifted(0.1)),
    )
    return Results("trust", "labels", ("nDCG@10",), lines)


def test_a_seed_is_the_mean_over_the_queries_of_all_folds(results: Results) -> None:
    click = results.lines[1]
    np.testing.assert_allclose(click.by_seed(0), [0.2, 0.4])
    assert click.mean(0) == pytest.approx(0.3)
    assert click.deviation(0) == pytest.approx(np.sqrt(0.02))
    assert click.seconds == pytest.approx(2.5)


def test_queries_are_averaged_over_seeds_and_joined_over_folds(results: Results) -> None:
    values: Doubles = results.lines[1].per_query(0)
    np.testing.assert_allclose(values, [0.15, 0.25, NAN, 0.5])


def test_gap_closed_lies_between_click_and_labeled(results: Results) -> None:
    found = [results.gap_closed(line) for line in results.lines]
    assert found == [{"mlp": 1.0}, {"mlp": 0.0}, {"mlp": 0.25}, {"mlp": 0.5}]


def test_each_kind_of_relevance_model_has_a_gap_of_its_own(results: Results) -> None:
    # Raw clicks .3 and labels .5 with a network; .25 and .65 with trees.
    trees = (
        _line("label", "Labeled, trees", {(0, 1): [0.65, 0.65, NAN, 0.65]}, relevance="trees"),
        _line("click", "Click, trees", {(0, 1): [0.25, 0.25, NAN, 0.25]}, relevance="trees"),
    )
    both = Results("trust", "labels", ("nDCG@10",), (*results.lines, *trees))
    assert both.gap_closed(results.lines[3]) == {"mlp": 0.5, "trees": 0.375}
    assert both.gap_closed(trees[0]) == {"mlp": 1.75, "trees": 1.0}
    row = tables.rows(both)[3]
    assert (row["gap closed, mlp"], row["gap closed, trees"]) == ("50%", "38%")
    assert "gap closed" not in row
    # A kind without labels of its own has no gap, and the other one needs no name.
    half = Results("trust", "labels", ("nDCG@10",), (*results.lines, trees[1]))
    assert half.gap_closed(trees[1]) == {"mlp": -0.25}
    assert tables.rows(half)[3]["gap closed"] == "50%"


def test_the_best_baseline_is_neither_ours_nor_knows_labels(results: Results) -> None:
    best = results.best_baseline
    assert best is not None
    assert best.label == "DLA"
    assert set(results.against_best) == {"Labeled", "Click", "Vectorization"}
    test = results.against_best["Vectorization"]
    assert test.difference == pytest.approx(0.05)
    # Three queries with the same sign: two of eight sign patterns are as extreme.
    assert test.p_value == pytest.approx(0.25, abs=0.02)


def test_of_a_measure_that_should_be_low_the_lowest_is_best(results: Results) -> None:
    by_rank = Results("trust", "labels", ("ARP",), results.lines)
    best = by_rank.best_baseline
    assert best is not None
    assert best.label == "Click"
    assert tables.best(by_rank) == {"ARP": "Click"}


def test_a_gap_needs_one_click_and_one_labeled(results: Results) -> None:
    twice = Results("trust", "labels", ("nDCG@10",), (*results.lines, replace(results.lines[1])))
    assert twice.gap_closed(results.lines[3]) == {}
    assert "gap closed" not in tables.rows(twice)[0]


def test_one_seed_has_no_deviation(results: Results) -> None:
    line = _line("click", "Click", {(0, 1): [0.5]})
    assert np.isnan(line.deviation(0))
    assert tables.rows(Results("trust", "labels", ("nDCG@10",), (line,)))[0]["nDCG@10"] == ".500"


def test_a_row_shows_the_other_choice_of_weights_and_the_paper(results: Results) -> None:
    other = Results("trust", "clicks", ("nDCG@10",), results.lines[:2])
    rows = tables.rows(results, beside=other, published={"yahoo": {"Click": ((0.718, 0.003),)}})
    assert rows[1] == {
        "ranker": "Click",
        "nDCG@10": ".300 ± .141",
        "gap closed": "0%",
        "to best baseline": rows[1]["to best baseline"],
        "by held-out clicks": ".300 ± .141",
        "paper, Yahoo!": ".718 ± .003",
        "seconds": "2",
    }
    assert rows[1]["to best baseline"].startswith("-.050 p=")
    assert rows[2]["to best baseline"] == "best baseline"
    assert rows[3]["by held-out clicks"] == ""


def test_the_best_ranker_from_clicks_is_bold_in_latex(results: Results) -> None:
    text = Table("c", tables.rows(results), bold=tables.best(results)).as_latex()
    assert text.count(r"\textbf") == 1
    assert r"Vectorization & \textbf{.400 $\pm$ .141}" in text


# As the paper prints them.
INCREMENTS: dict[tuple[str, str], tuple[list[str | None], list[str | None]]] = {
    ("real-clicks", "yahoo"): (["6.88", "4.82", "3.87", "3.03"], ["2.14", "2.28", "2.20", "1.91"]),
    ("real-clicks", "istella-s"): (["7.35", "5.69", "4.10", "2.21"], ["0.94", "1.32", "1.11", "1.17"]),
    ("trust-bias", "yahoo"): (["2.41", None, "0.71", "0.53"], ["0.15", None, "0.00", "0.00"]),
}


@pytest.mark.parametrize(("name", "data"), list(INCREMENTS))
def test_published_means_have_the_published_increments(name: str, data: str) -> None:
    spec = read_spec(name)
    *rankers, to_dla, to_affine = tables.published_rows(spec.paper[data], spec.measures)
    for row, printed in zip((to_dla, to_affine), INCREMENTS[name, data], strict=True):
        assert list(row.values())[1:] == ["" if each is None else f"+{each}%" for each in printed]
    assert [row["ranker"] for row in rankers][-2:] == ["Affine", "Vectorization"]
