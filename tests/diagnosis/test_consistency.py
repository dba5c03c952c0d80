"""The answers of one page must not contradict each other, whatever the log."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from tests.diagnosis.logs import THETA, by_device, thorough

from ultr import ClickLog, click_model, diagnose, letor_like, simulate
from ultr.diagnosis import Diagnosis, Verdict


def one_query_moved(clicks: int) -> ClickLog:
    """A fixed order on 8,000 pages, and 600 of the first query with its documents at all places, so often clicked."""
    random, queries = np.random.default_rng(0), np.append(np.arange(8_000) % 200, [0, 0, 0])
    documents = 4 * queries[:, None] + np.arange(4)
    documents[-3:] = [np.roll(np.arange(4), turn) for turn in (1, 2, 3)]
    clicked = random.random((8_003, 4)) < random.uniform(0.1, 0.8, size=800)[documents] * THETA
    return ClickLog.of(
        features=random.normal(size=(800, 2)),
        documents=documents.reshape(-1),
        offsets=np.arange(0, 4 * 8_003 + 1, 4),
        clicks=np.append(clicked[:-3], np.full(12, clicks)),
        impressions=np.append(np.ones(8_000, dtype=np.int64), [200, 200, 200]),
        queries=queries,
    )


LOGS: dict[str, Callable[[], ClickLog]] = {
    "many swaps": lambda: thorough(pages=8_000),
    "no swaps": lambda: thorough(pages=8_000, swaps=False),
    "no swaps and no features": lambda: thorough(pages=8_000, swaps=False, features=np.zeros((800, 0))),
    "equal features in place of swaps": lambda: thorough(
        pages=8_000, swaps=False, features=np.repeat(np.arange(200.0), 4)[:, None]
    ),
    "a position among the features": lambda: thorough(
        pages=8_000, swaps=False, features=np.tile(np.arange(4.0), 200)[:, None]
    ),
    "hardly a click": lambda: thorough(pages=60),
    "one query moved, with two clicks": lambda: one_query_moved(2),
    "one query moved, with many clicks": lambda: one_query_moved(90),
    "devices": lambda: by_device(pages=8_000),
    "trust bias": lambda: simulate(
        letor_like(train_queries=60, validation_queries=1, test_queries=1).train,
        click_model("trust"),
        impressions=60_000,
        svm_share=0.2,
        rankings=4,
        noise=0.5,
    ),
}


@cache
def examined(name: str) -> Diagnosis:
    return diagnose(LOGS[name](), samples=20, draws=19)


@pytest.mark.parametrize("name", LOGS)
def test_no_answer_contradicts_another(name: str) -> None:
    found = examined(name)
    verdict = {finding.name: finding.verdict for finding in found.findings}
    answer = {finding.name: finding.answer for finding in found.findings}
    steps, headline = "\n".join(found.steps), found.headline
    words = "\n".join([headline, steps, *(f"{each.answer} {each.advice}" for each in found.findings)])
    assert "nan" not in words.split()
    assert "nan-" not in words
    plainly = "can be debiased" in headline and "only as far as" not in headline
    told = verdict["position bias"] in (Verdict.GOOD, Verdict.CAREFUL)
    if verdict["volume"] is Verdict.BAD:
        assert "ultr train" not in steps
        assert headline == "This log cannot be learned from as it is."
    if Verdict.BAD in verdict.values():
        assert "train: " not in steps
        assert "debiased" not in headline
    if plainly:
        assert told
        assert verdict["identifiability"] in (Verdict.GOOD, Verdict.CAREFUL)
    if not told:
        assert verdict["gain"] is not Verdict.GOOD
        assert "pay" not in headline.replace("will hardly pay", "")
        assert "ultr compare other model" not in steps
    if "will hardly pay" in headline:
        assert "helps or harms" not in steps
    if "take a small model" in answer["volume"]:
        networks = [step for step in found.steps if "ultr train" in step and "--relevance trees" not in step]
        assert all("hidden=64,32" in step for step in networks)
    if "estimators agree" in answer["position bias"]:
        enough = "One number for each position is not enough" not in answer["scalar"]
        assert verdict["position bias"] is (Verdict.GOOD if enough else Verdict.CAREFUL)
        assert ("is not how often positions are seen" in answer["position bias"]) is not enough
        assert "no chain" not in words
    if verdict.get("position bias by page") is Verdict.CAREFUL:
        assert "nothing speaks against one number" not in headline
        assert verdict["scalar"] is not Verdict.GOOD
        assert "inverse-propensity" not in steps
    if "one number for each position is not enough" in headline:
        assert verdict["scalar"] is Verdict.CAREFUL


def test_the_set_of_logs_has_every_headline() -> None:
    headlines = {examined(name).headline for name in LOGS}
    for start in (
        "This log can be debiased",
        "This log can be debiased only as far as documents with similar features are alike.",
        "This log cannot be learned from as it is.",
        "The bias of this log cannot be told from relevance as it is.",
    ):
        assert any(headline.startswith(start) for headline in headlines), start


@pytest.mark.parametrize(
    "name", ["equal features in place of swaps", *(name for name in LOGS if name.startswith("one query")), "no swaps"]
)
def test_hardly_a_swap_debiases_nothing_by_itself(name: str) -> None:
    assert "only as far as documents with similar features are alike" in examined(name).headline
