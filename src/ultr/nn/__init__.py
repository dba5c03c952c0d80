"""The networks that every method shares."""

from ultr.nn.mlp import MLP
from ultr.nn.observation import Observation

__all__ = ["MLP", "Observation"]
