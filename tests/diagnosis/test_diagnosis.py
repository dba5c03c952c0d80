from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.diagnosis.logs import summary, thorough

from ultr import ClickLog, diagnose
from ultr.diagnosis import Verdict
from ultr.diagnosis.bias_dimension import BiasDimension
from ultr.errors import DataError
from ultr.files import as_json
from ultr.pages import Page


def test_a_log_with_swaps_and_position_based_clicks_can_be_debiased_with_a_scalar() -> None:
    found = diagnose(thorough(seed=1), summary=summary(), samples=20)
    verdicts = {finding.name: finding.verdict for finding in found.findings}
    assert verdicts == {
        "volume": Verdict.GOOD,
        "click rates": Verdict.GOOD,
        "drift": Verdict.UNKNOWN,
        "scalar": Verdict.GOOD,
        "stopping": Verdict.GOOD,
        "identifiability": Verdict.GOOD,
        "features and position": Verdict.GOOD,
        "position bias": Verdict.GOOD,
        "gain": Verdict.CAREFUL,
    }
    assert "nothing speaks against one number" in found.headline
    assert found.steps[-3:] == (
        "train: ultr train --dimension 3 --log log --out model",
        "trees: ultr train --dimension 3 --relevance trees --log log --out forest, if the engine takes "
        "trees or a feature is a category; ultr compare model forest --log log",
        "compare: ultr train inverse-propensity --log log --out other; ultr compare other model --log log",
    )


@pytest.mark.parametrize(("gaps", "named"), [((), None), ((1,), "a feature"), ((0, 1), "2 features")])
def test_missing_values_ask_for_trees(gaps: tuple[int, ...], named: str | None) -> None:
    features = np.random.default_rng(0).normal(size=(800, 2))
    features[::7, list(gaps)] = np.nan
    found = diagnose(thorough(pages=4_000, features=features), samples=5, draws=19)
    trained = [step for step in found.steps if step.startswith("train: ")]
    assert len(trained) == 1
    assert ("--relevance trees" in trained[0]) == (named is not None)
    if named is None:
        assert any(step.startswith("trees: ") for step in found.steps)
    else:
        assert trained[0].endswith(f" --out model (trees take the missing values of {named} as they are)")
        assert not any(step.startswith("trees: ") for step in found.steps)


def test_features_that_are_the_position_are_found() -> None:
    log = thorough(swaps=False, features=np.tile(np.arange(4.0), 200)[:, None])
    found = diagnose(log, samples=5)
    assert found.steps[-1].startswith("keep: ultr train click --log log --out raw; ")
    assert found.headline == "The bias of this log cannot be told from relevance as it is."
    assert found.findings[6].verdict is Verdict.BAD


def test_every_number_is_there_for_machines_and_nothing_but_json() -> None:
    found = diagnose(thorough(pages=4_000), samples=5, draws=19)
    content = json.loads(as_json(found.as_json()))
    assert content["format"] == "ultr diagnosis 1"
    assert [finding["name"] for finding in content["findings"]] == [finding.name for finding in found.findings]
    assert len(content["findings"][1]["factors"]["position"]["rate"]) == 4


def test_the_page_has_every_answer_and_its_plots() -> None:
    log = thorough(
        pages=4_000,
        device=np.repeat(np.where(np.arange(4_000) % 3 == 0, "phone", "desk"), 4),
        periods=np.arange(4_000) // 1_000,
    )
    found = diagnose(log, summary=summary(), samples=5, draws=19)
    page = found.page()
    assert isinstance(page, Page)
    drawn = {section.title: len(section.drawings()) for section in page.sections}
    assert drawn == {
        "Is there enough, and is it all there?": 0,
        "How do click rates change with where and how a document is shown?": 2,
        "Is the end of the log like its beginning?": 1,
        "Is one number for each position enough?": 2,
        "Do users stop after a click?": 0,
        "Can bias be told from relevance?": 1,
        "Do the features give the position away?": 0,
        "How strong is position bias?": 1,
        "Is position bias the same for every device?": 1,
        "Will debiasing pay?": 0,
    }
    text, shown = page.html(), found._repr_html_()
    assert shown is not None
    for finding in found.findings:
        assert finding.title in text
        assert finding.title in shown
    assert repr(found) == f"Diagnosis of log: {found.headline}"


def test_the_same_log_and_seed_give_the_same_answers() -> None:
    log = thorough(pages=4_000)
    first, second = (as_json(diagnose(log, samples=5, draws=19).as_json()) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("pages", [1, 2, 40])
def test_a_tiny_log_is_examined_without_complaint(pages: int) -> None:
    log = thorough(pages=pages, clicks=np.ones(4 * pages, dtype=np.int64))
    found = diagnose(log, samples=5)
    assert found.findings[0].verdict is Verdict.BAD
    found.page().html()


def test_a_log_without_clicks_or_documents_is_refused() -> None:
    log = thorough(pages=40)
    with pytest.raises(DataError, match="has no click"):
        diagnose(replace(log, clicks=np.zeros_like(log.clicks)))
    with pytest.raises(DataError, match="shows no document"):
        diagnose(log.select(np.array([], dtype=np.int64)))


def test_one_position_only_is_said() -> None:
    log = ClickLog.of(
        features=np.arange(60.0)[:, None],
        documents=np.arange(60),
        offsets=np.arange(61),
        clicks=np.arange(60) % 2,
    )
    found = diagnose(log, samples=5)
    assert {f.name: f.verdict for f in found.findings}["identifiability"] is Verdict.BAD
    found.page().html()


def test_a_suggested_dimension_beyond_what_links_identify_says_so() -> None:
    """Dimension 3 of Vectorization is for click rates of rank 2."""
    dimension = BiasDimension.of(thorough(pages=4_000), draws=19)
    assert dimension.suggested == 3
    assert "identify none" in dimension.section(0).answer
    assert "identify rank 1 only" in dimension.section(1).answer
    assert "links" not in dimension.section(2).answer
