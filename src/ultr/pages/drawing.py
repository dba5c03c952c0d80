"""Figures in one style, and as SVG that takes the colours of the page around it."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ultr.printable import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GREY, BLUE, GREEN, ORANGE, PURPLE, RED = "#9aa0a6", "#3b6fb6", "#4d9a5f", "#d98032", "#8a63b8", "#c4504b"
_INK = "#000000"
"""Colour of text and lines in matplotlib; on a page it becomes the colour of the text around."""
NARROW = 4.2
"""Inches: two such figures stand side by side on a page, and one fits a phone with its text large enough."""
_TIP = "tip: "
"""The start of the ids of invisible lines that say something when a pointer rests on them."""
MOST_LEVELS = 30
"""More levels of a bias factor than this are not drawn."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure and what it shows, in words, for those who cannot see it."""

    figure: Figure
    description: str

    @property
    def is_narrow(self) -> bool:
        """True if two figures of this width fit side by side."""
        return bool(self.figure.get_figwidth() <= NARROW)

    def svg(self, name: str) -> str:
        """The figure as an SVG element without a background; `name` keeps its ids apart from others' of the page."""
        import matplotlib as mpl
        from matplotlib.text import Text

        text = io.StringIO()
        # What users wrote may hold dollars, which matplotlib would take for mathematics.
        for each in self.figure.findobj(Text):
            each.set_parse_math(False)
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "text.parse_math": False}):
            self.figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
        drawn = text.getvalue()
        drawn = drawn[drawn.index("<svg") :]
        drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
        drawn = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", drawn)
        drawn = drawn.replace(_INK, "currentColor")
        width, height = (72 * inches for inches in self.figure.get_size_inches())
        opening = (
            f'<svg role="img" aria-label="{escape(self.description)}" class="drawing" '
            f'style="width:{4 * width / 3:.0f}px;min-width:{width:.0f}px" '
            f'viewBox="0 0 {width:g} {height:g}" xmlns:xlink="http://www.w3.org/1999/xlink" fill="currentColor">'
        )
        drawn = re.sub(r"<svg [^>]*>", lambda _: opening, drawn, count=1)
        return visible(f"{drawn.rstrip().removesuffix('</svg>')}{self._tips(height)}</svg>\n")

    def _tips(self, height: float) -> str:
        """What pointers read, after everything else and so on top of it, where the last drawing put it."""
        from matplotlib.lines import Line2D

        written = []
        for each in self.figure.findobj(Line2D):
            text, wide = each.get_gid() or "", each.get_linewidth()
            if text.startswith(_TIP):
                points = each.get_transform().transform(each.get_xydata()) * 72 / self.figure.dpi
                path = "L".join(f"{x:.1f},{height - y:.1f}" for x, y in points)
                title = escape(text.removeprefix(_TIP), quote=False)
                area = f'stroke-width="{wide:g}"' if wide else 'pointer-events="fill"'
                # The last step is the shortest that still has a round end, for what is a point.
                written.append(f'<path {area} d="M{path}h.1"><title>{title}</title></path>')
        around = '<g class="tips" fill="none" stroke="none" stroke-linecap="round" pointer-events="stroke">'
        return f"{around}{''.join(written)}</g>" if written else ""

    def save(self, folder: Path, caption: str, *, title: bool = True) -> None:
        """Write the figure as SVG and as PNG, by the words of its caption, which becomes its title.

        A caption `real clicks, d=2` gives `real-clicks-d-2.svg`.
        """
        name = "-".join(re.findall("[a-z0-9]+", caption.lower()))
        if title:
            self.figure.suptitle(caption, x=0.01, ha="left", fontsize=10)
        self.figure.savefig(folder / f"{name}.svg")
        # Where things stand is found out once; it takes longer than drawing them.
        self.figure.set_layout_engine("none")
        self.figure.savefig(folder / f"{name}.png", dpi=150)


def blank(
    width: float, height: float, *, columns: int = 1, width_ratios: Sequence[float] = (1,), **labels: str
) -> tuple[Figure, Any]:
    """An empty figure with its axes, or an array of them; `labels` are the xlabel and the ylabel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns, width_ratios=width_ratios)
    for each in np.atleast_1d(axes):
        each.spines[["top", "right"]].set_visible(False)
        each.set(**labels)
    return figure, axes


def tip(axes: Any, x: Any, y: Any, text: str, *, wide: float = 13) -> None:
    """Let a page say something while a pointer rests near a point or a line, so many points wide; 0 is inside it.

    Nothing is drawn, and no axis is moved.
    """
    from matplotlib.lines import Line2D

    points = np.broadcast_arrays(np.atleast_1d(x), y)
    if np.isfinite(points).all():
        axes.add_artist(Line2D(*points, linewidth=wide, visible=False, in_layout=False, gid=f"{_TIP}{text}"))


def cell_tip(axes: Any, column: int, row: int, text: str) -> None:
    """Let a page say something while a pointer rests on a cell of a heat map."""
    tip(axes, column + np.array([-0.5, 0.5, 0.5, -0.5]), row + np.array([-0.5, -0.5, 0.5, 0.5]), text, wide=0)


def ink_on(colour: Sequence[float]) -> str:
    """The colour of text on a patch of another (red, green, blue from 0 to 1): whichever has the higher contrast."""
    brightness = luminance(colour)
    return "white" if 1.05 / (brightness + 0.05) > (brightness + 0.05) / (luminance(_DARK) + 0.05) else "#1f2328"


def luminance(colour: Sequence[float]) -> float:
    """The relative luminance that the contrast of the Web Content Accessibility Guidelines goes by."""
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


_DARK = (0x1F / 255, 0x23 / 255, 0x28 / 255)
