"""Losses as pure functions of tensors and a mask."""

from ultr.losses.gaussian import gaussian_loss
from ultr.losses.listwise import centred_squared_error, list_log_softmax, softmax_cross_entropy
from ultr.losses.pointwise import click_likelihood_loss

__all__ = [
    "centred_squared_error",
    "click_likelihood_loss",
    "gaussian_loss",
    "list_log_softmax",
    "softmax_cross_entropy",
]
