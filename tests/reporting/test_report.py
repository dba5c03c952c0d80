from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reporting.runs import by_clicks, by_labels, compared, data, log, rankers, saved

from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.evaluation import evaluate
from ultr.explanation import explain
from ultr.files import as_json
from ultr.pages.drawing import ink_on, luminance
from ultr.reporting import Model, ReportInputs, models_of, report
from ultr.reporting.moved import moved_lists
from ultr.reporting.orders import orders as orders_section
from ultr.reporting.provenance import provenance
from ultr.reporting.quality import quality


def test_a_report_has_every_part_and_its_numbers_are_json() -> None:
    content = json.loads(as_json(by_labels().as_json()))
    parts = [
        "decision",
        "heads",
        "quality",
        "orders",
        "examination",
        "bias",
        "plane",
        "learning",
        "models",
        "reproduce",
    ]
    assert [name for name in content if name not in ("title", "summary")] == parts
    assert len(by_labels().sections) == len(parts)
    assert len(by_labels().html()) < 1_000_000


def test_measures_and_leads_are_those_of_evaluate() -> None:
    content = by_labels().as_json()["quality"]
    own, other = (evaluate(rankers()[name], data().test) for name in ("vectors", "raw"))
    assert content["measures"]["vectors"]["nDCG@10"] == vars(own.interval("nDCG@10"))
    assert content["lead"]["raw"] == vars(own.against(other, "nDCG@10"))
    assert content["gap_closed"]["raw"] == 0
    assert content["gap_closed"]["labels"] == 1


def test_without_labels_clicks_tell_and_doubt_is_kept() -> None:
    found = by_clicks()
    content = found.as_json()["quality"]
    assert content["compared_on"] == "the 6 queries of the log that neither model was trained on"
    assert content["against"] == "raw"
    assert content["answers"]["value"]["verdict"] == "cannot tell"
    assert "cannot tell" in found.summary
    assert "There are no labels; give --data." in found.html()


def test_two_runs_are_compared_in_one_page() -> None:
    content = compared().as_json()
    differ = content["differences"]["differ"]
    assert differ["method"] == ["vectorization", "dla"]
    assert "hidden" not in differ
    assert "training data" not in differ
    assert list(content["quality"]["lead"]) == ["dual"]
    assert set(content["learning"]) == {"vectors", "dual"}
    assert {"vectors", "dual", "levels"} <= set(content["bias"]["position"])


