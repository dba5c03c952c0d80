"""Runs of experiments without processes of their own, each of which takes seconds to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

import pytest


class _ThisProcess(Executor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def _pool(workers: int) -> Iterator[Executor]:
    yield _ThisProcess()


def in_this_process(patch: pytest.MonkeyPatch) -> None:
    """Let `ultr reproduce` train here; `tests/experiments/test_reproduce.py` has what is different elsewhere."""
    patch.setattr("ultr.experiments.workers._pool", _pool)
