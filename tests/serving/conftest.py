from __future__ import annotations

from pathlib import Path

import pytest
from tests.serving.ranker_file import write_ranker


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_ranker(tmp_path_factory.mktemp("ranker") / "model.onnx")
