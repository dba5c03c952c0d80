"""Ways to damage a file, and to make one up."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

HUGE = 10**12
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, HUGE, 10**400, 0.5, -0.0, 1e-320, 1e308, "", "0", "auto", "nan"),
    *(
        "\x1b[2J",
        "\u202e",
        "x" * 10_000,
        "../../etc/passwd",
        "/dev/zero",
        "🦆",
        [],
        {},
        [[]],
        [None],
        {"": 0},
        [HUGE, HUGE],
    ),
)
"""Values that no file of ours has in that place."""


def damage(content: bytes, random: Random) -> tuple[bytes, str]:
    """The content of a file with something of it changed, and what; perhaps with nothing changed."""
    changed, place = bytearray(content), random.randrange(max(len(content), 1))
    kind = random.choice(("bit", "bit", "bit", "byte", "zeros", "cut", "grown", "inserted", "removed", "moved"))
    if kind == "bit" and content:
        changed[place] ^= 1 << random.randrange(8)
    elif kind == "byte" and content:
        changed[place] = random.randrange(256)
    elif kind == "zeros":
        changed[place : place + random.randrange(1, 64)] = bytes(random.randrange(1, 64))
    elif kind == "cut":
        del changed[place:]
    elif kind == "grown":
        changed += random.randbytes(random.randrange(1, 64))
    elif kind == "inserted":
        changed[place:place] = random.randbytes(random.randrange(1, 8))
    elif kind == "removed":
        del changed[place : place + random.randrange(1, 8)]
    elif kind == "moved":
        other = random.randrange(max(len(content), 1))
        changed[place : place + 8], changed[other : other + 8] = changed[other : other + 8], changed[place : place + 8]
    return bytes(changed), f"{kind} at {place} of {len(content)}"


def replace_file(path: Path, random: Random) -> str:
    """Put something in the place of a file that is no file of its kind; what it was."""
    kind = random.choice(("nothing", "empty", "folder", "pipe", "endless", "link to itself", "text", "pickle"))
    path.unlink()
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "link to itself":
        path.symlink_to(path)
    elif kind == "text":
        path.write_text("root:x:0:0:root:/root:/bin/bash\n")
    elif kind == "pickle":
        path.write_bytes(b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.")
    return f"{kind} in the place of {path.name}"


def odd_json(content: Any, random: Random) -> tuple[Any, str]:
    """A JSON document with one value exchanged, removed, doubled or buried, and where."""
    places = list(_places(content))
    where = random.choice(places)
    kind = random.choice(("odd", "odd", "odd", "removed", "added", "deep"))
    parent = content
    for key in where[:-1]:
        parent = parent[key]
    key = where[-1]
    if kind == "removed":
        del parent[key]
    elif kind == "added" and isinstance(parent, list):
        parent.append(parent[key])
    elif kind == "added":
        parent["surprise"] = parent[key]
    elif kind == "deep":
        value: Any = parent[key]
        for _ in range(random.choice((1, 50, 300))):
            value = [value]
        parent[key] = value
    else:
        parent[key] = random.choice(ODD)
    return content, f"{kind} at {'.'.join(map(str, where))}"


def _places(content: Any, above: tuple[Any, ...] = ()) -> Any:
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield (*above, key)
        yield from _places(value, (*above, key))
