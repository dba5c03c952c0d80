from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ultr.arrays import Doubles
from ultr.data.bias_factor import level_names, midpoints, numeric_factor
from ultr.data.click_log import ClickLog
from ultr.errors import OptionError
from ultr.methods import DLA, TwoTower, Vectorization
from ultr.methods.factors import Factor
from ultr.methods.observation import KNOTS, Observation, spline_basis
from ultr.relevance import MLP

EDGES = tuple(np.cumsum(np.linspace(20, 130, 19)).tolist())


def _pixels(edges: tuple[float, ...] = EDGES) -> Factor:
    return Factor("pixels", level_names(edges), 0, edges=edges)


def test_constant_and_linear_curves_are_reproduced_exactly() -> None:
    basis, middles = spline_basis(_pixels()), midpoints(EDGES)
    assert basis is not None
    assert basis.shape == (20, KNOTS)
    knots = middles[np.linspace(0, 19, KNOTS).round().astype(int)]
    np.testing.assert_allclose(basis.numpy() @ np.ones(KNOTS), np.ones(20), atol=1e-6)
    np.testing.assert_allclose(basis.numpy() @ (2 - knots / 500), 2 - middles / 500, atol=1e-6)


def test_few_bins_and_categories_are_free() -> None:
    edges = tuple(float(edge) for edge in range(2 * KNOTS - 1))
    assert spline_basis(_pixels(edges)) is not None
    assert spline_basis(_pixels(edges[:-1])) is None
    assert spline_basis(Factor("position", tuple(map(str, range(30))), 0)) is None
    assert [len(table) for table in Observation([_pixels()], 1, smooth=False).tables] == [20]


@pytest.mark.parametrize("combine", ["product", "sum"])
def test_a_smooth_factor_starts_where_a_free_one_does(combine: str) -> None:
    factors = [Factor("position", ("1", "2"), 1), _pixels()]
    levels = torch.cartesian_prod(torch.arange(20), torch.arange(2))
    torch.testing.assert_close(Observation(factors, 3, combine=combine)(levels), torch.ones(40, 3))
    assert {name: table.shape for name, table in Observation(factors, 3).embeddings().items()} == {
        "position": (2, 3),
        "pixels": (20, 3),
    }


def test_what_one_bin_learns_its_neighbours_learn_too() -> None:
    observation = Observation([_pixels()], 1, start=0.0)
    observation(torch.tensor([[9]])).sum().backward()
    (table,) = observation.tables
    assert table.grad is not None
    # d o(bin 9) / d value at a knot is the row of the basis.
    torch.testing.assert_close(table.grad[:, 0], spline_basis(_pixels())[9])  # type: ignore[index]
    with torch.no_grad():
        table += 0.1 * table.grad
    curve = observation.embeddings()["pixels"][:, 0]
    assert (curve[7:12] > 0.3 * curve[9]).all()
    assert curve[9] > 0


def test_the_basis_is_made_from_the_edges_and_not_saved() -> None:
    observation = Observation([_pixels()], 2)
    assert list(observation.state_dict()) == ["tables.0"]
    with torch.no_grad():
        observation.tables[0].normal_(generator=torch.Generator().manual_seed(0))
    loaded = Observation([_pixels()], 2)
    loaded.load_state_dict(observation.state_dict())
    assert torch.equal(loaded(torch.arange(20)[:, None]), observation(torch.arange(20)[:, None]))


@pytest.mark.parametrize("method", [DLA, TwoTower, Vectorization])
def test_smooth_is_true_or_false(method: Any) -> None:
    with pytest.raises(OptionError, match="smooth must be True or False, got 'yes'"):
        method(smooth="yes").check()


def _falling(impressions: int, *, seed: int) -> tuple[ClickLog, Doubles]:
    """Clicks whose logit falls by one in 600 pixels, at pixels that say nothing of relevance, and that fall by bin."""
    random, lists, length = np.random.default_rng(seed), 300, 5
    shown = lists * length
    relevance, pixels = random.normal(size=shown), random.uniform(0, 1_500, size=shown)
    edges = np.arange(50, 1_500, 50)
    log = ClickLog.of(
        features=relevance[:, None],
        documents=np.arange(shown),
        offsets=np.arange(0, shown + 1, length),
        clicks=random.binomial(impressions, 1 / (1 + np.exp(1 + pixels / 600 - relevance))),
        impressions=np.full(lists, impressions),
        pixels=numeric_factor("pixels", pixels, edges=edges),
    )
    return log, -midpoints(edges.tolist()) / 600


def test_a_smooth_curve_is_found_from_few_clicks_with_less_error_than_free_bins() -> None:
    log, truth = _falling(2, seed=0)
    errors = {}
    for smooth in (True, False):
        ranker = TwoTower(relevance=MLP(hidden=(4,), steps=250), smooth=smooth).fit(log)
        found = ranker.effects()["pixels"]
        errors[smooth] = np.sqrt(np.square(found - found.mean() - truth + truth.mean()).mean())
    assert errors[True] < 0.7 * errors[False]
    assert errors[True] < 0.3
