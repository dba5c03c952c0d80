from __future__ import annotations

import time
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serving.ranker_file import weights_of, write_ranker
from tests.serving.service import PATIENCE, Client, client
from tests.serving.test_feedback import ask, query
from tests.serving.test_interleaving import Faulty
from tests.serving.test_routes import counted

from ultr.serving.settings import ServiceSettings
from ultr.serving.shadow import Divergence, Shadow

SCORES = st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=30)


def naive(old: list[float], new: list[float], top: int) -> tuple[float, bool, int]:
    count = range(len(old))
    first, second = (sorted(count, key=lambda index: -scores[index]) for scores in (old, new))
    moves = [abs(first.index(index) - second.index(index)) for index in {*first[:top], *second[:top]}]
    return len({*first[:top]} & {*second[:top]}) / len(first[:top]), first[0] != second[0], max(moves)


@settings(max_examples=100, derandomize=True)
@given(SCORES, st.integers(1, 12), st.randoms(use_true_random=False))
def test_a_divergence_is_what_its_words_say(old: list[float], top: int, random: Any) -> None:
    new = random.sample(old, len(old))
    found = Divergence.of(np.array(old, dtype=np.float32), np.array(new, dtype=np.float32), top=top)
    assert (found.overlap, found.first_changed, found.largest_move) == naive(old, new, top)
    assert found.drift >= 0


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=20), st.floats(0.1, 10), st.floats(-10, 10))
def test_another_scale_is_no_divergence(scores: list[int], scale: float, shift: float) -> None:
    old = np.array(scores, dtype=np.float64)
    found = Divergence.of(old, scale * old + shift)
    assert (found.overlap, found.first_changed, found.largest_move) == (1.0, False, 0)
    assert found.drift == pytest.approx(0, abs=1e-9)


def test_drift_is_in_units_of_the_standard_deviation() -> None:
    # Standardised, these are (1, -1) and (-1, 1).
    assert Divergence.of(np.array([5.0, 1.0]), np.array([2.0, 3.0])).drift == 2


def wait_for(service: Client, count: float, result: str = "compared") -> None:
    end = time.monotonic() + PATIENCE
    while counted(service, "ultr_shadow_queries_total", result=result) < count:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_shadow_counts_how_it_differs_and_is_not_shown(model: Path, tmp_path: Path) -> None:
    rival = write_ranker(tmp_path / "new.onnx", seed=1)
    asked = [query(f"q{number}", size=5 + number % 9) for number in range(20)]
    with client(model) as plain:
        expected = ask(plain, *asked)
    with client(model, ServiceSettings(shadow=rival)) as service:
        assert ask(service, *asked) == expected
        ask(service, query(size=0))
        wait_for(service, 20)
        divergences = []
        for each in asked:
            rows = np.array([candidate["features"] for candidate in each["candidates"]], dtype=np.float32)
            divergences.append(Divergence.of(rows @ weights_of(seed=0), rows @ weights_of(seed=1)))
        expected_sums: dict[str, list[float]] = {
            "ultr_shadow_overlap_sum": [each.overlap for each in divergences],
            "ultr_shadow_first_changed_total": [each.first_changed for each in divergences],
            "ultr_shadow_largest_move_sum": [each.largest_move for each in divergences],
            "ultr_shadow_score_drift_sum": [each.drift for each in divergences],
        }
        for name, values in expected_sums.items():
            assert counted(service, name) == pytest.approx(sum(values), rel=1e-5)
        assert counted(service, "ultr_shadow_overlap_count") == 20


def test_a_shadow_that_hangs_delays_nothing_and_what_does_not_fit_is_dropped(model: Path, tmp_path: Path) -> None:
    end = Event()

    def hang(scores: Any, run: Any) -> Any:
        end.wait(PATIENCE)
        return scores

    rival = write_ranker(tmp_path / "new.onnx", seed=1)
    with client(model, ServiceSettings(shadow=rival)) as service:
        shadow = service.service.shadow
        assert isinstance(shadow, Shadow)
        # Room for two requests of four candidates with three features of four bytes.
        shadow._most = 2 * 4 * 3 * 4
        object.__setattr__(shadow.rival.current, "scorer", Faulty(shadow.rival.current.scorer, hang))
        started = time.monotonic()
        for _ in range(5):
            ask(service, query())
        assert time.monotonic() - started < PATIENCE / 2
        assert counted(service, "ultr_shadow_queries_total", result="dropped") == 3
        end.set()
        for count in range(2, 6):
            wait_for(service, count)
            # The thread lets go of what it has compared a moment after it has counted it.
            late = time.monotonic() + PATIENCE
            while shadow._bytes and time.monotonic() < late:
                time.sleep(0.01)
            ask(service, query())
        assert counted(service, "ultr_shadow_queries_total", result="dropped") == 3, "there is room again"


def test_a_shadow_that_fails_is_counted(model: Path, tmp_path: Path) -> None:
    def fail(scores: Any, run: Any) -> Any:
        raise ValueError

    with client(model, ServiceSettings(shadow=write_ranker(tmp_path / "new.onnx", seed=1))) as service:
        shadow = service.service.shadow
        assert shadow is not None
        object.__setattr__(shadow.rival.current, "scorer", Faulty(shadow.rival.current.scorer, fail))
        ask(service, query("a"), query("b"))
        wait_for(service, 2, "failed")


def test_the_same_model_is_not_compared(model: Path) -> None:
    with client(model, ServiceSettings(shadow=model)) as service:
        ask(service, query())
        wait_for(service, 1, "same_model")
