"""Reports with few random draws or without figures, where those are not looked at; they take most of the time."""

from __future__ import annotations

from functools import partial
from html import escape
from importlib import import_module

import pytest


def few_draws(patch: pytest.MonkeyPatch) -> None:
    """Let reports, comparisons and examinations draw a fraction of what they usually do."""
    from ultr import diagnosis, reporting
    from ultr.evaluation import assumption
    from ultr.experiments import demo

    inputs = partial(reporting.ReportInputs, samples=10, draws=19)
    patch.setattr(reporting, "ReportInputs", inputs)
    patch.setattr(demo, "ReportInputs", inputs)
    patch.setattr(diagnosis, "diagnose", partial(diagnosis.diagnose, draws=19))
    patch.setattr(assumption, "SAMPLES", 19)
    patch.setattr(import_module("ultr.bias.scalar_test"), "SPLITS", 3)


def plain_drawings(patch: pytest.MonkeyPatch) -> None:
    """Leave the figures of pages empty."""
    from ultr.pages.drawing import Drawing

    patch.setattr(Drawing, "svg", lambda drawing, name: f'<svg aria-label="{escape(drawing.description)}"/>')
