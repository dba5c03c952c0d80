"""Why a ranker ranks as it does: features of single candidates, and of all of them."""

from ultr.explanation.explain import explain
from ultr.explanation.importance import Importance, importance_by_clicks, importance_by_labels

__all__ = ["Importance", "explain", "importance_by_clicks", "importance_by_labels"]
