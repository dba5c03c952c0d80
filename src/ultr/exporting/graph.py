"""A ranker as one ONNX graph: missing values, scaling, networks and projection inside."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from ultr.methods.ranker import Ranker
from ultr.relevance.relevance_model import RelevanceModel
from ultr.scoring.card import KEY, Card, Form


class RankerGraph(nn.Module):
    """The outputs of relevance models side by side, from raw features in which values may be missing."""

    def __init__(self, ranker: Ranker, models: Iterable[RelevanceModel]) -> None:
        super().__init__()
        self.preprocessing, self.objective = ranker.preprocessing, ranker.model.ranking
        models = list(models)
        self.models = nn.ModuleList(model.graph() for model in models)
        self.raw = [model.takes_missing for model in models]

    def outputs(self, features: Tensor) -> Tensor:
        """[documents, features] -> [documents, outputs]."""
        inputs, codes = self.preprocessing(features), self.preprocessing.with_known_codes(features)
        found = [model(codes if raw else inputs) for model, raw in zip(self.models, self.raw, strict=True)]
        return found[0] if len(found) == 1 else torch.cat(found, dim=-1)


class ListsGraph(RankerGraph):
    """Padded lists with a mask; where there is no document, the score is that of the last rank, minus infinity."""

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        """[queries, documents, features] and [queries, documents] -> [queries, documents]."""
        queries, documents, width = features.shape
        r = self.outputs(features.reshape(queries * documents, width))
        scores: Tensor = self.objective.combine(r.reshape(queries, documents, r.shape[-1]), mask)
        return scores.masked_fill(~mask, float("-inf"))


class FlatGraph(RankerGraph):
    """All documents in one array; only the few values that a score is made of are padded, never the features."""

    def forward(self, features: Tensor, offsets: Tensor) -> Tensor:
        """[documents, features] and [queries + 1] -> [documents]."""
        r = self.outputs(features)
        starts, lengths = offsets[:-1], offsets[1:] - offsets[:-1]
        places = torch.arange(lengths.max().item())
        mask = places < lengths.unsqueeze(1)
        rows = torch.where(mask, starts.unsqueeze(1) + places, 0)
        return self.objective.combine(r[rows], mask)[mask]


class DocumentsGraph(RankerGraph):
    """One document at a time, for engines that know no lists."""

    def forward(self, features: Tensor) -> Tensor:
        """[documents, features] -> [documents]."""
        return self.outputs(features).sum(dim=-1)


GRAPHS: dict[Form, type[RankerGraph]] = {"lists": ListsGraph, "flat": FlatGraph, "documents": DocumentsGraph}


def as_onnx(ranker: Ranker, models: Iterable[RelevanceModel], card: Card) -> bytes:
    """The graph that the card describes, free in the numbers of queries and documents, as the content of a file."""
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
            GRAPHS[card.form](ranker, models).eval(),
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
    content: bytes = model.SerializeToString(deterministic=True)
    return content


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
