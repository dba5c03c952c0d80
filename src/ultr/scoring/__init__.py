"""Exported rankers: files that score candidates without torch."""

from ultr.scoring.card import FORMS, LIST_FORMS, Card
from ultr.scoring.scorer import Scorer

__all__ = ["FORMS", "LIST_FORMS", "Card", "Scorer"]
