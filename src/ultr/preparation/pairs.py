"""Which documents were clicked together, counted inside the engine."""

from __future__ import annotations

from typing import Any

from ultr.preparation import reasons
from ultr.preparation.collapse import Collapsed
from ultr.preparation.engine import Engine


def clicked_together(engine: Engine, rows: Any, raw: Collapsed, final: Collapsed) -> Any:
    """How many pages have both of two documents clicked: page (the list), first, second (positions) and both."""
    clicked = rows.filter((rows.fault == reasons.KEPT) & (rows.click == 1)).select("page", "document")
    clicked = clicked.join(raw.members, "page")
    last = final.members.select(list="page", last="list")
    clicked = clicked.join(last, "list").select("page", "last", "document")
    kept = final.shown.select(last="page", document="document", position="position")
    clicked = clicked.join(kept, ["last", "document"]).select("page", "last", "position")
    clicked = engine.keep("clicked", clicked)
    others = clicked.view()
    both = clicked.join(others, [clicked.page == others.page, clicked.position < others.position])
    both = both.select(page=clicked.last, first=clicked.position, second=others.position)
    return both.group_by("page", "first", "second").agg(both=both.count())
