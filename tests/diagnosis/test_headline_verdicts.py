"""Headline and steps of a diagnosis, by the verdicts of its findings alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ultr.bias.stopping import Stopping
from ultr.data.click_log import ClickLog
from ultr.diagnosis import Diagnosis, Verdict
from ultr.diagnosis.linkage import Linkage
from ultr.pages import Section

GOOD, CAREFUL, BAD, UNKNOWN = Verdict.GOOD, Verdict.CAREFUL, Verdict.BAD, Verdict.UNKNOWN
NAMES = (
    "volume",
    "click rates",
    "drift",
    "scalar",
    "stopping",
    "identifiability",
    "features and position",
    "position bias",
    "gain",
)


def diagnosis(
    verdicts: dict[str, Verdict] | None = None,
    *,
    rejected: bool | None = False,
    rank: int = 1,
    supported: int = 1,
    alike: tuple[int, int] | None = None,
    told: bool = True,
    features: int = 2,
    gaps: int = 0,
    differing: tuple[str, ...] = (),
    few_clicks: bool = False,
    hardly: bool = False,
) -> Diagnosis:
    """Findings with these verdicts, good by default; what is not good has an advice."""

    def part(name: str, **more: Any) -> Any:
        verdict = (verdicts or {}).get(name, GOOD)
        section = Section(name, "an answer", verdict, "" if verdict is GOOD else f"mend {name}", name=name)
        return SimpleNamespace(section=lambda *_, **__: section, **more)

    parts = dict(zip(NAMES, map(part, NAMES), strict=True))
    by_page = part("position bias by page", differing=list(differing)) if differing else None
    given: dict[str, Any] = {
        "volume": part("volume", features=features, features_with_gaps=gaps, few_clicks=few_clicks),
        "gain": part("gain", hardly=hardly, headline=lambda told: "It pays." if told else "Nobody knows."),
        "click_rates": parts["click rates"],
        "drift": parts["drift"],
        "dimension": part("scalar", rank=rank, suggested=rank + 2, scalar=SimpleNamespace(rejected=rejected)),
        "stopping": Stopping(0.0, 0.0, once=False),
        "linkage": part("identifiability", supported=SimpleNamespace(dimension=supported), alike=alike),
        "position_predictability": parts["features and position"],
        "position_bias": part("position bias", told=told),
        "curves_by_page": by_page,
    }
    return Diagnosis(source="my log", **given)


@pytest.mark.parametrize(
    ("found", "headline"),
    [
        (diagnosis({"volume": BAD, "identifiability": BAD}), "This log cannot be learned from as it is."),
        (diagnosis({"identifiability": BAD}), "The bias of this log cannot be told from relevance as it is."),
        (diagnosis({"features and position": BAD}), "The bias of this log cannot be told from relevance as it is."),
        (
            diagnosis({"volume": CAREFUL, "drift": UNKNOWN}),
            "This log can be debiased, and nothing speaks against one number for each position. It pays.",
        ),
        (
            diagnosis(rejected=None),
            "This log can be debiased; whether one number for each position is enough, the clicks do not tell. It "
            "pays.",
        ),
        (
            diagnosis(rejected=True, rank=2, supported=2),
            "This log can be debiased, but one number for each position is not enough: take Vectorization with "
            "dimension 4. It pays.",
        ),
        (
            diagnosis(rejected=True, rank=2, supported=1),
            "This log can be debiased only as far as documents with similar features are alike. It pays.",
        ),
        (
            diagnosis(alike=(800, 5)),
            "This log can be debiased only as far as documents with similar features are alike. It pays.",
        ),
        (
            diagnosis(told=False),
            "This log can be debiased only as far as documents with similar features are alike. Nobody knows.",
        ),
        (
            diagnosis(differing=("device",)),
            "This log can be debiased, but position bias is not the same for every device. It pays.",
        ),
        (
            diagnosis(rejected=True, rank=2, supported=2, differing=("device",)),
            "This log can be debiased, but one number for each position is not enough: take Vectorization with "
            "dimension 4. It pays.",
        ),
    ],
)
def test_the_headline_goes_by_the_findings(found: Diagnosis, headline: str) -> None:
    assert found.headline == headline


@pytest.mark.parametrize(
    ("found", "commands"),
    [
        (diagnosis(), ["train", "trees", "compare"]),
        (diagnosis(rejected=True, rank=2, supported=2), ["train", "trees"]),
        (diagnosis(differing=("device",)), ["train", "trees"]),
        (diagnosis(told=False), ["train", "trees", "keep"]),
        (diagnosis(gaps=1), ["train", "network", "compare"]),
        (diagnosis(features=0), []),
        (diagnosis({"volume": BAD}), ["mend volume"]),
        (diagnosis({"identifiability": BAD}), ["mend identifiability", "keep"]),
        (
            diagnosis({"drift": UNKNOWN, "click rates": CAREFUL, "scalar": CAREFUL, "features and position": BAD}),
            ["mend features and position", "mend click rates", "mend scalar", "mend drift", "keep"],
        ),
    ],
)
def test_steps_are_the_gravest_first_and_commands_only_where_training_makes_sense(
    found: Diagnosis, commands: list[str]
) -> None:
    assert [step.partition(":")[0] for step in found.steps] == commands


TRAIN = "train: ultr train --dimension 3 --log 'my log' --out model"
TREES = (
    "trees: ultr train --dimension 3 --relevance trees --log 'my log' --out forest, if the engine takes trees or a "
    "feature is a category; ultr compare model forest --log 'my log'"
)
NETWORK = (
    "network: ultr train --dimension 3 --log 'my log' --out network, which takes the median there and may rank better "
    "all the same; ultr compare model network --log 'my log'"
)
COMPARE = "compare: ultr train inverse-propensity --log 'my log' --out other; ultr compare other model --log 'my log'"
LET_USERS = "nothing in this log says whether debiasing helps or harms, so let users decide between the two"
HARDLY = "expect no more of the other, and if they differ, let users decide"
UNTIL = "until the above is mended, no debiased ranker can be trusted more than one by raw clicks"


@pytest.mark.parametrize(
    ("found", "steps"),
    [
        (diagnosis(), (TRAIN, TREES, COMPARE)),
        (diagnosis({"drift": UNKNOWN}), ("mend drift", TRAIN, TREES, COMPARE)),
        (diagnosis(told=False), (TRAIN, TREES, f"keep: ultr train click --log 'my log' --out raw; {LET_USERS}")),
        (
            diagnosis(gaps=2, told=False),
            (
                "train: ultr train --dimension 3 --relevance trees --log 'my log' --out model (trees take the missing "
                "values of 2 features as they are)",
                NETWORK,
                f"keep: ultr train click --relevance trees --log 'my log' --out raw; {LET_USERS}",
            ),
        ),
        (
            diagnosis({"scalar": BAD}),
            ("mend scalar", f"keep: ultr train click --log 'my log' --out raw; {UNTIL}"),
        ),
        (
            diagnosis({"scalar": BAD}, gaps=1),
            ("mend scalar", f"keep: ultr train click --relevance trees --log 'my log' --out raw; {UNTIL}"),
        ),
        (diagnosis(hardly=True), (TRAIN, TREES, COMPARE)),
        (
            diagnosis(told=False, hardly=True),
            (TRAIN, TREES, f"keep: ultr train click --log 'my log' --out raw; {HARDLY}"),
        ),
        (
            diagnosis(few_clicks=True),
            (
                TRAIN.replace(" --log", " --set hidden=64,32 --log"),
                TREES,
                COMPARE.replace("propensity --log", "propensity --set hidden=64,32 --log"),
            ),
        ),
        (
            diagnosis(few_clicks=True, told=False, gaps=1),
            (
                "train: ultr train --dimension 3 --relevance trees --log 'my log' --out "
                "model (trees take the missing values of a feature as they are)",
                NETWORK.replace(" --log", " --set hidden=64,32 --log", 1),
                f"keep: ultr train click --relevance trees --log 'my log' --out raw; {LET_USERS}",
            ),
        ),
        (
            diagnosis({"scalar": BAD}, few_clicks=True),
            ("mend scalar", f"keep: ultr train click --set hidden=64,32 --log 'my log' --out raw; {UNTIL}"),
        ),
        (diagnosis({"volume": BAD}, gaps=1), ("mend volume",)),
        (diagnosis({"scalar": BAD}, features=0), ("mend scalar",)),
    ],
)
def test_every_step_can_be_typed(found: Diagnosis, steps: tuple[str, ...]) -> None:
    assert found.steps == steps


def test_findings_come_in_the_order_of_the_questions_and_curves_by_page_before_the_gain() -> None:
    assert [finding.name for finding in diagnosis().findings] == list(NAMES)
    by_page = [finding.name for finding in diagnosis(differing=("device",)).findings]
    assert by_page == [*NAMES[:-1], "position bias by page", "gain"]


@pytest.mark.parametrize(("rejected", "scalar"), [(False, True), (None, None), (True, False)])
def test_findings_are_told_of_each_other(rejected: bool | None, scalar: bool | None) -> None:  # noqa: FBT001
    """The dimension of the links and the factors whose curves differ go to the answer on one number for each position.

    That one number is not enough goes to the answer on the strength of position bias.
    """
    asked: dict[str, Any] = {}

    def asks(name: str, part: Any) -> None:
        found: Section = part.section()

        def section(*given: Any, **named: Any) -> Section:
            asked[name] = given, named
            return found

        part.section = section

    made = diagnosis(rejected=rejected, rank=2, supported=4, differing=("device",), told=False)
    for name in ("dimension", "linkage", "position_bias", "gain"):
        asks(name, getattr(made, name))
    assert made.findings
    assert asked == {
        "dimension": ((4,), {"differing": ["device"]}),
        "linkage": ((2,), {}),
        "position_bias": ((), {"scalar": scalar}),
        "gain": ((), {"told": False}),
    }


def test_a_page_is_named_after_the_log_and_can_be_made_again() -> None:
    page = diagnosis().page()
    assert (page.title, page.summary) == ("Examination of my log", diagnosis().headline)
    assert page.command == "ultr doctor 'my log'"
    assert page.steps == diagnosis().steps


@pytest.mark.parametrize(("gaps", "named"), [(0, None), (1, "a feature"), (2, "2 features")])
def test_features_with_gaps_ask_for_trees(gaps: int, named: str | None) -> None:
    train, *_, last = diagnosis(gaps=gaps, told=False).steps
    assert ("--relevance trees" in train) is (named is not None)
    assert ("ultr train click --relevance trees --log 'my log'" in last) is (named is not None)
    assert train.startswith("train: ultr train --dimension 3 ")
    if named:
        assert f"the missing values of {named} as they are" in train
    bad = diagnosis({"identifiability": BAD}, gaps=gaps).steps[-1]
    assert ("click --relevance trees" in bad) is (named is not None)


@pytest.mark.parametrize(
    ("clicks", "features", "verdict"),
    [
        (100, True, GOOD),
        (99, True, CAREFUL),
        (99, False, CAREFUL),
        (10, False, CAREFUL),
        (9, False, BAD),
        (9, True, CAREFUL),
    ],
)
def test_a_link_needs_a_hundred_clicks_and_without_features_ten(
    clicks: int,
    features: bool,  # noqa: FBT001
    verdict: Verdict,
) -> None:
    """Two documents, each seen at both of two positions."""
    log = ClickLog.of(
        features=np.eye(2) if features else np.zeros((2, 0)),
        documents=[0, 1, 1, 0],
        offsets=[0, 2, 4],
        clicks=[clicks, 0, 0, 0],
        impressions=[1_000, 1_000],
        queries=["a", "a"],
    )
    found = Linkage.of(log).section()
    assert found.verdict is verdict
    assert f"rests on 2 documents with {clicks:,} clicks" in found.answer
    assert bool(found.advice) is (verdict is not GOOD)
