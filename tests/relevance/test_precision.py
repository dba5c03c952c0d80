from __future__ import annotations

from collections.abc import Iterator

import pytest

from ultr.errors import OptionError
from ultr.relevance import precision


@pytest.fixture(autouse=True)
def _not_tried_before() -> Iterator[None]:
    precision._runs.cache_clear()
    yield
    precision._runs.cache_clear()


@pytest.mark.parametrize("program", ["raise SystemExit(1)", "import os; os.kill(os.getpid(), 4)"])
def test_a_precision_that_fails_or_ends_the_process_is_refused(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "_PRODUCT", program)
    with pytest.raises(OptionError, match=r"cannot multiply in bfloat16.*use float32, or set ONEDNN_MAX_CPU_ISA"):
        precision.check_precision("bfloat16")


def test_a_precision_that_works_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "_PRODUCT", "pass")
    precision.check_precision("bfloat16")


def test_float32_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "_PRODUCT", "raise SystemExit(1)")
    precision.check_precision("float32")
