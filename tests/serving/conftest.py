from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serving.ranker_file import write_ranker


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_ranker(tmp_path_factory.mktemp("ranker") / "model.onnx")


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    """A service configures them for its process."""
    yield
    for name in ("ultr.serving", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate, logger.level = [], True, logging.NOTSET
