"""Click logs and judged lists as a notebook shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ultr.data.column_names import listed
from ultr.notebook import as_html

if TYPE_CHECKING:
    from ultr.data.click_log import ClickLog
    from ultr.data.judged import JudgedLists

_POSITIONS = 10
_NAMES = 8


def position_rows(log: ClickLog) -> list[dict[str, str]]:
    """The click rate of each position as text."""
    shown, clicked = log.totals(log.position)
    return [
        {"position": level, "impressions": f"{count:,.0f}", "clicks": f"{clicks:,.0f}", "rate": f"{clicks / count:.4f}"}
        for level, count, clicks in zip(log.position.levels, shown, clicked, strict=True)
        if count
    ]


def log_as_html(log: ClickLog) -> str:
    """The totals of a log, and the click rate of its first positions."""
    rows = position_rows(log)
    further = f"{len(rows) - _POSITIONS:,} further positions. " if len(rows) > _POSITIONS else ""
    names = f"{len(log.feature_names)} features: {listed(log.feature_names, most=_NAMES)}"
    return as_html(repr(log), rows[:_POSITIONS], note=further + names)


def lists_as_html(lists: JudgedLists) -> str:
    """The totals of judged lists, and the documents of each grade."""
    counts = np.bincount(lists.labels, minlength=lists.max_label + 1)
    rows = [
        {"label": str(label), "documents": f"{count:,}", "share": f"{count / max(lists.documents, 1):.4f}"}
        for label, count in enumerate(counts.tolist())
    ]
    names = f"{len(lists.feature_names)} features: {listed(lists.feature_names, most=_NAMES)}"
    return as_html(repr(lists), rows, note=names)
