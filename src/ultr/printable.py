"""Text from files, made fit to be shown: a name must not move the cursor, colour the screen or turn a line around."""

from __future__ import annotations

import re

_INVISIBLE = re.compile(
    # Control characters but for line break and tab, separators of lines, marks of direction, halves of surrogate pairs.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""The text with escapes such as \x1b in the place of what acts on a terminal or page instead of being seen.

    >>> print(visible("\x1b[2Jred \u202eevil"))
    \x1b[2Jred \u202eevil
    """
    return _INVISIBLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
