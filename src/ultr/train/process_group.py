"""The processes that train one model together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
import torch.distributed
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from ultr.arrays import Integers
from ultr.errors import OptionError
from ultr.locks import alone


@dataclass(frozen=True)
class ProcessGroup:
    """One of `size` processes that draw the same batches, learn each from its share of them, and move the same weights
    by the sum of their gradients. A process that trains alone is a group of one.
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def of_environment(cls) -> ProcessGroup:
        """The processes that `torchrun` started; else this one alone."""
        if not torch.distributed.is_torchelastic_launched() or os.environ.get("WORLD_SIZE", "1") == "1":
            return cls()
        if not torch.distributed.is_initialized():
            store, rank, size = next(rendezvous("env://"))
            if os.environ.get("GROUP_WORLD_SIZE") == "1":
                # The store outlives workers that were killed; what they said in it must not be believed. Several
                # machines do not count restarts alike: docs/scale.md says what they need instead.
                attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
                store = torch.distributed.PrefixStore(attempt, store)  # type: ignore[attr-defined]
            torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=size)
        return cls(torch.distributed.get_rank(), torch.distributed.get_world_size())

    @property
    def leads(self) -> bool:
        """True for rank 0, the process that validates, shows and writes."""
        return self.rank == 0

    def share(self, lists: int) -> Integers:
        """The lists of a batch that this process learns from; every list belongs to exactly one process.

        >>> [ProcessGroup(rank, 3).share(7).tolist() for rank in range(3)]
        [[0, 3, 6], [1, 4], [2, 5]]
        """
        if lists < self.size:
            raise OptionError(f"{self.size} processes cannot share a batch of {lists}; raise batch_size or start fewer")
        return np.arange(self.rank, lists, self.size)

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over the processes, in one message."""
        if self.size == 1:
            return
        together = torch.cat([tensor.flatten() for tensor in tensors])
        torch.distributed.all_reduce(together)
        sums = torch.split(together, [tensor.numel() for tensor in tensors])
        for tensor, total in zip(tensors, sums, strict=True):
            tensor.copy_(total.view_as(tensor))

    def broadcast(self, value: float | None) -> float | None:
        """Rank 0's value on all processes, None included; decisions may rest on nothing else."""
        if self.size == 1:
            return value
        message = torch.tensor([float("nan") if value is None else value, float(value is None)], dtype=torch.float64)
        torch.distributed.broadcast(message, src=0)
        return None if message[1] else float(message[0])

    @contextmanager
    def alone(self, path: Path, *, busy: str) -> Iterator[None]:
        """Let no other processes into this block than those of the group; `locks.alone`, which rank 0 sees to."""
        with ExitStack() as held:
            free = True
            if self.leads:
                try:
                    held.enter_context(alone(path, busy=busy))
                except OptionError:
                    free = False
            if not self.broadcast(float(free)):
                raise OptionError(busy)
            yield

    def check_same(self, state: str) -> None:
        """Raise an `OptionError`, in all processes, unless all of them are in the same state."""
        if self.size == 1:
            return
        number = float(int.from_bytes(blake2b(state.encode(), digest_size=6).digest()))
        extremes = torch.tensor([number, -number], dtype=torch.float64)
        torch.distributed.all_reduce(extremes, torch.distributed.ReduceOp.MAX)
        if extremes.sum() != 0:
            raise OptionError(
                "the processes start from different logs, options or checkpoints; start all with the same command, "
                "and put the log and the folder of the model where all machines see the same files"
            )

    def shut_down(self) -> None:
        """Wait for all processes, then leave the group."""
        if self.size > 1:
            torch.distributed.barrier()
            torch.distributed.destroy_process_group()


ALONE = ProcessGroup()
"""A process that trains by itself."""
