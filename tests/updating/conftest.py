from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module

import pytest

from ultr.diagnosis import diagnose


@pytest.fixture(autouse=True, scope="module")
def _few_draws() -> Iterator[None]:
    """Let the doctor and comparisons draw a fraction of what they usually do, which takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ultr.updating.actions.DOCTOR_SAMPLES", 5)
        patch.setattr("ultr.updating.actions.diagnose", partial(diagnose, draws=9))
        patch.setattr(import_module("ultr.bias.scalar_test"), "SPLITS", 3)
        patch.setattr(import_module("ultr.evaluation.halves"), "SAMPLES", 40)
        yield