def test_a_log_that_is_not_that_of_the_training_is_told(tmp_path: Path) -> None:
    models = saved(tmp_path, "vectors")
    right = provenance(ReportInputs(models, log=log()))
    assert right.advice == ""
    assert right.numbers["log_is_that_of"] == ["vectors"]
    other = log().select(np.arange(log().lists // 2))
    wrong = provenance(ReportInputs(models, log=other, log_name="half"))
    assert "half is not the log that vectors learned from" in wrong.advice
    assert wrong.numbers["log_is_that_of"] == []


def test_a_model_without_a_record_of_its_data_is_doubted_on_the_page(tmp_path: Path) -> None:
    new, old = saved(tmp_path, "vectors", "raw")
    old = replace(old, manifest=old.manifest.model_copy(update={"provenance": None}))
    old = replace(old, ranker=replace(old.ranker, provenance=None))
    material = ReportInputs((new, old), log=log(), log_name="the log")
    told = provenance(material).advice
    assert "Whether raw learned from the log is not recorded. What is said of the log below" in told
    assert "is not the log that" not in told
    part = quality(replace(material, draws=19))
    assert "on the 6 queries of the log that vectors was not trained on." in part.answer
    warning = "what raw was trained on is not recorded, so numbers are too good if it was this log; train again to have"
    assert part.advice.startswith(f"Warning: {warning}")
    assert part.numbers["warnings"][0].startswith(warning)
    assert part.numbers["notes"] == (
        "clicks of this part chose the weights of vectors, so numbers may be a little too good",
    )


def test_without_log_and_labels_a_page_says_what_is_missing(tmp_path: Path) -> None:
    found = report(ReportInputs(saved(tmp_path, "vectors")), name="bare", command="ultr report bare")
    text = found.html()
    assert text.count("give --log FOLDER") == 3
    assert "This needs judged lists, or the log" in text
    assert "ultr train vectors" in text


def test_the_best_model_by_labels_is_looked_at_closely(tmp_path: Path) -> None:
    models = saved(tmp_path, "raw", "dual", "vectors", "labels")
    quality = {name: evaluate(ranker, data().test).mean("nDCG@10") for name, ranker in rankers().items()}
    best = max(("dual", "vectors"), key=lambda name: quality[name])
    assert ReportInputs(models, judged=data().test).subject.name == best
    assert ReportInputs(models).subject.name == "dual"
    assert ReportInputs(models, chosen="vectors").subject.name == "vectors"


def test_the_models_of_a_folder_stand_between_their_bounds(tmp_path: Path) -> None:
    saved(tmp_path, "vectors", "raw", "labels", "dual")
    log().save(tmp_path / "log")
    assert [model.name for model in models_of(tmp_path)] == ["raw", "dual", "vectors", "labels"]
    assert [model.name for model in models_of(tmp_path / "dual")] == ["dual"]
    with pytest.raises(DataError, match="is no model and has none inside"):
        models_of(tmp_path / "log")
    with pytest.raises(DataError, match="there is no folder"):
        models_of(tmp_path / "nowhere")


class Fixed:
    """A ranker that gives each document the score that stands in its only feature."""

    def __init__(self, sign: int = 1) -> None:
        self.sign = sign

    def score(self, features: Any, offsets: Any = None) -> Any:
        return self.sign * features[:, 0]


def test_the_queries_that_move_most_come_first() -> None:
    orders = list(permutations(range(4)))
    scores = np.array(orders, dtype=np.float32).reshape(-1, 1)
    count = len(orders)
    clicks = ClickLog.of(
        features=scores,
        documents=np.arange(4 * count),
        offsets=np.arange(0, 4 * count + 1, 4),
        clicks=np.zeros(4 * count, dtype=int),
        queries=[f"{number:02}" for number in range(count)],
    )
    model = Model("fixed", Path(), None, Fixed(-1))  # type: ignore[arg-type]
    found = moved_lists(clicks, None, model)
    # The score is the place that the document goes to, since the lowest comes first.
    distances = [sum(abs(place - to) for place, to in enumerate(order)) for order in orders]
    assert [moved.distance for moved in found] == sorted(distances, reverse=True)
    for moved in found:
        order = orders[int(moved.query)]
        assert [order[place] for place in moved.order] == [0, 1, 2, 3]
    against = Model("other", Path(), None, Fixed(1))  # type: ignore[arg-type]
    reversed_ = moved_lists(clicks, against, model)
    assert {moved.distance for moved in reversed_} == {8}
    assert all(moved.order.tolist() == [3, 2, 1, 0] for moved in reversed_)


def test_of_several_lists_of_a_query_the_most_frequent_is_shown() -> None:
    clicks = ClickLog.of(
        features=[[1.0], [2.0]],
        documents=[0, 1, 1, 0],
        offsets=[0, 2, 4],
        impressions=[5, 9],
        clicks=[0, 0, 3, 1],
        queries=["a", "a"],
    )
    (moved,) = moved_lists(clicks, None, Model("fixed", Path(), None, Fixed(-1)))  # type: ignore[arg-type]
    assert (moved.impressions, moved.documents.tolist(), moved.clicks.tolist()) == (9, [1, 0], [3, 1])
    assert moved.pages == 14
    assert moved.rows(("as shown", "new order"), ["one", "zero"]) == [
        {"place": "1", "as shown": "one", "clicks": "3 (33%)", "new order": "zero", "move": "▲ 1"},
        {"place": "2", "as shown": "zero", "clicks": "1 (11%)", "new order": "one", "move": "▼ 1"},
    ]


def test_the_features_that_moved_documents_are_told_in_the_new_order(tmp_path: Path) -> None:
    models = saved(tmp_path, "vectors")
    section = orders_section(ReportInputs(models, log=log()))
    ranker = models[0].ranker
    for numbers, table in zip(section.numbers["queries"], section.tables, strict=True):
        documents = np.array(numbers["second_order"])
        found = explain(ranker, log().features[documents])
        scores = ranker.score(log().features[documents]).astype(np.float64)
        assert (np.diff(scores) <= 1e-6).all()
        for place, (reasons, row) in enumerate(zip(numbers["reasons"], table.rows, strict=True)):
            contributions = found.contributions[found.candidates.tolist().index(place)]
            largest = np.sort(np.abs(contributions))[::-1][:2]
            assert [abs(moved) for moved in reasons.values()] == pytest.approx(largest.tolist())
            assert row["because of"] == ", ".join(f"{name} {moved:+.2g}" for name, moved in reasons.items())


def test_numbers_can_be_read_on_every_shade_of_a_heat_map() -> None:
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    for share in np.linspace(0, 1, 101):
        shade = colormaps["Blues"](share)
        light = sorted([luminance(shade), luminance(to_rgb(ink_on(shade)))])
        assert (light[1] + 0.05) / (light[0] + 0.05) >= 4
