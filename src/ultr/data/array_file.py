"""Arrays in files, left on disk until they are used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ultr.errors import DataError
from ultr.files import check_is_file


def read_array(path: Path) -> npt.NDArray[Any]:
    """The array of a .npy file, memory-mapped; a missing, damaged or hostile one is a `DataError`."""
    try:
        check_is_file(path)
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    # NumPy reads a header as a piece of Python, and raises whatever that does.
    except Exception as error:
        raise DataError(f"{path} is missing or damaged ({error}); restore it or write it again") from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path} is not a .npy array; restore it or write it again")
    return array
