"""Weights from a file, compared with the model that they are for."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

GROWING = "_extra_state"
"""The name that torch gives to the state of a module besides weights of fixed size, such as trees."""


def check_weights(tensors: Mapping[str, Tensor], model: nn.Module) -> None:
    """Raise a `ValueError` unless the tensors are those of the model by name, type and shape, and all finite.

    A model on torch's device `meta` will do, which takes no memory.
    """
    wanted = model.state_dict()
    if wanted.keys() != tensors.keys():
        name = sorted(wanted.keys() ^ tensors.keys())[0]
        raise ValueError(f"{name} is {'missing' if name in wanted else 'unknown'}")
    for name, tensor in tensors.items():
        if tensor.dtype != wanted[name].dtype:
            raise ValueError(f"{name} is of type {tensor.dtype}, not {wanted[name].dtype}")
        # Trees are as many as have grown.
        if tensor.shape != wanted[name].shape and not name.endswith(GROWING):
            raise ValueError(f"{name} has the shape {tuple(tensor.shape)}, not {tuple(wanted[name].shape)}")
        if not bool(tensor.isfinite().all()):
            raise ValueError(f"{name} is not finite everywhere")
