"""The methods by name."""

from __future__ import annotations

from pathlib import Path

from ultr import checks
from ultr.methods import model_file
from ultr.methods.affine import Affine
from ultr.methods.click_baseline import ClickBaseline
from ultr.methods.dla import DLA
from ultr.methods.estimator import Estimator
from ultr.methods.inverse_propensity import InversePropensity
from ultr.methods.label_baseline import LabelBaseline
from ultr.methods.pair_debias import PairDebias
from ultr.methods.regression_em import RegressionEM
from ultr.methods.vectorization import Vectorization

METHODS: dict[str, type[Estimator]] = {
    method.name: method
    for method in (
        Vectorization,
        Affine,
        DLA,
        RegressionEM,
        PairDebias,
        InversePropensity,
        ClickBaseline,
        LabelBaseline,
    )
}


def method(name: str) -> type[Estimator]:
    """The estimator class of this name."""
    return METHODS[checks.one_of("method", name, METHODS)]


def load(folder: str | Path) -> Estimator:
    """The ranker that was saved in a folder."""
    manifest = model_file.load_manifest(folder)
    return method(manifest.method).from_saved(manifest, folder)
