from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ultr.data.exploration_plan import ExplorationPlan, PlannedPair
from ultr.errors import OptionError
from ultr.serving.exploration import SWAPS, Exchange, Exploration, exchanged, of_plan, parse_exploration


def _propensity(base: int, rank: int, *, shown: int, exploration: Exploration) -> float:
    """The probability of a rank, by a list in which this document alone has moved."""
    base_ranks = list(range(shown))
    base_ranks[rank], base_ranks[base] = base, rank
    return exploration.propensities(base_ranks)[rank]


@pytest.mark.parametrize("shown", [1, 2, 3, 4, 10])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.9])
def test_propensities_are_the_sum_over_all_outcomes(shown: int, epsilon: float) -> None:
    outcomes = [(1 - epsilon if shown > 1 else 1.0, list(range(shown)))]
    for pair in range(shown - 1):
        ranks = list(range(shown))
        ranks[pair], ranks[pair + 1] = ranks[pair + 1], ranks[pair]
        outcomes.append((epsilon / (shown - 1), ranks))
    for base, rank in product(range(shown), repeat=2):
        expected = sum(probability for probability, ranks in outcomes if ranks[rank] == base)
        found = _propensity(base, rank, shown=shown, exploration=Exploration(SWAPS, epsilon))
        assert found == pytest.approx(expected, abs=1e-15)


def test_propensities_are_the_frequencies_of_what_is_shown() -> None:
    shown, exploration, draws = 4, Exploration(SWAPS, 0.6), 20_000
    counts = np.zeros((shown, shown))
    for number in range(draws):
        pair = exploration.drawn(shown, query_id=f"q{number}", secret=b"s")
        for rank, base in enumerate(exchanged(list(range(shown)), pair)):
            counts[base, rank] += 1
    expected = np.array(
        [[_propensity(b, r, shown=shown, exploration=exploration) for r in range(shown)] for b in range(shown)]
    )
    assert np.abs(counts / draws - expected).max() < 4 * np.sqrt(0.25 / draws)
    assert (counts[expected == 0] == 0).all(), "no document moves by more than one rank"


def test_a_query_is_explored_alike_with_the_same_secret_and_not_with_another() -> None:
    def pairs(secret: bytes) -> list[Exchange | None]:
        return [Exploration(SWAPS, 0.5).drawn(10, query_id=str(number), secret=secret) for number in range(400)]

    assert pairs(b"one") == pairs(b"one")
    same = sum(a == b for a, b in zip(pairs(b"one"), pairs(b"two"), strict=True))
    # Two independent draws are both None in a quarter of the cases, and the same pair in 1/4 * 1/9.
    assert abs(same / 400 - (1 / 4 + 1 / 36)) < 4 * np.sqrt(0.25 / 400)


def test_all_pairs_are_alike() -> None:
    exploration = Exploration(SWAPS, 0.999)
    drawn = Counter(exploration.drawn(4, query_id=str(number), secret=b"s") for number in range(9_000))
    for pair in exploration.exchanges(4):
        assert abs(drawn[pair] - 3_000) < 4 * np.sqrt(9_000 * 2 / 9)


def test_a_list_without_a_pair_stays_as_it_is() -> None:
    assert all(Exploration(SWAPS, 0.999).drawn(size, query_id="q", secret=b"s") is None for size in (0, 1))
    assert all(Exploration().drawn(5, query_id=str(q), secret=b"s") is None for q in range(100))


@pytest.mark.parametrize("wrong", ["swaps", "swaps=0", "swaps=1", "swaps=nan", "swaps=x", "shuffle=0.1", "0.1", ""])
def test_an_exploration_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(OptionError, match=r"swaps=0\.05"):
        parse_exploration(wrong)


PLAN = ExplorationPlan(
    pairs=(
        PlannedPair(first=1, second=2, probability=0.2, pages=1, why=""),
        PlannedPair(first=2, second=4, probability=0.1, pages=1, why=""),
    ),
    most_ranks_lost=2,
)


@pytest.mark.parametrize("shown", [1, 2, 3, 4, 10])
def test_a_plan_exchanges_its_pairs_with_their_probabilities_where_both_are_shown(shown: int) -> None:
    exploration, draws = of_plan(PLAN), 20_000
    wanted = {(0, 1): 0.2 if shown >= 2 else 0.0, (1, 3): 0.1 if shown >= 4 else 0.0}
    drawn = Counter(
        pair and (pair.first, pair.second)
        for pair in (exploration.drawn(shown, query_id=str(number), secret=b"s") for number in range(draws))
    )
    for pair, chance in wanted.items():
        assert abs(drawn[pair] / draws - chance) <= 4 * np.sqrt(chance / draws)
    assert drawn[None] + sum(drawn[pair] for pair in wanted) == draws
    ranks = list(range(shown))
    outcomes = [(1 - sum(wanted.values()), ranks)]
    for (first, second), chance in wanted.items():
        if chance:
            outcomes.append((chance, exchanged(ranks, Exchange(first, second, chance))))
    for _, order in outcomes:
        expected = [sum(chance for chance, other in outcomes if other[rank] == order[rank]) for rank in ranks]
        assert exploration.propensities(order) == pytest.approx(expected)


def test_a_plan_is_read_from_its_file_and_said_in_words(tmp_path: Path) -> None:
    PLAN.write(tmp_path / "plan.json")
    exploration = parse_exploration(str(tmp_path / "plan.json"))
    assert exploration == of_plan(PLAN)
    assert exploration.kind == "plan"
    assert exploration.epsilon == pytest.approx(0.3)
    assert "1 and 2 in 20.00%, 2 and 4 in 10.00%" in exploration.in_words()
    assert "more than 2 ranks lower" in exploration.in_words()


def test_a_plan_that_asks_for_nothing_explores_nothing(tmp_path: Path) -> None:
    ExplorationPlan().write(tmp_path / "plan.json")
    exploration = parse_exploration(str(tmp_path / "plan.json"))
    assert not exploration.active
    assert exploration.in_words() == "nothing is explored"


def test_without_the_option_nothing_is_explored() -> None:
    assert not parse_exploration(None).active
