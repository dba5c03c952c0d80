"""Relevance models: how r(x) is computed and learned."""

from ultr.relevance.inputs import Documents, Inputs
from ultr.relevance.mlp import MLP
from ultr.relevance.preprocessing import InputLayout, Preprocessing
from ultr.relevance.relevance_model import Relevance, RelevanceModel
from ultr.relevance.trees import Trees

__all__ = ["MLP", "Documents", "InputLayout", "Inputs", "Preprocessing", "Relevance", "RelevanceModel", "Trees"]
