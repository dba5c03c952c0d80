"""Click models: how users click on a shown list whose grades are known. No torch here."""

from ultr.clicks.cascade import Cascade
from ultr.clicks.dependent_click import DependentClick
from ultr.clicks.dynamic_bayesian import DynamicBayesian
from ultr.clicks.matrix import ClickMatrix
from ultr.clicks.model import EXAMINATION, ClickModel, relevance
from ultr.clicks.position_based import PositionBased
from ultr.clicks.registry import CLICK_MODELS, click_model
from ultr.clicks.trust_bias import TrustBias
from ultr.clicks.user_browsing import UserBrowsing

__all__ = [
    "CLICK_MODELS",
    "EXAMINATION",
    "Cascade",
    "ClickMatrix",
    "ClickModel",
    "DependentClick",
    "DynamicBayesian",
    "PositionBased",
    "TrustBias",
    "UserBrowsing",
    "click_model",
    "relevance",
]
