"""The fingerprint of a click log, and the one that the folder of a saved log promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ultr.arrays import fingerprint
from ultr.data.log_folder import ARRAYS
from ultr.errors import DataError

if TYPE_CHECKING:
    from ultr.data.click_log import ClickLog

CHECKED = 2**26
"""A saved log of at most so many bytes is compared with its fingerprint whenever it is loaded: a tenth of a second."""


def check_fingerprint(found: str, promised: str, folder: Path) -> None:
    """Raise a `DataError` if the arrays in a folder have another fingerprint than its manifest."""
    if found != promised:
        raise DataError(
            f"{folder} is damaged: its arrays are not those that were written (fingerprint {found}, not {promised}); "
            "restore the click log or write it again"
        )


def log_fingerprint(log: ClickLog) -> str:
    """A short name for the exact content of a log."""
    names = [np.array([factor.name, *factor.levels, *map(str, factor.edges)]) for factor in log.factors]
    # What most logs do not have adds nothing to their fingerprint.
    described = {
        "periods": None if log.periods is None else log.period_names,
        "grades": None if log.grades is None else log.grades.levels,
        "signals": tuple(signal.name for signal in log.signals) or None,
        "placements": None if log.placements is None else (),
        **{f"categories of {name}": values for name, values in log.categories.items()},
    }
    words = [np.array([name, *texts]) for name, texts in described.items() if texts is not None]
    features = np.array(log.feature_names)
    return fingerprint(*_usual_arrays(log), *names, features, *log.optional().values(), *words)


def is_small(log: ClickLog) -> bool:
    """True if the fingerprint of a log is computed in no time."""
    return sum(array.nbytes for array in (*_usual_arrays(log), *log.optional().values())) <= CHECKED


def _usual_arrays(log: ClickLog) -> list[npt.NDArray[Any]]:
    return [*(getattr(log, name) for name in ARRAYS), *(factor.values for factor in log.factors)]
