"""Losses as pure functions of tensors and a mask."""

from ultr.losses.gaussian import gaussian_loss as gaussian_loss
from ultr.losses.listwise import centred_squared_error as centred_squared_error
from ultr.losses.listwise import first_over_each as first_over_each
from ultr.losses.listwise import list_log_softmax as list_log_softmax
from ultr.losses.listwise import order_loss as order_loss
from ultr.losses.listwise import softmax_cross_entropy as softmax_cross_entropy
from ultr.losses.pairwise import lambdarank_loss as lambdarank_loss
from ultr.losses.pointwise import click_likelihood_loss as click_likelihood_loss
