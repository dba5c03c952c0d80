"""What engines do with a model file, one function an engine, from their documentation and independent of the writers.

Each takes the file and the features of one document by name, None where one is missing, and gives its score.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import operator
from typing import Any
from xml.etree import ElementTree

import numpy as np

Document = dict[str, float | None]
KEYS = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}


def plugin(definition: str, document: Document) -> float:
    """`model/xgboost+json` of the plugins: strict keys, float32, `<` to yes, missing to missing."""
    return sum(_plugin_node(tree, document) for tree in json.loads(definition))


def _plugin_node(node: dict[str, Any], document: Document) -> float:
    if "leaf" in node:
        assert set(node) == {"nodeid", "leaf"}
        return float(np.float32(node["leaf"]))
    assert set(node) == KEYS, "the parser is strict"
    first, second = node["children"]
    assert (first["nodeid"], second["nodeid"]) == (node["yes"], node["no"])
    value = document[node["split"]]
    if value is None:
        chosen = node["missing"]
    else:
        chosen = node["yes"] if np.float32(value) < np.float32(node["split_condition"]) else node["no"]
    return _plugin_node({first["nodeid"]: first, second["nodeid"]: second}[chosen], document)


def elastic(body: dict[str, Any], document: Document) -> float:
    """A compressed ensemble of trees with a weighted sum of their outputs."""
    packed = base64.b64decode(body["compressed_definition"])
    ensemble = json.loads(gzip.decompress(packed))["trained_model"]["ensemble"]
    outputs = []
    for member in ensemble["trained_models"]:
        tree = member["tree"]
        nodes = {node["node_index"]: node for node in tree["tree_structure"]}
        node = nodes[0]
        while "leaf_value" not in node:
            value = document[tree["feature_names"][node["split_feature"]]]
            compare = {"lt": operator.lt, "lte": operator.le, "gt": operator.gt, "gte": operator.ge}
            left = node["default_left"]
            if value is not None:
                left = compare[node["decision_type"]](value, node["threshold"])
            node = nodes[node["left_child"] if left else node["right_child"]]
        outputs.append(node["leaf_value"])
    weights = ensemble["aggregate_output"]["weighted_sum"].get("weights", [1.0] * len(outputs))
    return math.fsum(weight * output for weight, output in zip(weights, outputs, strict=True))


def solr(model: dict[str, Any], document: Document) -> float:
    """Additive trees: at most threshold + 1e-6 in float32 goes left; missing where the node says."""
    assert model["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    known = {feature["name"] for feature in model["features"]}

    def follow(node: dict[str, Any]) -> float:
        if "value" in node:
            return float(np.float32(node["value"]))
        assert node["feature"] in known
        value = document[node["feature"]]
        if value is None:
            return follow(node[node["missing"]])
        bound = np.float32(node["threshold"]) + np.float32(1e-6)
        return follow(node["left" if np.float32(value) <= bound else "right"])

    return sum(float(tree["weight"]) * follow(tree["root"]) for tree in model["params"]["trees"])


def ranklib(text: str, document: Document) -> float:
    """An ensemble: at most the threshold goes left; features are numbered from 1 in the order of the document."""
    values = list(document.values())

    def follow(node: ElementTree.Element) -> float:
        if (output := node.findtext("output")) is not None:
            return float(output)
        value = values[int(node.findtext("feature") or 0) - 1]
        assert value is not None, "the format knows no missing values"
        side = "left" if np.float32(value) <= np.float32(node.findtext("threshold")) else "right"
        return follow(next(child for child in node.findall("split") if child.get("pos") == side))

    body = text[text.index("<") :]
    roots = [
        (float(tree.get("weight", "1")), tree.find("split")) for tree in ElementTree.fromstring(body).findall("tree")
    ]
    return sum(weight * follow(root) for weight, root in roots if root is not None)


def vespa(dump: dict[str, Any], document: Document) -> float:
    """LightGBM's dump: at most the threshold goes left, missing by default_left."""
    names = dump["feature_names"]

    def follow(node: dict[str, Any]) -> float:
        if "leaf_value" in node:
            return float(node["leaf_value"])
        assert node["decision_type"] == "<="
        value = document[names[node["split_feature"]]]
        left = node["default_left"] if value is None else value <= node["threshold"]
        return follow(node["left_child" if left else "right_child"])

    return sum(follow(tree["tree_structure"]) for tree in dump["tree_info"])
