"""HTML pages that stand alone: one file, no script from elsewhere, no request, light and dark."""

from ultr.pages import figures
from ultr.pages.drawing import Drawing, blank
from ultr.pages.page import Page, is_page, notebook
from ultr.pages.section import Draw, Section, Verdict, sentences
from ultr.pages.table import Table

__all__ = [
    "Draw",
    "Drawing",
    "Page",
    "Section",
    "Table",
    "Verdict",
    "blank",
    "figures",
    "is_page",
    "notebook",
    "sentences",
]
