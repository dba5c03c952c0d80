"""Precision of the matrix products in training."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import torch

from ultr import checks
from ultr.errors import OptionError

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_PRODUCT = "import torch; a = torch.ones(256, 128, dtype=torch.{name}); torch.nn.functional.linear(a, a)"


def check_precision(name: str) -> None:
    """Raise an `OptionError` for a precision that is unknown, or that this processor cannot use."""
    checks.one_of("precision", name, PRECISIONS)
    if name != "float32" and not _runs(name):
        raise OptionError(
            f"this processor cannot multiply in {name}, though it may say so (virtual machines do); "
            "use float32, or set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment"
        )


@cache
def _runs(name: str) -> bool:
    """Try a product in a process of its own, since an instruction that is missing ends the process that tries it."""
    return subprocess.run([sys.executable, "-c", _PRODUCT.format(name=name)], capture_output=True).returncode == 0
