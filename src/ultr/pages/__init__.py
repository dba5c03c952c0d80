"""HTML pages that stand alone: one file, no script from elsewhere, no request, light and dark."""

from ultr.pages import log_figures, model_figures
from ultr.pages.drawing import Drawing, blank
from ultr.pages.page import Badge, Page, Point, Section, is_page
from ultr.pages.table import Table

__all__ = ["Badge", "Drawing", "Page", "Point", "Section", "Table", "blank", "is_page", "log_figures", "model_figures"]
