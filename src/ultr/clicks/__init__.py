"""Click models: how users click on a shown list whose grades are known. No torch here."""

from ultr.clicks.cascade import Cascade
from ultr.clicks.dependent_click import DependentClick
from ultr.clicks.dynamic_bayesian import DynamicBayesian
from ultr.clicks.examination_chain import Chain, ExaminationChain
from ultr.clicks.independent import IndependentClicks
from ultr.clicks.matrix import ClickMatrix
from ultr.clicks.model import EXAMINATION, ClickModel, checked_impressions, checked_labels, relevance
from ultr.clicks.position_based import PositionBased
from ultr.clicks.registry import CLICK_MODELS, click_model, register
from ultr.clicks.trust_bias import TrustBias
from ultr.clicks.user_browsing import UserBrowsing

__all__ = [
    "CLICK_MODELS",
    "EXAMINATION",
    "Cascade",
    "Chain",
    "ClickMatrix",
    "ClickModel",
    "DependentClick",
    "DynamicBayesian",
    "ExaminationChain",
    "IndependentClicks",
    "PositionBased",
    "TrustBias",
    "UserBrowsing",
    "checked_impressions",
    "checked_labels",
    "click_model",
    "register",
    "relevance",
]
