"""Tables as text, packed or not: their ending, their first line, and what separates their columns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

TABS = (".tsv", ".tab")
PACKED = {".gz": "gzip", ".zst": "zstd"}
"""The endings of packed files, and what Arrow calls the packing."""


def ending(path: Path) -> str:
    """The ending that says the format of a file, in lower case and without that of a packing; empty if it has none.

    >>> ending(Path("Lists.CSV.gz"))
    '.csv'
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def first_line(path: Path) -> str:
    """The first line of a text file, packed or not."""
    import pyarrow

    with pyarrow.input_stream(str(path), compression=PACKED.get(path.suffix.lower(), "detect")) as stream:
        text: str = stream.read(2**20).decode("utf-8-sig", errors="replace")
    return next(iter(text.splitlines()), "")


def delimiter(path: Path, header: str) -> str:
    """The separator of the columns: tabs by the ending, else that which the header has most of."""
    return "\t" if ending(path) in TABS else max(",;\t|", key=Counter(header).__getitem__)


def not_utf8(path: str | Path, line: str | int | None) -> str:
    """A sentence on a text file in another encoding, and how it is converted.

    >>> not_utf8("log.csv", 5)
    'log.csv is not written in UTF-8, see line 5; convert it first, from Latin-1 with: iconv -f latin1 -t utf8'
    """
    where = "" if line is None else f", see line {line}"
    return f"{path} is not written in UTF-8{where}; convert it first, from Latin-1 with: iconv -f latin1 -t utf8"
