"""Enough dimensions give any clicks (theorem 1 of the paper) and any order (its section 4.2)."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import torch
from tests.relevance.documents import inputs_of
from torch import nn

from ultr.clicks import ClickMatrix
from ultr.methods.factors import Factor
from ultr.methods.vector_objective import VectorObjective
from ultr.relevance.inputs import Documents
from ultr.train.lists import Batch

GRADES, POSITIONS, LISTS = 5, 10, 40
MATRIX = ClickMatrix().rates(GRADES - 1)
POSITION = Factor("position", tuple(map(str, range(1, POSITIONS + 1))), 0)


def excess_loss(dimension: int) -> float:
    """How far the click loss of tabular r and o stays above the least that any model can have, on exact click rates."""
    grades = np.random.default_rng(0).integers(GRADES, size=(LISTS, POSITIONS))
    clicks = torch.from_numpy(MATRIX[grades, np.arange(POSITIONS)])
    batch = Batch(
        documents=Documents(inputs_of(np.zeros((1, 1), np.float32)), torch.zeros(0, dtype=torch.int64)),
        factors=torch.arange(POSITIONS).repeat(LISTS)[:, None],
        clicks=clicks,
        mask=torch.ones(LISTS, POSITIONS, dtype=torch.bool),
    )
    objective = VectorObjective([POSITION], dimension, combine="product").double()
    random = torch.Generator().manual_seed(0)
    table = nn.Parameter(torch.randn(GRADES, dimension, generator=random, dtype=torch.float64))
    parameters = [table, *objective.observation.parameters()]
    # The loss falls by less than its default tolerance in many a step before it is at the bottom.
    optimizer = torch.optim.LBFGS(
        parameters,
        max_iter=3_000,
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
        history_size=50,
        line_search_fn="strong_wolfe",
    )
    for parameter in parameters[1:]:
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=random, dtype=torch.float64)
    least = -(clicks * (clicks / clicks.sum(1, keepdim=True)).log()).sum(1)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = (objective.click_loss(table[torch.from_numpy(grades.ravel())], batch) - least).mean()
        value.backward()
        return value

    optimizer.step(loss)
    return loss().item()


def test_five_dimensions_reproduce_the_measured_clicks_and_four_do_not() -> None:
    assert excess_loss(5) < 1e-7
    assert excess_loss(4) > 1e-5


def test_a_vector_sorts_independent_embeddings_in_every_order_if_there_are_no_more_of_them_than_dimensions() -> None:
    objective = VectorObjective([POSITION], 5, combine="product").double()
    r = torch.randn(5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for order in permutations(range(5)):
        # r b = scores is a system of equations with one solution.
        scores = torch.tensor(order, dtype=torch.float64)
        found = objective.score_on(r, torch.linalg.solve(r, scores))
        assert found.argsort().tolist() == scores.argsort().tolist()
