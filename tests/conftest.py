from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import hypothesis
import pytest
from tests.draws import few_draws, plain_drawings

from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.datasets.splits import Splits
from ultr.simulation.log import simulate

SLOWEST = (
    "tests/test_documentation.py",
    "tests/preparation/test_engines.py",
    "tests/preparation/test_log.py",
    "tests/methods/test_contract.py",
    "tests/pages/test_browser.py",
    "tests/cli/test_commands.py",
    "tests/exporting/test_export.py",
    "tests/experiments/test_reproduce.py",
    "tests/train/test_process_group.py",
    "tests/methods/test_lambdamart.py",
    "tests/serving/test_process.py",
    "tests/preparation/test_sources.py",
    "tests/serving/test_fuzz.py",
    "tests/bias/test_rank_test.py",
    "tests/cli/test_report.py",
    "tests/methods/test_own_package.py",
    "tests/methods/test_recovery.py",
)
"""Files that take longest; they come first, so that no process is left with one of them at the end."""

# A wall clock says nothing about an example where other processes run beside the tests.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the cache of whoever runs the tests out of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ULTR_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    few_draws(monkeypatch)


@pytest.fixture
def _plain_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_drawings(monkeypatch)


@pytest.fixture(scope="session")
def _operators_read_once() -> Iterator[None]:
    """Read the operators of ONNX once, not for every export anew, which takes as long as the export itself."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(cache(ONNXRegistry.from_torchlib)))
        yield


@pytest.fixture(scope="session")
def small() -> Splits:
    return letor_like(train_queries=120, validation_queries=30, test_queries=30)


@pytest.fixture(scope="session")
def small_log(small: Splits) -> ClickLog:
    return simulate(small.train, click_model("trust"), impressions=60_000, svm_share=0.1, rankings=4, noise=0.5)


@pytest.fixture(scope="session")
def pair_log(small: Splits) -> ClickLog:
    """A log such as `small_log` that also counts which documents were clicked together."""
    return simulate(
        small.train, click_model("trust"), impressions=60_000, svm_share=0.1, rankings=4, noise=0.5, pairs=True
    )


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the public data sets are not at {folder}; they may not be shipped")
    return folder
