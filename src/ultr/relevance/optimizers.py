"""torch's optimisers, without its compiler.

Building or stepping one of them imports `torch._dynamo`, which takes more than a second and 65 MB in every process that
trains, for a compiler that nothing here uses. What they are decorated with for it is taken off.
"""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import torch
from torch.optim import Optimizer


class _Uncompiled:
    add_param_group: Any = unwrap(Optimizer.add_param_group)
    zero_grad: Any = unwrap(Optimizer.zero_grad)
    state_dict: Any = unwrap(Optimizer.state_dict)
    load_state_dict: Any = unwrap(Optimizer.load_state_dict)


class AdaGrad(_Uncompiled, torch.optim.Adagrad):
    """AdaGrad."""

    step: Any = torch.no_grad()(unwrap(torch.optim.Adagrad.step))


class AdamW(_Uncompiled, torch.optim.AdamW):
    """Adam with decoupled weight decay."""

    step: Any = torch.no_grad()(unwrap(torch.optim.AdamW.step))
