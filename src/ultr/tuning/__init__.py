"""Hyper-parameter search by held-out clicks."""

from ultr.tuning.tuning import Tuning as Tuning
from ultr.tuning.tuning import tune as tune
