"""Click models by name."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from ultr import checks
from ultr.clicks.examination_chain import Cascade, DependentClick, DynamicBayesian
from ultr.clicks.matrix import ClickMatrix
from ultr.clicks.model import ClickModel
from ultr.clicks.position_based import PositionBased
from ultr.clicks.trust_bias import TrustBias
from ultr.clicks.user_browsing import UserBrowsing
from ultr.open_family import Registry


def _fault(kind: type) -> str | None:
    if not is_dataclass(kind):
        return "be a frozen dataclass whose fields are its options"
    known = {field.name for field in fields(kind)}.union(dir(kind))
    missing = [name for name in ("positions", "probabilities", "counts", "sessions") if name not in known]
    return f"have {', '.join(missing)}, as ultr.clicks.ClickModel says" if missing else None


CLICK_MODELS: Registry[Any] = Registry(
    "click model",
    "ultr.click_models",
    (ClickMatrix, TrustBias, PositionBased, UserBrowsing, Cascade, DependentClick, DynamicBayesian),
    fault=_fault,
)
register = CLICK_MODELS.register


def click_model(name: str, **options: object) -> ClickModel:
    """The click model of this name with these options.

    >>> click_model("cascade", noise=0.2)
    Cascade(noise=0.2, positions=10)
    """
    chosen = CLICK_MODELS.choose(name)
    known = [field.name for field in fields(chosen)]
    for option in options:
        checks.one_of(f"an option of click model {name}", option, known)
    model: ClickModel = chosen(**options)
    return model
