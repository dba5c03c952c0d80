"""Unbiased learning to rank from click logs.

    from ultr import ClickLog, Vectorization

    log = ClickLog.load("log/")
    ranker = Vectorization(dimension=3).fit(log)
    scores = ranker.score(candidates, offsets)
    ranker.save("ranker/")

Names are imported when they are first used, so that `import ultr` costs nothing and works without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ultr.version import __version__

if TYPE_CHECKING:
    from ultr.bias.propensities import click_rate_propensities as click_rate_propensities
    from ultr.bias.propensities import read_propensities as read_propensities
    from ultr.clicks.registry import click_model as click_model
    from ultr.data.bias_factor import numeric_factor as numeric_factor
    from ultr.data.click_log import ClickLog as ClickLog
    from ultr.data.judged import JudgedLists as JudgedLists
    from ultr.data.shown_rows import log_of_rows as log_of_rows
    from ultr.datasets.layouts import read_layout as read_layout
    from ultr.datasets.letor_like import letor_like as letor_like
    from ultr.datasets.svmlight import read_svmlight as read_svmlight
    from ultr.datasets.table_file import read_table as read_table
    from ultr.diagnosis.diagnosis import diagnose as diagnose
    from ultr.evaluation.comparison import compare as compare
    from ultr.evaluation.counterfactual import counterfactual_value as counterfactual_value
    from ultr.evaluation.judged import evaluate as evaluate
    from ultr.explanation.explain import explain as explain
    from ultr.exporting.distillation import distil as distil
    from ultr.exporting.export import export as export
    from ultr.exporting.forest_file import export_forest as export_forest
    from ultr.methods.affine import Affine as Affine
    from ultr.methods.auto import Auto as Auto
    from ultr.methods.click_baseline import ClickBaseline as ClickBaseline
    from ultr.methods.dla import DLA as DLA
    from ultr.methods.doubly_robust import DoublyRobust as DoublyRobust
    from ultr.methods.inverse_propensity import InversePropensity as InversePropensity
    from ultr.methods.label_baseline import LabelBaseline as LabelBaseline
    from ultr.methods.lbd import LBD as LBD
    from ultr.methods.lightgbm_ranker import LightGBMRanker as LightGBMRanker
    from ultr.methods.pair_debias import PairDebias as PairDebias
    from ultr.methods.ranker import Ranker as Ranker
    from ultr.methods.registry import load as load
    from ultr.methods.regression_em import RegressionEM as RegressionEM
    from ultr.methods.safe import make_safe as make_safe
    from ultr.methods.two_tower import TwoTower as TwoTower
    from ultr.methods.upe import UPE as UPE
    from ultr.methods.vectorization import Vectorization as Vectorization
    from ultr.methods.xgboost_ranker import XGBoostRanker as XGBoostRanker
    from ultr.preparation.log import prepare as prepare
    from ultr.preparation.log import read_log as read_log
    from ultr.relevance.mlp import MLP as MLP
    from ultr.relevance.trees import Trees as Trees
    from ultr.simulation.log import simulate as simulate
    from ultr.tuning.tuning import tune as tune

_NAMES = {
    "ultr.bias": ("click_rate_propensities", "read_propensities"),
    "ultr.clicks": ("click_model",),
    "ultr.data.bias_factor": ("numeric_factor",),
    "ultr.data.click_log": ("ClickLog",),
    "ultr.data.judged": ("JudgedLists",),
    "ultr.data.shown_rows": ("log_of_rows",),
    "ultr.datasets.layouts": ("read_layout",),
    "ultr.datasets.letor_like": ("letor_like",),
    "ultr.datasets.svmlight": ("read_svmlight",),
    "ultr.datasets.table_file": ("read_table",),
    "ultr.diagnosis": ("diagnose",),
    "ultr.evaluation": ("compare", "counterfactual_value", "evaluate"),
    "ultr.explanation": ("explain",),
    "ultr.exporting": ("distil", "export", "export_forest"),
    "ultr.methods": (
        *("Affine", "Auto", "ClickBaseline", "DLA", "DoublyRobust", "InversePropensity", "LBD", "LabelBaseline"),
        *("LightGBMRanker", "PairDebias", "RegressionEM", "TwoTower", "UPE", "Vectorization", "XGBoostRanker", "load"),
    ),
    "ultr.methods.ranker": ("Ranker",),
    "ultr.methods.safe": ("make_safe",),
    "ultr.preparation.log": ("prepare", "read_log"),
    "ultr.relevance": ("MLP", "Trees"),
    "ultr.simulation": ("simulate",),
    "ultr.tuning": ("tune",),
}
"""The names of the package, by the part that has them."""
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ultr' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from ultr.errors import MissingExtraError, how_to_install

        raise MissingExtraError(f"ultr.{name} needs torch; install it with: {how_to_install('train')}") from error


def __dir__() -> list[str]:
    return __all__
