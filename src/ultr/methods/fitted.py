"""All that an estimator can do once it is fitted, by its ranker."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Generic

from ultr.arrays import Doubles, Floats, Integers
from ultr.data.click_log import ClickLog
from ultr.errors import NotFittedError
from ultr.methods.origin import Origin
from ultr.methods.ranker import Ranker
from ultr.train.ranking_model import ObjectiveT


class Fitted(Generic[ObjectiveT]):
    """An estimator with a ranker, or a `NotFittedError` as long as it has none."""

    ranker_: Ranker[ObjectiveT]

    def score(self, features: object, offsets: Integers | None = None, *, ids: Collection[str] = ()) -> Floats:
        """Scores of candidates by the fitted ranker; see `Ranker.score`."""
        return self.ranker_.score(features, offsets, ids=ids)

    def predict(self, features: object, *, qid: object = None, group: object = None) -> Floats:
        """The same by the query of each row, as XGBoost and LightGBM call it; see `Ranker.predict`."""
        return self.ranker_.predict(features, qid=qid, group=group)

    def click_shares(self, log: ClickLog) -> Doubles:
        """Predicted shares of clicks by the fitted ranker; see `Ranker.click_shares`."""
        return self.ranker_.click_shares(log)

    def click_probabilities(self, log: ClickLog) -> Doubles:
        """Predicted click probabilities by the fitted ranker; see `Ranker.click_probabilities`."""
        return self.ranker_.click_probabilities(log)

    def predict_clicks(self, log: ClickLog) -> tuple[Doubles, Doubles]:
        """Predicted shares and probabilities of clicks by the fitted ranker; see `Ranker.predict_clicks`."""
        return self.ranker_.predict_clicks(log)

    def click_ratios(self, log: ClickLog, factor: str) -> Doubles:
        """Predicted ratios of clicks by the fitted ranker; see `Ranker.click_ratios`."""
        return self.ranker_.click_ratios(log, factor)

    def save(self, folder: str | Path, *, overwrite: bool = False, origin: Origin | None = None) -> None:
        """Write the fitted ranker as a folder; see `Ranker.save`."""
        self.ranker_.save(folder, overwrite=overwrite, origin=origin)

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """The features of the fitted ranker."""
        return self.ranker_.feature_names

    @property
    def history_(self) -> list[Any]:
        """The learning curve of the fitted ranker."""
        return list(self.ranker_.history)

    def _repr_html_(self) -> str | None:
        """The fitted ranker as a notebook shows it; nothing before, so that the notebook shows the options."""
        return self.ranker_._repr_html_() if "ranker_" in vars(self) else None

    def __getattr__(self, name: str) -> Any:
        if name == "ranker_":
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
