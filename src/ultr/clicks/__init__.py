"""Click models: how users click on a shown list whose grades are known. No torch here."""

from ultr.clicks.examination_chain import Cascade as Cascade
from ultr.clicks.examination_chain import Chain as Chain
from ultr.clicks.examination_chain import DependentClick as DependentClick
from ultr.clicks.examination_chain import DynamicBayesian as DynamicBayesian
from ultr.clicks.examination_chain import ExaminationChain as ExaminationChain
from ultr.clicks.independent import IndependentClicks as IndependentClicks
from ultr.clicks.matrix import ClickMatrix as ClickMatrix
from ultr.clicks.model import EXAMINATION as EXAMINATION
from ultr.clicks.model import ClickModel as ClickModel
from ultr.clicks.model import checked_impressions as checked_impressions
from ultr.clicks.model import checked_labels as checked_labels
from ultr.clicks.model import relevance as relevance
from ultr.clicks.position_based import PositionBased as PositionBased
from ultr.clicks.registry import CLICK_MODELS as CLICK_MODELS
from ultr.clicks.registry import click_model as click_model
from ultr.clicks.registry import register as register
from ultr.clicks.trust_bias import TrustBias as TrustBias
from ultr.clicks.user_browsing import UserBrowsing as UserBrowsing
