from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from ultr import MLP, ClickBaseline, ClickLog, JudgedLists, LabelBaseline, evaluate
from ultr.notebook import as_html

HOSTILE = "<script>alert(1)</script>"


class Cells(HTMLParser):
    """The texts of a page by tag."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.attributes: list[Any] = []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
        self._open.append(tag)
        self.attributes += attrs
        self.found.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.found[self._open[-1]][-1] += data


def log() -> ClickLog:
    return ClickLog.of(
        features=[[0.1], [0.7], [0.4]],
        documents=[2, 0, 2, 0, 2, 0],
        offsets=[0, 2, 4, 6],
        clicks=[0, 1, 0, 0, 1, 0],
        queries=["shoes", "bags", "hats"],
        feature_names=[HOSTILE],
    )


def judged() -> JudgedLists:
    return JudgedLists.of(features=[[1.0], [2.0], [3.0]], labels=[2, 0, 2], offsets=[0, 3], feature_names=[HOSTILE])


def test_a_log_shows_the_click_rate_of_its_positions() -> None:
    cells = Cells(log()._repr_html_())
    assert cells.found["p"][0] == repr(log())
    assert cells.found["th"] == ["position", "impressions", "clicks", "rate"]
    assert cells.found["td"] == ["1", "3", "1", "0.3333", "2", "3", "1", "0.3333"]
    assert cells.found["p"][1] == f"1 features: {HOSTILE}"


def test_of_many_positions_the_first_are_shown() -> None:
    long = ClickLog.of(features=np.eye(12), documents=range(12), offsets=[0, 12], clicks=[1] + [0] * 11)
    cells = Cells(long._repr_html_())
    assert len(cells.found["tr"]) == 11
    assert cells.found["p"][1] == "2 further positions. 12 features: 1, 2, 3, 4, 5, 6, 7, 8 and 4 more"


def test_judged_lists_show_their_grades() -> None:
    cells = Cells(judged()._repr_html_())
    assert cells.found["td"] == ["0", "1", "0.3333", "1", "0", "0.0000", "2", "2", "0.6667"]


def test_an_evaluation_shows_means_and_intervals() -> None:
    class ByFeature:
        def score(self, features: Any, offsets: Any) -> Any:
            return features[:, 0]

    found = evaluate(ByFeature(), judged(), ["nDCG@10"])
    interval = found.interval("nDCG@10")
    ends = [f"{value:.4f}" for value in (interval.mean, interval.low, interval.high)]
    assert Cells(found._repr_html_()).found["td"] == ["nDCG@10", *ends, "1"]


@pytest.mark.parametrize(("method", "data"), [(ClickBaseline, log), (LabelBaseline, judged)])
def test_a_ranker_shows_what_it_is(method: Any, data: Any) -> None:
    ranker = method(relevance=MLP(hidden=(4,), steps=2)).fit(data()).ranker_
    cells = Cells(ranker._repr_html_())
    assert cells.found["p"] == [f"Ranker by the method {method.name}"]
    text = cells.found["td"]
    assert f"1: {HOSTILE}" in text
    assert ranker.data_fingerprint in text
    assert ("position" in text) == bool(ranker.factors)


def test_nothing_acts_and_nothing_comes_from_elsewhere() -> None:
    page = as_html(HOSTILE, [{"<b>": "a\x1b[31m"}], note='"&')
    assert "<script" not in page
    assert "\x1b" not in page
    assert not Cells(page).attributes
    assert as_html("nothing", []) == "<p>nothing</p>"


def test_an_estimator_shows_its_ranker_once_it_has_one() -> None:
    estimator = ClickBaseline(relevance=MLP(hidden=(2,), steps=1))
    assert estimator._repr_html_() is None, "its options stand in its text"
    estimator.fit(log())
    assert estimator._repr_html_() == estimator.ranker_._repr_html_()
