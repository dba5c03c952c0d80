"""The device that trains."""

from __future__ import annotations

import torch

from ultr.errors import OptionError


def check_device(device: object) -> None:
    """Raise an `OptionError` unless torch can compute on this device here."""
    try:
        usable = isinstance(device, str) and torch.empty(0, device=device).device.type != "meta"
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise OptionError(f"torch cannot use the device {device!r} here; use 'cpu'") from error
    if not usable:
        raise OptionError(f"torch cannot use the device {device!r} here; use 'cpu'")
