"""The kinds of model files by name: how each is written, and how its engine scores with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from ultr.arrays import Doubles, Floats
from ultr.errors import imported
from ultr.exporting.engines import elastic, interpreters, lightgbm_text, ranklib, solr, xgboost_dump, xgboost_model
from ultr.scoring.forest import Forest


@dataclass(frozen=True)
class Target:
    """A kind of model file."""

    write: Callable[[Forest, Sequence[str], str], str]
    """The content of the file from a forest, the engine's names of its features, and a name for the model."""
    score: Callable[[str, Sequence[str], Floats], Doubles]
    """Scores of documents by such a file, from its content, the names and the features, NaN where one is missing."""
    ending: str = "json"
    knows_missing: bool = True
    knows_negative: bool = False
    """True if scores may be below 0; Lucene refuses them."""
    finest: float = 0.0
    """Values closer to 0 than this cannot be told from it."""


def interpreted(read: Callable[[str, Sequence[str]], interpreters.Score]) -> Callable[..., Doubles]:
    """Scores by an interpreter of the engine's rules, one document after the other."""

    def score(content: str, names: Sequence[str], features: Floats) -> Doubles:
        of_document = read(content, names)
        rows = ([None if isnan(value) else value for value in row] for row in features.tolist())
        return np.array([of_document(dict(zip(names, row, strict=True))) for row in rows])

    return score


def _by_lightgbm(content: str, _: Sequence[str], features: Floats) -> Doubles:
    lightgbm = _library("lightgbm", "trees")
    scores: Doubles = lightgbm.Booster(model_str=content).predict(features, raw_score=True)
    return scores


def _by_xgboost(content: str, names: Sequence[str], features: Floats) -> Doubles:
    xgboost = _library("xgboost", "xgboost")
    booster = xgboost.Booster(model_file=bytearray(content.encode()))
    data = xgboost.DMatrix(features, feature_names=list(names))
    return np.asarray(booster.predict(data, output_margin=True), dtype=np.float64)


def _library(name: str, extra: str) -> Any:
    return imported(name, extra, why=f"a file for {name} is checked with the library itself")


PLUGIN = Target(
    lambda forest, names, name: json.dumps(
        {
            "model": {
                "name": name,
                "model": {"type": "model/xgboost+json", "definition": xgboost_dump.definition(forest, names)},
            }
        }
    ),
    interpreted(interpreters.plugin),
)
TARGETS: dict[str, Target] = {
    "lightgbm": Target(
        lambda forest, names, _: lightgbm_text.model_text(forest, names),
        _by_lightgbm,
        ending="txt",
        knows_negative=True,
    ),
    "xgboost": Target(
        lambda forest, names, _: json.dumps(xgboost_model.model(forest, names), ensure_ascii=False),
        _by_xgboost,
        knows_negative=True,
    ),
    "elasticsearch-ltr": PLUGIN,
    "opensearch-ltr": PLUGIN,
    "elastic": Target(
        lambda forest, names, _: json.dumps(elastic.trained_model(forest, names)), interpreted(interpreters.elastic)
    ),
    "solr": Target(
        lambda forest, names, name: json.dumps(solr.model(forest, names, name=name)),
        interpreted(interpreters.solr),
        # Next to its slack of 1e-6, in float32.
        finest=1e-12,
    ),
    "vespa": Target(
        lambda forest, names, _: json.dumps(lightgbm_text.dump(forest, names)),
        interpreted(interpreters.vespa),
        knows_negative=True,
    ),
    "ranklib": Target(
        lambda forest, _, __: ranklib.ensemble(forest),
        interpreted(interpreters.ranklib),
        ending="xml",
        knows_missing=False,
    ),
}
