"""Steps on all lists at once: how trees learn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from ultr.data import ragged
from ultr.relevance.inputs import Documents
from ultr.train.lists import Batch
from ultr.train.selection import chunks
from ultr.train.steps import Steps

AT_ONCE = 2**18
"""Documents of a block, padding included."""
_SIGNS = np.array([-1, 1], dtype=np.float32)


@dataclass
class FullSteps(Steps):
    """Steps on all lists, each of which counts as often as it was shown.

    The lists of this process are cut into blocks, which are made once. The loss is summed over the blocks and over
    the processes; then every process grows the same trees.
    """

    def __post_init__(self) -> None:
        lists = self.lists
        impressions = self.weights
        weights = impressions / impressions.sum()
        mine = np.zeros(lists.lists, dtype=bool)
        mine[self.group.share(lists.lists)] = True
        mine &= impressions > 0
        if self.stage.clicked_only:
            mine &= lists.clicked
        own = (chunk[mine[chunk]] for chunk in chunks(lists.offsets, most=AT_ONCE))
        self._blocks = [
            (
                each,
                replace(lists.batch(each, readers=self.stage.readers), weights=torch.from_numpy(weights[each]).float()),
            )
            for each in own
            if len(each)
        ]
        documents = lists.documents
        if self.stage.part is not None:
            documents = documents[ragged.rows_of(np.flatnonzero(self.stage.part), lists.offsets)]
        shown = torch.from_numpy(np.unique(documents).astype(np.int64))
        moving = [self.model.by_name[name] for name in self.stage.moves]
        for model in moving:
            model.begin(Documents(lists.inputs, shown))
        self._growing = [model for model in moving if model.table is not None]
        self._fixed: dict[tuple[str, int], Tensor] = {}
        self._parameters = [each for part in self.optimizer.param_groups for each in part["params"]]

    def __call__(self, step: int) -> float:
        """Add a tree for each output, and move the bias parameters."""
        tables = [table for model in self._growing if (table := model.table) is not None]
        # The diagonal of the Hessian by one vector v of random signs: E[ v * (H v) ] = diag(H).
        random = self.random("signs", step)
        signs = [torch.from_numpy(random.choice(_SIGNS, size=tuple(table.shape))) for table in tables]
        moving = [parameter for parameter in self._parameters if parameter.requires_grad]
        slopes, products, gradients = ([torch.zeros_like(each) for each in part] for part in (tables, tables, moving))
        loss, sums = torch.zeros(()), None
        for batch in self._batches(step):
            losses, part = self.stage.losses(self._outputs(batch), batch)
            assert batch.weights is not None
            value = losses @ batch.weights
            found = torch.autograd.grad(value, [*tables, *moving], create_graph=bool(tables), allow_unused=True)
            _add(slopes + gradients, found)
            if tables:
                along = torch.stack([(slope * sign).sum() for slope, sign in zip(found, signs, strict=False)]).sum()
                _add(products, torch.autograd.grad(along, tables, allow_unused=True))
            loss += value.detach()
            sums = part if sums is None or part is None else sums + part
        if self.stage.penalty is not None:
            penalty = self.stage.penalty(self.model.by_name) / self.group.size
            _add(gradients, torch.autograd.grad(penalty, moving, allow_unused=True))
        self.group.all_reduce([*slopes, *products, *gradients, loss])
        if sums is not None:
            self.group.all_reduce([sums])
        for parameter, gradient in zip(moving, gradients, strict=True):
            parameter.grad = gradient
        norm = float(nn.utils.clip_grad_norm_(moving, self.training.clip_norm)) if moving else 0.0
        if not math.isfinite(float(loss) + norm):
            raise FloatingPointError(f"the loss is {float(loss)}, and the gradient norm {norm}")
        self.optimizer.step()
        for model, slope, product, sign in zip(self._growing, slopes, products, signs, strict=True):
            # In units of a document: the derivatives of one are about 1, whatever the size of the log.
            model.step(slope * len(slope), product * sign * len(slope))
        if self.stage.update is not None:
            assert sums is not None, "a stage with an update needs a loss that gives sums"
            with torch.no_grad():
                self.stage.update(sums)
        return float(loss)

    def _outputs(self, batch: Batch) -> Tensor:
        """The outputs of the models that the loss takes; those that keep still are asked once."""
        found = []
        for name in self.stage.uses:
            key = name, id(batch.documents)
            if name in self.stage.moves:
                found.append(self.model.outputs(batch.documents, [name]))
            else:
                if key not in self._fixed:
                    with torch.no_grad():
                        self._fixed[key] = self.model.outputs(batch.documents, [name])
                found.append(self._fixed[key])
        return torch.cat(found, dim=-1)

    def _batches(self, step: int) -> Iterator[Batch]:
        """The blocks, with new noise if the stage asks for it; what a list gets is the same in every process."""
        noise = self.stage.noise
        drawn = self.random("noise", step).random((len(self.lists.documents), noise), dtype=np.float32)
        for lists, batch in self._blocks:
            rows = ragged.rows_of(lists, self.lists.offsets)
            yield replace(batch, noise=torch.from_numpy(drawn[rows])) if noise else batch


def _add(sums: list[Tensor], found: Sequence[Tensor | None]) -> None:
    for total, each in zip(sums, found, strict=True):
        if each is not None:
            total += each.detach()
