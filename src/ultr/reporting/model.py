"""A saved model as a report looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ultr.errors import DataError
from ultr.methods import load
from ultr.methods.click_baseline import ClickBaseline
from ultr.methods.factors import Factor
from ultr.methods.label_baseline import LabelBaseline
from ultr.methods.model_file import MANIFEST, WEIGHTS, Manifest, load_manifest
from ultr.methods.ranker import Ranker
from ultr.methods.vector_objective import Embeddings
from ultr.pages.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED

LOWER, UPPER = ClickBaseline.name, LabelBaseline.name
_PALETTE = (BLUE, ORANGE, PURPLE, RED)


@dataclass(frozen=True, eq=False)
class Model:
    """A saved model under the name that a report gives it."""

    name: str
    folder: Path
    manifest: Manifest
    ranker: Ranker

    @classmethod
    def load(cls, folder: str | Path, *, name: str | None = None) -> Model:
        """The model of a folder, by default under the folder's own name."""
        path = Path(folder)
        return cls(name or path.resolve().name, path, load_manifest(path), load(path))

    @property
    def embeddings(self) -> Embeddings | None:
        """The vectors that the model has learned; None for a method without any."""
        return Embeddings.of(self.ranker)

    def knows(self, factor: Factor) -> bool:
        """True if it was trained on a log with this bias factor and did not leave it out."""
        return factor in self.ranker.factors and factor.name not in self.ranker.left_out_factors

    @property
    def is_bound(self) -> bool:
        """True if it is a bound for the others: raw clicks below, labels above."""
        return self.manifest.method in (LOWER, UPPER)


def models_of(folder: str | Path) -> list[Model]:
    """The model of a folder, or all models right inside it: the bounds around the others, which go by name."""
    path = Path(folder)
    if not path.is_dir():
        raise DataError(f"there is no folder {folder}; give the folder of a model, or one with several of them inside")
    if (path / WEIGHTS).exists():
        return [Model.load(path)]
    inside = sorted(each.parent for each in path.glob(f"*/{MANIFEST}") if (each.parent / WEIGHTS).exists())
    if not inside:
        raise DataError(
            f"{folder} is no model and has none inside; give a folder that `ultr train` or `ultr demo` wrote"
        )
    # Raw clicks first and labels last, as from the lower to the upper bound.
    return sorted(
        map(Model.load, inside), key=lambda model: (model.manifest.method == UPPER) - (model.manifest.method == LOWER)
    )


def colours(models: Sequence[Model]) -> dict[str, str]:
    """A colour for each model by name: grey for raw clicks, green for labels."""
    others = [model.name for model in models if not model.is_bound]
    found = {name: _PALETTE[number % len(_PALETTE)] for number, name in enumerate(others)}
    found |= {model.name: GREY for model in models if model.manifest.method == LOWER}
    return found | {model.name: GREEN for model in models if model.manifest.method == UPPER}
