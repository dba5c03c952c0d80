"""Exported rankers: files that score candidates without torch."""

from ultr.scoring.card import FORMS, Card
from ultr.scoring.scorer import Scorer

__all__ = ["FORMS", "Card", "Scorer"]
