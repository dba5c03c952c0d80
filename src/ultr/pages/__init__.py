"""HTML pages that stand alone: one file, no script from elsewhere, no request, light and dark."""

from ultr.pages.drawing import Drawing, blank
from ultr.pages.page import Badge, Page, Section, Table

__all__ = ["Badge", "Drawing", "Page", "Section", "Table", "blank"]
