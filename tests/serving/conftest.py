from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serving.ranker_file import NAMES, write_ranker

from ultr.serving import logs


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_ranker(tmp_path_factory.mktemp("ranker") / "model.onnx")


@pytest.fixture(scope="session")
def mixed_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ranker that saw its first feature missing, and whose last one is categorical, with an odd value."""
    values, path = ("young", "old: 9+", "other", "17"), tmp_path_factory.mktemp("ranker") / "mixed.onnx"
    return write_ranker(path, typical=[0.0, 0.5, 1.0], categories={NAMES[2]: values}, missing={NAMES[0]: 0.3})


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    """A service configures them for its process."""
    yield
    logs.close()
    for name in ("ultr.serving", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate, logger.level = [], True, logging.NOTSET
