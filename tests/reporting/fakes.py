"""Models that nobody trained: what a report asks of them, made up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ultr.arrays import Floats, Integers
from ultr.data.click_log import ClickLog
from ultr.methods.factors import Factor, factors_of
from ultr.methods.origin import Origin
from ultr.reporting.model import Model

LOG = ClickLog.of(
    features=[[4.0], [3.0], [2.0], [1.0]],
    documents=[0, 1, 2, 3, 2, 1, 0, 3],
    offsets=[0, 3, 5, 8],
    clicks=[5, 2, 1, 3, 1, 4, 4, 2],
    impressions=[10, 5, 20],
    queries=["hats", "shoes", "socks"],
    device=["desk"] * 5 + ["phone"] * 3,
)
"""Three queries: 15 pages on desks and 20 on phones."""


class FakeRanker:
    """Scores are the first feature times a sign; click ratios are those it was given, the same for every document."""

    def __init__(self, method: str = "dla", *, sign: float = 1.0, factors: Sequence[Factor] = (), **other: Any) -> None:
        self.method, self.sign, self.factors = method, sign, tuple(factors)
        self.left_out_factors: tuple[str, ...] = ()
        self.history: tuple[Any, ...] = ()
        self.options: dict[str, Any] = {}
        self.provenance: Any = None
        self.data_fingerprint = "0123456789abcdef"
        self.ratios: dict[str, list[float]] = {}
        self.objective: Any = None
        vars(self).update(other)

    def score(self, features: Floats, offsets: Integers | None = None) -> Floats:
        return (self.sign * features[:, 0]).astype(np.float32)

    def click_ratios(self, log: ClickLog, name: str) -> Any:
        return np.tile(self.ratios[name], (len(log.documents), 1))


def model(
    name: str, method: str = "dla", *, manifest: dict[str, Any] | None = None, folder: str = "runs", **ranker: Any
) -> Model:
    """A model of such a ranker."""
    given: dict[str, Any] = {
        "method": method,
        "origin": Origin(command=f"ultr train {name}", log="../log", validation="clicks"),
        "provenance": SimpleNamespace(init_model=None),
        "options": {"seed": 3, "relevance": {"kind": "mlp", "hidden": [8, 4], "steps": 20}},
        "choices": {},
        "feature_names": ["price", "age"],
        "factors": list(ranker.get("factors", ())),
        "weights_digest": f"{name}-weights-of-it",
        "versions": {"ultr": "1.0", "threads": "2"},
        "model_dump": lambda exclude: {"method": method},
    }
    shown: Any = SimpleNamespace(**(given | (manifest or {})))
    made: Any = FakeRanker(method, **ranker)
    return Model(name, Path(folder) / name, shown, made)


FACTORS = factors_of(LOG)
"""Position, and the device, which is the same for a whole page."""
