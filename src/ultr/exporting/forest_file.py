"""A ranker by trees as the model file of a search engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ultr import checks
from ultr.arrays import Doubles, Floats
from ultr.data.categories import OTHER, UNSEEN
from ultr.errors import ExportError, OptionError
from ultr.exporting.engines.targets import TARGETS, Target
from ultr.files import check_new_file, new_file, write_json
from ultr.methods.estimator import Estimator
from ultr.methods.ranker import Ranker
from ultr.relevance.trees import BoostedTrees
from ultr.scoring.forest import LEAF, Forest
from ultr.train.bounded import LOGGED, Bounded

ROWS = 300
"""Documents of each kind that a file is checked on."""
BLANK = 0.1
"""The share of features that are missing where that is checked."""
ALLOWED = 1e-5
"""Largest difference of scores, as a share of the largest score."""


@dataclass(frozen=True)
class ForestExport:
    """A file that was written, and its check against the model."""

    target: str
    trees: int
    size: int
    """Bytes of the file."""
    documents: int
    """Documents that it was checked on."""
    largest_difference: float
    shift: float
    """Added to every score, so that none is below 0; the order stays."""
    knows_missing: bool
    categories: str | None
    """The file beside it with the codes of the values of categorical features; None if there are none."""


def export_forest(
    ranker: Ranker | Estimator,
    path: str | Path,
    *,
    to: str,
    feature_map: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> ForestExport:
    """Write a ranker by trees as the model file of an engine and check it; what disagrees is not written.

    `feature_map` has the engine's own name of a feature by its name in the log. The check is on documents of the
    training data, on the same with missing values, and on values right beside thresholds. Engines take categorical
    features as codes; `PATH.categories.json` has the code of each value, and of those that were never seen.
    """
    ranker = ranker.ranker_ if isinstance(ranker, Estimator) else ranker
    target = TARGETS[checks.one_of("target", to, TARGETS)]
    check_new_file(path, overwrite=overwrite)
    beside = Path(f"{path}.categories.json") if ranker.categories else None
    if beside is not None:
        check_new_file(beside, overwrite=overwrite)
    if ranker.sample is None:
        raise OptionError("the model was saved without candidates to check its export on; train it again")
    forest, names = forest_of(ranker), _names(ranker, feature_map or {})
    if forest is None:
        what, way = "is a network", "with --relevance trees"
        if LOGGED in ranker.model.by_name:
            what, way = "keeps within a bound of the logged order", "without --safe"
        raise OptionError(
            f"{to} takes trees, and the model {what}; let it teach a forest (--distil), which tells what that costs, "
            f"train it {way}, or use onnx"
        )
    shift = 0.0 if target.knows_negative else max(-forest.lowest(), 0.0)
    content = target.write(forest.add(Forest.constant(shift)) if shift else forest, names, Path(path).stem)
    rows = _rows(forest, ranker.sample.features, target)
    expected: Doubles = forest.predict(rows, 1)[:, 0] + shift
    difference = float(np.abs(target.score(content, names, rows) - expected).max())
    if not difference <= ALLOWED * max(float(np.abs(expected).max()), 1.0):
        raise ExportError(
            f"the file for {to} scores documents otherwise than the model, by up to {difference:.2g}; "
            "nothing was written, please report this"
        )
    if beside is not None:
        write_json(beside, _codes(ranker, names))
    with new_file(path, overwrite=overwrite) as draft:
        draft.write_text(content, "utf-8")
    return ForestExport(
        target=to,
        trees=len(forest),
        size=len(content.encode()),
        documents=len(rows),
        largest_difference=difference,
        shift=shift,
        knows_missing=target.knows_missing,
        categories=None if beside is None else str(beside),
    )


def forest_of(ranker: Ranker) -> Forest | None:
    """The forest that a ranker scores with, or the sum of several; None if it is more or something else."""
    ranking = ranker.model.ranking
    if isinstance(ranking, Bounded):
        return None
    models = ranker.model.scoring
    forests = {name: model.forest for name, model in models.items() if isinstance(model, BoostedTrees)}
    if len(forests) < len(models):
        return None
    if len(forests) == 1:
        return next(iter(forests.values()))
    # Scores that trees make up alone are sums with fixed weights, whatever the list.
    directions = ranking.directions(torch.zeros(1, 1, len(models)), torch.ones(1, 1, dtype=torch.bool))
    scaled = [forests[name].project(vector.double().numpy()) for name, vector in directions.items()]
    return reduce(Forest.add, scaled)


def _names(ranker: Ranker, feature_map: Mapping[str, str]) -> list[str]:
    for name in feature_map:
        checks.one_of("feature of the model", name, ranker.feature_names)
    names = [feature_map.get(name, name) for name in ranker.feature_names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise OptionError(f"the feature map gives two features the name {twice!r}; give each one of its own")
    return names


def _codes(ranker: Ranker, names: Sequence[str]) -> dict[str, Any]:
    """The codes of each categorical feature by the engine's name of it."""
    return {
        names[column]: {
            "codes": {value: code for code, value in enumerate(values)},
            "never seen": values.index(OTHER) if OTHER in values else UNSEEN,
        }
        for column, values in ranker.preprocessing.categories.items()
    }


def _rows(forest: Forest, features: Floats, target: Target) -> Floats:
    """Documents to check on: real ones, these with missing values, thresholds and their neighbours, zeros and so on."""
    random = np.random.default_rng(0)
    real = features[random.permutation(len(features))[:ROWS]]
    blanked = np.where(random.random(real.shape) < BLANK, np.float32("nan"), real)
    largest = np.finfo(np.float32).max
    thresholds = forest.thresholds[(forest.features != LEAF) & (forest.thresholds < largest)]
    near = [np.nextafter(thresholds, np.float32(end)) for end in (-np.inf, np.inf)]
    special = np.array([0.0, -0.0, 1e30, -1e30, np.nan], dtype=np.float32)
    values = np.concatenate([thresholds, *near, special])
    told_apart = values[~((np.abs(values) < target.finest) & (values != 0))]
    drawn = random.choice(told_apart, size=(ROWS, real.shape[1]))
    rows = np.concatenate([real, blanked, drawn])
    return rows if target.knows_missing else np.nan_to_num(rows, nan=0.0)
