"""Losses as pure functions of tensors and a mask."""

from ultr.losses.gaussian import gaussian_loss
from ultr.losses.listwise import (
    centred_squared_error,
    first_over_each,
    list_log_softmax,
    order_loss,
    softmax_cross_entropy,
)
from ultr.losses.pairwise import lambdarank_loss
from ultr.losses.pointwise import click_likelihood_loss

__all__ = [
    "centred_squared_error",
    "click_likelihood_loss",
    "first_over_each",
    "gaussian_loss",
    "lambdarank_loss",
    "list_log_softmax",
    "order_loss",
    "softmax_cross_entropy",
]
