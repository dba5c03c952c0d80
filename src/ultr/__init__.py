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

_HOMES = {
    "Affine": "ultr.methods.affine",
    "Auto": "ultr.methods.auto",
    "DLA": "ultr.methods.dla",
    "ClickBaseline": "ultr.methods.click_baseline",
    "ClickLog": "ultr.data.click_log",
    "DoublyRobust": "ultr.methods.doubly_robust",
    "UPE": "ultr.methods.upe",
    "LBD": "ultr.methods.lbd",
    "InversePropensity": "ultr.methods.inverse_propensity",
    "JudgedLists": "ultr.data.judged",
    "LabelBaseline": "ultr.methods.label_baseline",
    "LightGBMRanker": "ultr.methods.lightgbm_ranker",
    "MLP": "ultr.relevance.mlp",
    "Trees": "ultr.relevance.trees",
    "PairDebias": "ultr.methods.pair_debias",
    "Ranker": "ultr.methods.ranker",
    "RegressionEM": "ultr.methods.regression_em",
    "TwoTower": "ultr.methods.two_tower",
    "Vectorization": "ultr.methods.vectorization",
    "XGBoostRanker": "ultr.methods.xgboost_ranker",
    "click_model": "ultr.clicks.registry",
    "click_rate_propensities": "ultr.bias.propensities",
    "compare": "ultr.evaluation.comparison",
    "counterfactual_value": "ultr.evaluation.counterfactual",
    "diagnose": "ultr.diagnosis.diagnosis",
    "distil": "ultr.exporting.distillation",
    "evaluate": "ultr.evaluation.judged",
    "explain": "ultr.explanation.explain",
    "export": "ultr.exporting.export",
    "export_forest": "ultr.exporting.forest_file",
    "letor_like": "ultr.datasets.letor_like",
    "load": "ultr.methods.registry",
    "log_of_rows": "ultr.data.shown_rows",
    "make_safe": "ultr.methods.safe",
    "numeric_factor": "ultr.data.bias_factor",
    "prepare": "ultr.preparation.log",
    "read_layout": "ultr.datasets.layouts",
    "read_log": "ultr.preparation.log",
    "read_propensities": "ultr.bias.propensities",
    "read_svmlight": "ultr.datasets.svmlight",
    "read_table": "ultr.datasets.table_file",
    "simulate": "ultr.simulation.log",
    "tune": "ultr.tuning.tuning",
}

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
