"""A ranker as an ONNX file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ultr import checks
from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.data.judged import JudgedLists
from ultr.data.missing_values import by_name
from ultr.errors import DataError, OptionError
from ultr.exporting.cost import Cost, cost_of
from ultr.exporting.graph import as_onnx
from ultr.exporting.parity import Parity, parity
from ultr.files import check_new_file, new_file
from ultr.methods.estimator import Estimator
from ultr.methods.model_file import weights_digest
from ultr.methods.ranker import Ranker
from ultr.scoring import LIST_FORMS, Card, Scorer
from ultr.train.bounded import Bounded
from ultr.train.lists import pad
from ultr.train.selection import score_lists
from ultr.version import __version__


@dataclass(frozen=True)
class Export:
    """The file that was written, and its agreement with the model."""

    card: Card
    size: int
    """Bytes of the file."""
    parity: Parity
    cost: Cost | None
    """None unless the ranker is pointwise, or where no candidate is relevant."""

    def as_json(self) -> dict[str, Any]:
        """The figures."""
        return {
            "card": self.card.model_dump(),
            "bytes": self.size,
            "parity": vars(self.parity),
            "cost": None if self.cost is None else asdict(self.cost),
        }


def export(
    ranker: Ranker | Estimator,
    path: str | Path,
    *,
    form: str = "lists",
    pointwise: bool = False,
    lists: JudgedLists | None = None,
    overwrite: bool = False,
) -> Export:
    """Write a fitted ranker as an ONNX file and check it against the model; what disagrees is not written.

    Args:
        ranker: A fitted estimator, or the ranker that `load` gave.
        path: The file.
        form: `lists` takes `[queries, documents, features]` and a mask, `flat` takes `[documents, features]` and
            offsets.
        pointwise: For engines that score one document at a time: takes `[documents, features]`, with the base vector
            of each query replaced by the mean over training queries.
        lists: Candidates to check on; by default those that were kept of the training data.
        overwrite: Whether the file may exist.

    """
    ranker = ranker.ranker_ if isinstance(ranker, Estimator) else ranker
    checks.one_of("form", form, LIST_FORMS)
    check_new_file(path, overwrite=overwrite)
    examined = lists if lists is not None else ranker.sample
    if examined is None:
        raise OptionError("the model was saved without candidates to check its export on; give some (--data)")
    if examined.feature_names != ranker.feature_names:
        raise DataError(
            f"the model knows {len(ranker.feature_names)} features, the candidates to check it on have "
            f"{len(examined.feature_names)}, or other names; give it the data it was trained for"
        )
    card = Card.model_validate(
        {
            "form": "documents" if pointwise else form,
            "method": ranker.method,
            "pointwise": pointwise,
            "feature_names": ranker.feature_names,
            "typical": ranker.scaling.typical.tolist(),
            "categories": ranker.categories,
            "missing": by_name(ranker.scaling.missing, ranker.feature_names),
            "minimum": ranker.scaling.minimum.tolist(),
            "maximum": ranker.scaling.maximum.tolist(),
            "model_digest": weights_digest(ranker.model),
            "data_fingerprint": ranker.data_fingerprint,
            "versions": {"ultr": __version__, "torch": str(torch.__version__)},
        }
    )
    reference: Ranker | _Pointwise = ranker
    models = [*ranker.model.scoring.values()]
    if pointwise:
        reference = _Pointwise(ranker)
        models = reference.models
    content = as_onnx(ranker, models, card)
    scorer = Scorer.of_bytes(content, file=path)
    found = parity(
        reference,
        scorer,
        examined,
        categorical=list(ranker.preprocessing.categories),
        by_rank=isinstance(ranker.model.ranking, Bounded),
    )
    found.check()
    cost = cost_of(ranker, scorer, examined) if pointwise else None
    with new_file(path, overwrite=overwrite) as draft:
        draft.write_bytes(content)
    return Export(card, len(content), found, cost)


class _Pointwise:
    """The ranker with what lists add to a score fixed at its mean over the training lists that were kept."""

    def __init__(self, ranker: Ranker) -> None:
        sample = ranker.sample
        if sample is None:
            raise OptionError(
                "the model was saved without training lists, which a pointwise file needs; train it again"
            )
        self._ranker = ranker
        mask = torch.from_numpy(ragged.mask(sample.offsets, width=int(np.diff(sample.offsets).max())))
        ranking = ranker.model.ranking
        r = torch.from_numpy(ranker.outputs(sample.features, ranking.ranks_with))
        with torch.no_grad():
            directions = ranking.directions(pad(r, mask), mask)
        self.models = [ranker.model.by_name[name].project(vector) for name, vector in directions.items()]

    def score(self, features: Floats, offsets: Integers) -> Floats:
        """Scores, whatever the lists."""
        inputs = self._ranker.inputs(features)
        return score_lists(
            lambda documents, _: torch.stack([model(documents) for model in self.models]).sum(dim=0).squeeze(-1),
            inputs,
            offsets,
        )
