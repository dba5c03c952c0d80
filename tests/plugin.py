"""A package of somebody else's, as it lies in a folder of installed packages."""

from __future__ import annotations

from pathlib import Path

EAGER = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ultr.clicks import IndependentClicks, relevance


@dataclass(frozen=True)
class Eager(IndependentClicks):
    """A user who clicks on everything relevant, wherever it stands."""

    name: ClassVar[str] = "eager"

    noise: float = 0.0
    positions: int = 10

    def rates(self, max_label):
        by_grade = relevance(np.arange(max_label + 1), max_label=max_label, noise=self.noise)
        return np.repeat(by_grade[:, None], self.positions, axis=1)
'''


def install(
    folder: Path,
    *,
    code: str = EAGER,
    package: str = "eager_clicks",
    group: str = "ultr.click_models",
    entry: str = "eager",
    value: str = "",
) -> None:
    """Put a package with one member of an open family into a folder, as an installer does."""
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").write_text(code)
    metadata = folder / f"{package}-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package.replace('_', '-')}\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry} = {value or f'{package}:Eager'}\n")
