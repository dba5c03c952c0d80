"""ONNX files such as `ultr export` writes, made by hand and without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ultr.arrays import Floats
from ultr.scoring import Card
from ultr.scoring.card import KEY, Form

NAMES = ("bm25", "clicks:30d", "age")


def card(
    names: Sequence[str] = NAMES, *, form: Form = "flat", typical: Sequence[float] | None = None, **more: Any
) -> Card:
    return Card(
        form=form,
        method="vectorization",
        pointwise=False,
        feature_names=list(names),
        typical=list(typical if typical is not None else np.arange(len(names)) / 2),
        model_digest="0" * 32,
        data_fingerprint="1" * 32,
        versions={"ultr": "0"},
        **more,
    )


def weights_of(names: Sequence[str] = NAMES, *, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=len(names)).astype(np.float32)


def write_ranker(
    path: Path,
    names: Sequence[str] = NAMES,
    *,
    form: Form = "flat",
    seed: int = 0,
    hidden: Sequence[int] = (),
    typical: Sequence[float] | None = None,
    **more: Any,
) -> Path:
    """A ranker in a file: features times weights, after hidden layers if any.

    In the flat form a candidate's score also has the number of queries added, so that a test sees whether the offsets
    were right. `more` is for the card.
    """
    described = card(names, form=form, typical=typical, **more)
    random = np.random.default_rng(seed)
    constants = {"typical": np.array(described.typical, dtype=np.float32)}
    nodes = [
        helper.make_node("IsNaN", ["features"], ["gaps"]),
        helper.make_node("Where", ["gaps", "typical", "features"], ["values0"]),
    ]
    last, width = "values0", len(names)
    for number, size in enumerate(hidden):
        constants[f"w{number}"] = random.normal(size=(width, size)).astype(np.float32) / np.float32(np.sqrt(width))
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"m{number}"]))
        nodes.append(helper.make_node("Relu", [f"m{number}"], [f"r{number}"]))
        last, width = f"r{number}", size
    constants["last"] = weights_of([""] * width, seed=seed)
    shape = ["documents"]
    inputs = [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["documents", len(names)])]
    if form == "flat":
        inputs.append(helper.make_tensor_value_info("offsets", TensorProto.INT64, ["bounds"]))
        constants |= {"one": np.array(1, dtype=np.float32)}
        nodes += [
            helper.make_node("MatMul", [last, "last"], ["products"]),
            helper.make_node("Size", ["offsets"], ["bounds_number"]),
            helper.make_node("Cast", ["bounds_number"], ["bounds_float"], to=TensorProto.FLOAT),
            helper.make_node("Sub", ["bounds_float", "one"], ["queries"]),
            helper.make_node("Add", ["products", "queries"], ["scores"]),
        ]
    elif form == "lists":
        shape = ["queries", "documents"]
        inputs = [
            helper.make_tensor_value_info("features", TensorProto.FLOAT, [*shape, len(names)]),
            helper.make_tensor_value_info("mask", TensorProto.BOOL, shape),
        ]
        constants |= {"nothing": np.array(np.nan, dtype=np.float32)}
        nodes += [
            helper.make_node("MatMul", [last, "last"], ["products"]),
            helper.make_node("Where", ["mask", "products", "nothing"], ["scores"]),
        ]
    else:
        nodes.append(helper.make_node("MatMul", [last, "last"], ["scores"]))
    graph = helper.make_graph(
        nodes,
        "ranker",
        inputs,
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {KEY: described.model_dump_json()})
    draft = path.with_name(f".{path.name}-draft")
    onnx.save(model, draft)
    draft.replace(path)
    return path
