"""Formulas without a script: each becomes a drawing in the colour of the text around it.

Markdown finds the formulas (`pymdownx.arithmatex`), matplotlib knows how to set them. So the pages read well where they
are Markdown, and open without a network where they are HTML.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape, unescape
from typing import Any

from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

SIZE = 100.0
"""Large, because matplotlib rounds the outlines of glyphs to whole units of the font."""
_FONT = FontProperties(size=SIZE, math_fontfamily="stix")
_WORDS = {r"\lt": "<", r"\gt": ">", r"\ge ": r"\geq ", r"\le ": r"\leq ", r"\lVert": r"\Vert", r"\rVert": r"\Vert"}
"""What the formulas of Markdown have and matplotlib calls otherwise."""
FRACTION, LARGE_FRACTION = r"\frac", r"\dfrac"
_SUM = re.compile(r"\\sum(?:_(?:\{(?:[^{}]|\{[^{}]*\})*\}|\w))?")
"""A sum with its index; what follows it needs some room."""
_COMMANDS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C", Path.CLOSEPOLY: "Z"}


def on_page_content(html: str, **_: Any) -> str:
    """Draw the formulas of a page."""
    html = re.sub(
        r'<div class="arithmatex">\\\[(.*?)\\\]</div>',
        lambda found: f'<div class="formula">{drawn(unescape(found[1]).replace(FRACTION, LARGE_FRACTION))}</div>',
        html,
        flags=re.DOTALL,
    )
    return re.sub(r'<span class="arithmatex">\\\((.*?)\\\)</span>', lambda found: drawn(unescape(found[1])), html)


@cache
def drawn(formula: str) -> str:
    """An SVG element that stands on the line of the text, with the formula in words."""
    spoken = " ".join(formula.split())
    known = spoken
    for word, other in _WORDS.items():
        known = known.replace(word, other)
    known = _SUM.sub(r"\g<0>\;", known)
    text = f"${known}$"
    width, height, depth = (float(size) for size in text_to_path.get_text_width_height_descent(text, _FONT, True))
    points, codes = text_to_path.get_text_path(_FONT, text, True)
    outline = Path(points, codes)
    # SVG counts downwards, and measures in units of the text are in em.
    path = "".join(
        _COMMANDS[code] + " ".join(f"{x:.0f} {-y:.0f}" for x, y in points.reshape(-1, 2))
        if code != Path.CLOSEPOLY
        else "Z"
        for points, code in outline.iter_segments(curves=True, simplify=False)
    )
    em = SIZE * 0.95
    return (
        f'<svg class="formula" role="img" aria-label="{escape(spoken)}" fill="currentColor" '
        f'viewBox="0 {depth - height:.0f} {width:.0f} {height:.0f}" '
        f'style="width:{width / em:.3f}em;height:{height / em:.3f}em;vertical-align:{-depth / em:.3f}em">'
        f'<path d="{path}"/></svg>'
    )
