"""One file a published method."""

from ultr.methods.affine import Affine
from ultr.methods.auto import Auto
from ultr.methods.click_baseline import ClickBaseline
from ultr.methods.dla import DLA
from ultr.methods.doubly_robust import DoublyRobust
from ultr.methods.inverse_propensity import InversePropensity
from ultr.methods.label_baseline import LabelBaseline
from ultr.methods.lbd import LBD
from ultr.methods.lightgbm_ranker import LightGBMRanker
from ultr.methods.pair_debias import PairDebias
from ultr.methods.registry import METHODS, load, method, methods_with, register
from ultr.methods.regression_em import RegressionEM
from ultr.methods.two_tower import TwoTower
from ultr.methods.upe import UPE
from ultr.methods.vectorization import Vectorization
from ultr.methods.xgboost_ranker import XGBoostRanker

__all__ = [
    "DLA",
    "LBD",
    "METHODS",
    "UPE",
    "Affine",
    "Auto",
    "ClickBaseline",
    "DoublyRobust",
    "InversePropensity",
    "LabelBaseline",
    "LightGBMRanker",
    "PairDebias",
    "RegressionEM",
    "TwoTower",
    "Vectorization",
    "XGBoostRanker",
    "load",
    "method",
    "methods_with",
    "register",
]
