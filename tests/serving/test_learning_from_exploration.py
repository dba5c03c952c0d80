"""The whole way: users of a served ranking with swaps, their log prepared, and the curve that exact weights give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.serving.ranker_file import weights_of
from tests.serving.service import client

from ultr.bias import estimate_propensities
from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.preparation.log import prepare
from ultr.serving.exploration import SWAPS, Exploration
from ultr.serving.settings import ServiceSettings

THETA = np.array([1.0, 0.6, 0.4, 0.25])
NAMES = ("a", "b", "c", "d")
WANTED = {"morning": (0.9, 0.6, 0.4, 0.3), "evening": (0.3, 0.4, 0.6, 0.9)}
"""How relevant each document is; the ranker knows it by the features that it is sent."""
PAGES, AT_ONCE = 6_000, 100


def users(model: Path, folder: Path) -> None:
    """Users of two kinds, who see the four documents in the order that suits them, but for swaps."""
    random, scale = np.random.default_rng(0), weights_of()[0]
    settings = ServiceSettings(log_to=folder, explore=Exploration(SWAPS, 0.5), shown=4)
    with client(model, settings) as service:
        for start in range(0, PAGES, AT_ONCE):
            queries, kinds = [], {}
            for number in range(start, start + AT_ONCE):
                kind = ("morning", "evening")[int(random.integers(2))]
                kinds[str(number)] = kind
                candidates = [
                    {"id": name, "features": [float(wanted / scale), 0.0, 0.0]}
                    for name, wanted in zip(NAMES, WANTED[kind], strict=True)
                ]
                words = ("shoes", "boots")[number % 2]
                queries.append({"id": str(number), "user_query": words, "candidates": candidates})
            answers = service.post("/rank", json={"queries": queries}).json()["queries"]
            events = [
                {"query_id": answer["query_id"], "object_id": each["id"], "action_name": "click"}
                for answer in answers
                for place, each in enumerate(answer["ranking"])
                if random.random() < THETA[place] * WANTED[kinds[answer["id"]]][NAMES.index(each["id"])]
            ]
            assert service.post("/events", json={"events": events}).json()["joined"] == len(events)


@pytest.fixture(scope="module")
def log(model: Path, tmp_path_factory: pytest.TempPathFactory) -> ClickLog:
    folder = tmp_path_factory.mktemp("shown")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ultr.serving.feedback.secrets.token_bytes", lambda size: b"k" * size)
        users(model, folder)
    assert {path.suffix for path in folder.iterdir()} == {".parquet"}
    return prepare(folder, folder / "log", columns="ubi").log


def test_the_curve_of_exact_weights_is_nearer_to_the_truth(log: ClickLog) -> None:
    assert log.placements is not None
    assert log.placements.explored.all()
    exact = estimate_propensities(log)
    plain = estimate_propensities(trusted(log, placements=None))
    wrong = np.abs(np.log(plain / THETA)).max()
    assert wrong > 0.5, "the ranking moves documents to where they are wanted"
    # A thousand exchanges of each pair, the last with about a hundred clicks.
    assert np.abs(np.log(exact / THETA)).max() < min(0.25, wrong / 2)
