"""Click models by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ultr import checks
from ultr.clicks.cascade import Cascade
from ultr.clicks.dependent_click import DependentClick
from ultr.clicks.dynamic_bayesian import DynamicBayesian
from ultr.clicks.matrix import ClickMatrix
from ultr.clicks.model import ClickModel
from ultr.clicks.position_based import PositionBased
from ultr.clicks.trust_bias import TrustBias
from ultr.clicks.user_browsing import UserBrowsing

CLICK_MODELS: dict[str, type[Any]] = {
    model.name: model
    for model in (ClickMatrix, TrustBias, PositionBased, UserBrowsing, Cascade, DependentClick, DynamicBayesian)
}


def click_model(name: str, **options: object) -> ClickModel:
    """The click model of this name with these options.

    >>> click_model("cascade", noise=0.2)
    Cascade(noise=0.2, positions=10)
    """
    chosen = CLICK_MODELS[checks.one_of("click model", name, CLICK_MODELS)]
    known = [field.name for field in fields(chosen)]
    for option in options:
        checks.one_of(f"an option of click model {name}", option, known)
    model: ClickModel = chosen(**options)
    return model
