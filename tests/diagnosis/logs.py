"""Logs to examine."""

from __future__ import annotations

from typing import Any

import numpy as np

from ultr.data.click_log import ClickLog
from ultr.preparation.columns import Columns
from ultr.preparation.summary import Summary, Tally

THETA = np.array([1.0, 0.6, 0.4, 0.2])


def thorough(*, seed: int = 0, pages: int = 40_000, swaps: bool = True, **extra: Any) -> ClickLog:
    """Pages of 200 queries, each with four documents in random order (or always the same), position-based clicks."""
    random = np.random.default_rng(seed)
    queries = np.arange(pages) % 200
    order = random.permuted(np.tile(np.arange(4), (pages, 1)), axis=1) if swaps else np.tile(np.arange(4), (pages, 1))
    documents = 4 * queries[:, None] + order
    relevance = random.uniform(0.1, 0.8, size=800)
    clicks = random.random((pages, 4)) < relevance[documents] * THETA
    given = {"features": random.normal(size=(800, 2)), "clicks": clicks.reshape(-1)} | extra
    return ClickLog.of(
        documents=documents.reshape(-1), offsets=np.arange(0, 4 * pages + 1, 4), queries=queries, **given
    )


def summary(**changes: Any) -> Summary:
    """What was said of 400,000 raw rows, all of them kept."""
    given: dict[str, Any] = {
        "source": "raw.parquet",
        "engine": "duckdb",
        "columns": Columns(query="query", document="document", position="position", click="click"),
        "one_row_a_page": False,
        "rows": Tally(400_000, 400_000),
        "pages": Tally(40_000, 40_000),
        "clicks": Tally(50_000, 50_000),
        "reasons": (),
        "factors": (),
        "lists": 4_800,
        "queries": 200,
        "documents": 800,
        "features": 2,
        "empty_pages": 12_000,
    }
    return Summary(**(given | changes))


def by_device(
    *, seed: int = 0, pages: int = 40_000, steepness: float = 2.0, phone_swaps: bool = True, phone_length: int = 4
) -> ClickLog:
    """The same users, every third on a phone, where examination is raised to a power and pages may be shorter."""
    random = np.random.default_rng(seed)
    queries, phone = np.arange(pages) % 200, np.arange(pages) % 3 == 0
    order = random.permuted(np.tile(np.arange(4), (pages, 1)), axis=1)
    if not phone_swaps:
        order[phone] = np.arange(4)
    documents = 4 * queries[:, None] + order
    theta = THETA ** np.where(phone, steepness, 1.0)[:, None]
    clicks = random.random((pages, 4)) < random.uniform(0.1, 0.8, size=800)[documents] * theta
    lengths = np.where(phone, phone_length, 4)
    shown = np.arange(4) < lengths[:, None]
    return ClickLog.of(
        features=random.normal(size=(800, 2)),
        documents=documents[shown],
        offsets=np.append(0, np.cumsum(lengths)),
        clicks=clicks[shown],
        queries=queries,
        device=np.repeat(np.where(phone, "phone", "desk"), lengths),
    )
