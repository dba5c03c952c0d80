"""One file a published method."""

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
from ultr.methods.registry import METHODS as METHODS
from ultr.methods.registry import load as load
from ultr.methods.registry import method as method
from ultr.methods.registry import methods_with as methods_with
from ultr.methods.registry import register as register
from ultr.methods.regression_em import RegressionEM as RegressionEM
from ultr.methods.two_tower import TwoTower as TwoTower
from ultr.methods.upe import UPE as UPE
from ultr.methods.vectorization import Vectorization as Vectorization
from ultr.methods.xgboost_ranker import XGBoostRanker as XGBoostRanker
