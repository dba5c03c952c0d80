"""ONNX files with a right card and a graph that no ranker has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tests.serving.ranker_file import NAMES, card

from ultr.scoring.card import KEY

FLOAT = TensorProto.FLOAT
FEATURES = helper.make_tensor_value_info("features", FLOAT, ["documents", len(NAMES)])
SCORES = helper.make_tensor_value_info("scores", FLOAT, ["documents"])
ONES = np.ones(len(NAMES), dtype=np.float32)
PRODUCTS = helper.make_node("MatMul", ["features", "ones"], ["products"])


def odd_graphs() -> dict[str, onnx.ModelProto]:
    """Graphs that must be refused when they are loaded, by what is odd about them."""
    scalar, text = (
        helper.make_tensor_value_info("scores", kind, shape)
        for kind, shape in ((FLOAT, []), (TensorProto.STRING, ["documents"]))
    )
    total = helper.make_node("ReduceSum", ["products"], ["scores"], keepdims=0)
    first = helper.make_node("Slice", ["products", "zero", "one"], ["scores"])
    same = helper.make_node("Identity", ["products"], ["scores"])
    flat = helper.make_tensor_value_info("features", FLOAT, [])
    return {
        "no input": _model([helper.make_node("Identity", ["ones"], ["scores"])], inputs=[]),
        "a scalar as input": _model([helper.make_node("Mul", ["features", "ones"], ["scores"])], inputs=[flat]),
        "one score for all": _model([PRODUCTS, total], outputs=[scalar]),
        "one score for all, undeclared": _model([PRODUCTS, total]),
        "texts as scores": _model(
            [PRODUCTS, helper.make_node("Cast", ["products"], ["scores"], to=TensorProto.STRING)], outputs=[text]
        ),
        "two outputs": _model(
            [PRODUCTS, same], outputs=[SCORES, helper.make_tensor_value_info("products", FLOAT, ["documents"])]
        ),
        "too few scores": _model([PRODUCTS, first]),
        "no end": endless(),
    }


def endless(*, above: float | None = None) -> onnx.ModelProto:
    """A graph that loops for ever, or as soon as the sum of a candidate's features is above this."""
    kept = [("going_on", TensorProto.BOOL, []), ("value", FLOAT, ["documents"])]
    body = helper.make_graph(
        [helper.make_node("Identity", [name], [f"{name}_out"]) for name, _, _ in kept],
        "body",
        [helper.make_tensor_value_info("step", TensorProto.INT64, [])]
        + [helper.make_tensor_value_info(*each) for each in kept],
        [helper.make_tensor_value_info(f"{name}_out", kind, shape) for name, kind, shape in kept],
    )
    begins = [
        helper.make_node("ReduceMax", ["products"], ["largest"], keepdims=0),
        helper.make_node("Greater", ["largest", "above"], ["begin"]),
    ]
    loop = helper.make_node("Loop", ["steps", "begin", "products"], ["scores"], body=body)
    limit = -np.inf if above is None else above
    return _model([PRODUCTS, *begins, loop], above=np.array(limit, dtype=np.float32))


def with_external_data(place: str) -> dict[str, onnx.ModelProto]:
    """Graphs that name the file `secret.txt` as the values of a tensor, by where that tensor stands."""
    tensor = onnx.TensorProto(name="secret", data_type=TensorProto.UINT8, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=place)
    cast = helper.make_node("Cast", ["secret"], ["numbers"], to=FLOAT)
    rest = [
        PRODUCTS,
        helper.make_node("ReduceSum", ["numbers"], ["sum"], keepdims=0),
        helper.make_node("Add", ["products", "sum"], ["scores"]),
    ]
    initializer = _model([cast, *rest])
    initializer.graph.initializer.append(tensor)
    constant = _model([helper.make_node("Constant", [], ["secret"], value=tensor), cast, *rest])
    inner = helper.make_graph(
        [helper.make_node("Identity", ["secret"], ["numbers_out"])],
        "inner",
        [],
        [helper.make_tensor_value_info("numbers_out", TensorProto.UINT8, [4])],
        [tensor],
    )
    chosen = helper.make_node("If", ["yes"], ["secret"], then_branch=inner, else_branch=inner)
    return {"initializer": initializer, "constant": constant, "subgraph": _model([chosen, cast, *rest])}


def write(model: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def _model(nodes: list[Any], *, inputs: Any = (FEATURES,), outputs: Any = (SCORES,), **more: Any) -> onnx.ModelProto:
    constants = {
        "ones": ONES,
        "zero": np.array([0]),
        "one": np.array([1]),
        "yes": np.array(True),
        "steps": np.array(2**62),
        **more,
    }
    used = {name for node in nodes for name in node.input}
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items() if name in used]
    graph = helper.make_graph(nodes, "odd", list(inputs), list(outputs), tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {KEY: card(form="documents").model_dump_json()})
    return model
