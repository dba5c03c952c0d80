"""What every exported ranker keeps to.

@pytest.mark.parametrize("method", [Additive])
class TestExportsOfAdditive(ExportContract): ...
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from ultr.data.judged import JudgedLists
from ultr.errors import UltrWarning
from ultr.exporting import export
from ultr.methods.estimator import Estimator
from ultr.relevance import MLP, Relevance
from ultr.scoring import Scorer
from ultr.testing.methods import Data, mixed, small_lists, small_log


class ExportContract:
    """Tests of the exported rankers of the estimator class `method`."""

    relevance: ClassVar[Relevance] = MLP(hidden=(16,), steps=30, batch_size=32)
    """The relevance model that it is tested with."""

    @pytest.mark.parametrize("way", [{"form": "lists"}, {"form": "flat"}, {"pointwise": True}], ids=str)
    def test_an_exported_file_scores_like_the_ranker(
        self, method: type[Estimator], way: dict[str, Any], tmp_path: Path
    ) -> None:
        """On candidates that it has not seen; a value that was never missing in training counts as typical if it is."""
        test = small_lists().test
        data: Data = small_lists().train if method.learns_from is JudgedLists else small_log()
        if way == {"form": "flat"}:
            # One form stands for all: each method is exported with every kind of feature.
            data, test = mixed(data), mixed(test)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UltrWarning)
            ranker = method(relevance=self.relevance).fit(data).ranker_
        made = export(ranker, tmp_path / "ranker.onnx", lists=test, **way)
        scorer = Scorer.load(tmp_path / "ranker.onnx")
        assert scorer.card.method == method.name
        assert tuple(scorer.card.feature_names) == ranker.feature_names
        assert scorer.card.categories == ranker.categories
        scores = scorer.score(test.features, test.offsets)
        if "form" in way:
            wanted = ranker.score(test.features, test.offsets)
            np.testing.assert_allclose(scores, wanted, atol=1e-3 * float(np.std(wanted)) + 1e-5)
        blank = test.features[:20].copy()
        blank[:, 3] = np.nan
        filled = blank.copy()
        filled[:, 3] = ranker.scaling.typical[3]
        np.testing.assert_allclose(scorer.score(blank), scorer.score(filled), rtol=1e-4, atol=1e-5)
        assert made.parity.kendall_tau > 0.999
