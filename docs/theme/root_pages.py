"""The pages that live beside the code, not in docs/, as pages of the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]*)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add them."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links between the root and docs/ lead to the same pages on the site."""
    up = "../" * page.file.src_uri.count("/")
    at_root = page.file.src_uri in PAGES.values()

    def moved(found: re.Match[str]) -> str:
        target, anchor = found[1], found[2] or ""
        if at_root:
            target = PAGES.get(target, target.removeprefix("docs/"))
        elif target.startswith(f"{up}../"):
            outside = target.removeprefix(f"{up}../")
            target = up + PAGES.get(outside, outside)
        return f"]({target}{anchor})"

    return _LINK.sub(moved, markdown)
