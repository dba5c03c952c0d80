from __future__ import annotations

import pytest
import torch

from ultr.errors import OptionError
from ultr.methods.factors import Factor
from ultr.methods.observation import Observation


def _factors(*levels: int) -> list[Factor]:
    return [Factor(f"factor {i}", tuple(map(str, range(count))), i) for i, count in enumerate(levels)]


@pytest.mark.parametrize("combine", ["product", "sum"])
def test_every_embedding_is_all_ones_at_the_start(combine: str) -> None:
    observation = Observation(_factors(10, 3), 4, combine=combine)
    factors = torch.cartesian_prod(torch.arange(10), torch.arange(3))
    assert torch.equal(observation(factors), torch.ones(30, 4))


@pytest.mark.parametrize(("combine", "expected"), [("product", [6.0, 20.0]), ("sum", [5.0, 9.0])])
def test_the_embeddings_of_two_factors_are_combined_element_by_element(combine: str, expected: list[float]) -> None:
    observation = Observation(_factors(2, 2), 2, combine=combine)
    with torch.no_grad():
        observation.tables[0][1] = torch.tensor([2.0, 4.0])
        observation.tables[1][0] = torch.tensor([3.0, 5.0])
    assert observation(torch.tensor([[1, 0]])).tolist() == [expected]


def test_an_unknown_combination_is_refused_with_the_closest_one() -> None:
    with pytest.raises(OptionError, match="did you mean 'product'"):
        Observation(_factors(2), 1, combine="produkt")


def test_of_the_factors_of_a_log_only_the_given_ones_are_looked_at() -> None:
    first, _, third = _factors(2, 5, 3)
    observation = Observation([first, third], 1, combine="sum", start=0.0)
    with torch.no_grad():
        observation.tables[0][1], observation.tables[1][2] = 7.0, 4.0
    assert observation(torch.tensor([[1, 4, 2], [1, 0, 0], [0, 3, 2]])).tolist() == [[11.0], [7.0], [4.0]]
    assert {name: table.shape for name, table in observation.embeddings().items()} == {
        "factor 0": (2, 1),
        "factor 2": (3, 1),
    }
