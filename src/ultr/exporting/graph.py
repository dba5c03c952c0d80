"""A ranker as one ONNX graph: missing values, scaling, networks and projection inside."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional

from ultr.data.scaling import FeatureScaling
from ultr.methods.network import ClickNetwork
from ultr.scoring.card import KEY, Card
from ultr.train.inputs import FEWEST_TO_NORMALISE

if TYPE_CHECKING:
    from onnx import ModelProto


class Entrance(nn.Module):
    """Raw features as network inputs, [..., features]; what is missing counts as typical."""

    centre: Tensor
    factor: Tensor
    typical: Tensor

    def __init__(self, scaling: FeatureScaling) -> None:
        super().__init__()
        self.register_buffer("centre", torch.from_numpy(scaling.centre))
        self.register_buffer("factor", torch.from_numpy(scaling.factor))
        self.register_buffer("typical", torch.from_numpy(scaling.apply(scaling.typical)))

    def forward(self, features: Tensor) -> Tensor:
        """[documents, features] -> [documents, features]."""
        scaled = (features - self.centre) * self.factor
        # NaN and infinity minus themselves are NaN: two operations in the graph, where `isfinite` takes five.
        known = torch.where(scaled - scaled == 0, scaled, self.typical)
        if known.shape[-1] < FEWEST_TO_NORMALISE:
            return known
        return functional.layer_norm(known, known.shape[-1:])


class ListsGraph(nn.Module):
    """Padded lists with a mask; where there is no document, the score is that of the last rank, minus infinity."""

    def __init__(self, entrance: Entrance, network: ClickNetwork) -> None:
        super().__init__()
        self.entrance, self.network = entrance, network

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        """[queries, documents, features] and [queries, documents] -> [queries, documents]."""
        queries, documents, width = features.shape
        values = self.network.embed(self.entrance(features.reshape(queries * documents, width)))
        scores = self.network.combine(values.reshape(queries, documents, values.shape[-1]), mask)
        return scores.masked_fill(~mask, float("-inf"))


class FlatGraph(nn.Module):
    """All documents in one array; only the few values that a score is made of are padded, never the features."""

    def __init__(self, entrance: Entrance, network: ClickNetwork) -> None:
        super().__init__()
        self.entrance, self.network = entrance, network

    def forward(self, features: Tensor, offsets: Tensor) -> Tensor:
        """[documents, features] and [queries + 1] -> [documents]."""
        values = self.network.embed(self.entrance(features))
        starts, lengths = offsets[:-1], offsets[1:] - offsets[:-1]
        places = torch.arange(lengths.max().item())
        mask = places < lengths.unsqueeze(1)
        rows = torch.where(mask, starts.unsqueeze(1) + places, 0)
        return self.network.combine(values[rows], mask)[mask]


class DocumentsGraph(nn.Module):
    """One document at a time, for engines that know no lists."""

    def __init__(self, entrance: Entrance, network: nn.Module) -> None:
        super().__init__()
        self.entrance, self.network = entrance, network

    def forward(self, features: Tensor) -> Tensor:
        """[documents, features] -> [documents]."""
        scores: Tensor = self.network(self.entrance(features))
        return scores.squeeze(-1)


def as_onnx(graph: ListsGraph | FlatGraph | DocumentsGraph, card: Card) -> ModelProto:
    """The graph with its card, free in the numbers of queries and documents."""
    import onnx

    width = len(card.feature_names)
    queries, documents = Dim("queries", min=1), Dim("documents", min=1)
    examples: dict[str, tuple[Tensor, dict[int, Any]]]
    match card.form:
        case "lists":
            examples = {
                "features": (torch.zeros(2, 3, width), {0: queries, 1: documents}),
                "mask": (torch.ones(2, 3, dtype=torch.bool), {0: queries, 1: documents}),
            }
        case "flat":
            examples = {
                "features": (torch.zeros(5, width), {0: documents}),
                "offsets": (torch.tensor([0, 2, 5]), {0: Dim("bounds", min=2)}),
            }
        case "documents":
            examples = {"features": (torch.zeros(3, width), {0: documents})}
    with _quiet():
        program = torch.onnx.export(
            graph.eval(),
            tuple(example for example, _ in examples.values()),
            dynamo=True,
            input_names=list(examples),
            output_names=["scores"],
            dynamic_shapes={name: sizes for name, (_, sizes) in examples.items()},
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    _forget_where_it_was_written(model)
    onnx.helper.set_model_props(model, {KEY: card.model_dump_json()})
    return model


def _forget_where_it_was_written(model: Any) -> None:
    """Drop the notes of the exporter, which hold lines of source code and paths of this machine."""
    model.producer_name, model.doc_string = "ultr", ""
    for part in (model, model.graph, *model.functions):
        del part.metadata_props[:]
    for named in (*model.graph.node, *model.graph.initializer, *model.graph.value_info):
        del named.metadata_props[:]
        named.doc_string = ""
    for value in (*model.graph.input, *model.graph.output):
        del value.metadata_props[:]
    # The exporter cannot know that as many scores come out as documents went in.
    model.graph.output[0].type.tensor_type.shape.dim[-1].dim_param = "documents"


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter tells its developers; what it got wrong shows in the parity check."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
