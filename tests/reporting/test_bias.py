"""The curves that a model learned: which are shown, of whom, and what is said of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reporting.fakes import FACTORS, LOG, model

from ultr.data.click_log import ClickLog
from ultr.methods.factors import factors_of
from ultr.reporting import bias as module
from ultr.reporting.bias import _by_score, _sample, bias
from ultr.reporting.inputs import ReportInputs

POSITION, DEVICE = FACTORS
CURVES = {"position": [1.0, 0.5, 0.25], "device": [1.0, 2.0]}
TIMES = (
    "How many times as many clicks the same documents get under each level as under the first, by what each model "
    "learned. A flat line at 1 is a model that knows no bias."
)
OF_PAGES = (
    " device is the same for a whole page: how much it is clicked altogether, clicks within pages do not tell, but how "
    "far down its users look they do."
)


def _inputs(*others: Any, log: ClickLog | None = LOG, **subject: Any) -> ReportInputs:
    new = model("new", factors=FACTORS, ratios=CURVES, **subject)
    return ReportInputs((new, *others), log=log, chosen="new")


def test_position_is_shown_for_every_model_and_a_page_wide_factor_by_its_curves() -> None:
    raw = model("raw", "click", factors=FACTORS, ratios={"position": [1.0, 0.8, 0.6]})
    other = model("labels", "label")
    found = bias(_inputs(raw, other))
    assert (found.answer, found.advice) == (TIMES + OF_PAGES, "")
    assert list(found.figures) == ["position: all documents, by model", "position, by device, as new learned it"]
    position, device = found.tables
    assert (position.title, device.title) == ("numbers by position", "numbers by device")
    assert position.folded
    assert device.folded
    assert [dict(row) for row in position.rows] == [
        {"position": "1", "new": "1.000", "raw": "1.000"},
        {"position": "2", "new": "0.500", "raw": "0.800"},
        {"position": "3", "new": "0.250", "raw": "0.600"},
    ]
    # 20 pages on phones and 15 on desks.
    assert list(device.rows[0]) == ["position", "phone", "desk"]
    assert [row["position"] for row in device.rows] == ["1", "2", "3"]
    assert found.numbers["position"] == {
        "levels": ["1", "2", "3"],
        "new": [1.0, 0.5, pytest.approx(0.25)],
        "raw": [1.0, pytest.approx(0.8), pytest.approx(0.6)],
    }
    assert found.numbers["device"]["levels"] == ["1", "2", "3"]
    drawn = found.drawings()["position: all documents, by model"]
    assert drawn.description == "clicks over the first by position. new: 1.00 0.50 0.25; raw: 1.00 0.80 0.60"


def test_without_a_log_there_are_embeddings_only() -> None:
    class Embedded:
        def observation(self) -> dict[str, Any]:
            return {"position": np.array([[1.0, -0.5], [0.5, 0.25], [0.25, 0.0]], dtype=np.float32)}

    inputs: Any = _inputs(log=None)
    assert bias(inputs).advice == "How clicks change with each level needs the log: give --log FOLDER."
    assert bias(inputs).answer == OF_PAGES
    assert not bias(inputs).tables
    subject: Any = type("Subject", (), {"embeddings": Embedded(), "name": "new", "ranker": inputs.subject.ranker})()
    subject.knows = lambda factor: factor.name == "position"
    vars(inputs)["subject"] = subject
    found = bias(inputs)
    assert list(found.figures) == ["position: observation embedding of new"]
    assert [dict(row) for row in found.tables[0].rows] == [
        {"position": "1", "o1": "1.000", "o2": "-0.500"},
        {"position": "2", "o1": "0.500", "o2": "0.250"},
        {"position": "3", "o1": "0.250", "o2": "0.000"},
    ]
    # Values may be below 0, so that the axis does not begin there.
    (drawing,) = found.drawings().values()
    assert drawing.figure.axes[0].get_ylim()[0] < -0.5


def test_ratios_are_drawn_from_zero() -> None:
    for drawing in bias(_inputs()).drawings().values():
        assert drawing.figure.axes[0].get_ylim()[0] == 0


def test_what_a_model_leaves_out_is_said_and_not_shown() -> None:
    found = bias(_inputs(left_out_factors=("device",)))
    assert found.answer == f"{TIMES} new leaves out device, whose bias its method cannot learn."
    assert list(found.numbers) == ["position"]
    labels = ReportInputs((model("labels", "label"),), log=LOG)
    assert bias(labels).answer == "labels learned from labels, so it knows no bias factor."
    assert bias(labels).advice == ""


def test_documents_that_lose_clicks_in_different_ways_are_said_to() -> None:
    """The higher the score, the less the place matters."""
    inputs = _inputs()
    ranker: Any = inputs.subject.ranker

    def ratios(log: ClickLog, name: str) -> Any:
        power = 1 / log.features[log.documents]
        return np.array(CURVES[name]) ** power

    ranker.click_ratios = ratios
    found = bias(inputs)
    assert list(found.figures)[:2] == ["position: all documents, by model", "position: documents of new by score"]
    assert found.answer == (
        f"{TIMES} For new this depends on the document, which one number for each level cannot say: its documents are "
        f"also shown in thirds by score.{OF_PAGES}"
    )
    row = found.tables[0].rows[2]
    assert list(row) == ["position", "new", "lowest third", "middle third", "highest third"]
    # Shown documents by score: 1, 1, 2, 2, 3, 3, 4, 4.
    scores = {"lowest third": [1, 1, 2, 2], "middle third": [3, 3], "highest third": [4, 4]}
    for name, group in scores.items():
        assert float(row[name]) == pytest.approx(0.25 ** np.mean([1 / score for score in group]), abs=5e-4)


def test_thirds_have_a_third_of_the_documents_each() -> None:
    ratios, scores = np.arange(1.0, 31.0)[:, None], np.arange(30, dtype=np.float32)
    found = _by_score(ratios, scores)
    expected = [np.exp(np.log(ratios[start : start + 10, 0]).mean()) for start in (0, 10, 20)]
    assert [float(each[0]) for each in found.values()] == pytest.approx(expected)
    same = _by_score(ratios, np.zeros(30, dtype=np.float32))
    assert list(same) == ["lowest third"]


def test_the_six_most_frequent_values_have_a_curve() -> None:
    count = 8
    log = ClickLog.of(
        features=np.eye(2),
        documents=[0, 1] * count,
        offsets=np.arange(0, 2 * count + 1, 2),
        clicks=[1, 0] * count,
        impressions=np.arange(1, count + 1),
        queries=np.arange(count),
        device=np.repeat([f"device {number}" for number in range(1, count + 1)], 2),
    )
    factors = factors_of(log)
    new = model("new", factors=factors, ratios={"position": [1.0, 0.5]})
    found = bias(ReportInputs((new,), log=log))
    assert list(found.tables[1].rows[0]) == ["position", *(f"device {number}" for number in range(8, 2, -1))]


def test_curves_of_a_device_are_those_of_its_pages() -> None:
    inputs = _inputs()
    ranker: Any = inputs.subject.ranker

    def ratios(log: ClickLog, name: str) -> Any:
        phone = log.factors[1].values == 1
        return np.where(phone[:, None], [1.0, 0.2, 0.1], [1.0, 0.5, 0.25])

    ranker.click_ratios = ratios
    numbers = bias(inputs).numbers["device"]
    assert numbers["phone"] == pytest.approx([1.0, 0.2, 0.1])
    assert numbers["desk"] == pytest.approx([1.0, 0.5, 0.25])


@pytest.mark.parametrize(("most", "lists"), [(2, 2), (3, 3), (4, 3)])
def test_of_a_large_log_some_lists_are_drawn_with_their_own_documents(
    most: int, lists: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module.MOST_LISTS == 1_000
    monkeypatch.setattr(module, "MOST_LISTS", most)
    found = _sample(LOG)
    assert found.lists == lists
    shown = LOG.select(np.isin(LOG.impressions, found.impressions))
    np.testing.assert_array_equal(found.features[found.documents], LOG.features[shown.documents])
    assert len(found.features) == len(np.unique(shown.documents))


def test_lists_are_drawn_by_their_impressions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LISTS", 1)
    log = ClickLog.of(
        features=np.eye(2),
        documents=[0, 1, 0, 1],
        offsets=[0, 2, 4],
        clicks=[0] * 4,
        impressions=[1, 10**9],
        queries=["rare", "frequent"],
    )
    assert _sample(log).impressions.tolist() == [10**9]


def test_pages_without_a_document_have_no_part_in_curves() -> None:
    """A page of the factor's second level, an empty one, one of the first level, and an empty one at the end."""
    log = ClickLog.of(
        features=[[0.1], [0.7]],
        documents=[0, 1, 1, 0],
        offsets=[0, 2, 2, 4, 4],
        clicks=[1, 0, 0, 1],
        impressions=[3, 1, 2, 1],
        queries=["a", "b", "c", "d"],
        device=["phone", "phone", "desk", "desk"],
    )
    sample = _sample(log)
    assert sample.lengths.tolist() == [2, 2]
    assert sorted(sample.impressions.tolist()) == [2, 3]
