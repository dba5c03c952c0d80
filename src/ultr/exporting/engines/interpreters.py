"""Readers of model files that score as the engines do, by their documentation and independent of the writers.

A reader takes the content of a file and the names of the features, and gives a function from the values of one
document, None where one is missing, to its score.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np

Score = Callable[[dict[str, float | None]], float]
_SPLIT = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
_DECISIONS = {"lt": operator.lt, "lte": operator.le, "gt": operator.gt, "gte": operator.ge}


def plugin(content: str, _: Sequence[str]) -> Score:
    """`model/xgboost+json` of the plugins: strict keys, float32, below the condition to yes, missing to missing."""
    body = json.loads(content)["model"]["model"]
    if body["type"] != "model/xgboost+json":
        raise ValueError(f"unknown type {body['type']}")
    roots = json.loads(body["definition"])
    for root in roots:
        _check_plugin(root)

    def follow(node: dict[str, Any], document: dict[str, float | None]) -> float:
        while "leaf" not in node:
            value = document[node["split"]]
            chosen = node["missing"]
            if value is not None:
                chosen = node["yes"] if np.float32(value) < np.float32(node["split_condition"]) else node["no"]
            node = next(child for child in node["children"] if child["nodeid"] == chosen)
        return float(np.float32(node["leaf"]))

    return lambda document: sum(follow(root, document) for root in roots)


def _check_plugin(node: dict[str, Any]) -> None:
    """Raise a `ValueError` for what the strict parser of the plugins refuses."""
    if "leaf" in node:
        if set(node) != {"nodeid", "leaf"}:
            raise ValueError("a leaf has other keys")
        return
    first, second = node["children"]
    if set(node) != _SPLIT or (first["nodeid"], second["nodeid"]) != (node["yes"], node["no"]):
        raise ValueError("a split has other keys or children")
    _check_plugin(first)
    _check_plugin(second)


def elastic(content: str, _: Sequence[str]) -> Score:
    """A compressed ensemble of trees, whose outputs are summed with weights."""
    body = json.loads(content)
    if "input" in body:
        raise ValueError("a model of the type learning_to_rank takes no input")
    packed = base64.b64decode(body["compressed_definition"])
    ensemble = json.loads(gzip.decompress(packed))["trained_model"]["ensemble"]
    members = [
        (each["tree"]["feature_names"], {node["node_index"]: node for node in each["tree"]["tree_structure"]})
        for each in ensemble["trained_models"]
    ]
    weights = ensemble["aggregate_output"]["weighted_sum"].get("weights", [1.0] * len(members))

    def follow(names: list[str], nodes: dict[int, dict[str, Any]], document: dict[str, float | None]) -> float:
        node = nodes[0]
        while "leaf_value" not in node:
            value, left = document[names[node["split_feature"]]], node["default_left"]
            if value is not None:
                left = _DECISIONS[node["decision_type"]](value, node["threshold"])
            node = nodes[node["left_child"] if left else node["right_child"]]
        return float(node["leaf_value"])

    def score(document: dict[str, float | None]) -> float:
        outputs = (follow(*member, document) for member in members)
        return math.fsum(weight * output for weight, output in zip(weights, outputs, strict=True))

    return score


def solr(content: str, _: Sequence[str]) -> Score:
    """Additive trees: at most threshold + 1e-6, in float32, goes left; missing right, or where the node says if null is
    not the same as zero.
    """
    model = json.loads(content)
    known = {feature["name"] for feature in model["features"]}
    knows_missing = model["params"].get("isNullSameAsZero", True) is False

    def follow(node: dict[str, Any], document: dict[str, float | None]) -> float:
        while "value" not in node:
            if node["feature"] not in known:
                raise ValueError(f"unknown feature {node['feature']}")
            value, side = document[node["feature"]], node["missing"] if knows_missing else "right"
            if value is not None:
                bound = np.float32(node["threshold"]) + np.float32(1e-6)
                side = "left" if np.float32(value) <= bound else "right"
            node = node[side]
        return float(np.float32(node["value"]))

    trees = model["params"]["trees"]
    return lambda document: sum(float(tree["weight"]) * follow(tree["root"], document) for tree in trees)


def ranklib(content: str, names: Sequence[str]) -> Score:
    """An ensemble: at most the threshold goes left; features are numbered from 1 in the order of the feature set."""
    whole = ElementTree.fromstring(content[content.index("<") :])
    trees = [(float(tree.get("weight", "1")), tree[0]) for tree in whole.findall("tree")]

    def follow(node: ElementTree.Element, document: dict[str, float | None]) -> float:
        while node.find("output") is None:
            value = document[names[int(node.findtext("feature", "")) - 1]]
            if value is None:
                raise ValueError("RankLib knows no missing values")
            side = "left" if np.float32(value) <= np.float32(node.findtext("threshold")) else "right"
            node = next(child for child in node.findall("split") if child.get("pos") == side)
        return float(node.findtext("output", ""))

    return lambda document: sum(weight * follow(root, document) for weight, root in trees)


def vespa(content: str, _: Sequence[str]) -> Score:
    """LightGBM's dump: below the threshold goes left, missing by default_left; it looks for categories, too."""
    dump = json.loads(content)
    names = dump["feature_names"]
    if dump["pandas_categorical"]:
        raise ValueError("there are no categories")

    def follow(node: dict[str, Any], document: dict[str, float | None]) -> float:
        while "leaf_value" not in node:
            if node["decision_type"] != "<=":
                raise ValueError(f"unknown decision {node['decision_type']}")
            value = document[names[node["split_feature"]]]
            left = node["default_left"] if value is None else value < node["threshold"]
            node = node["left_child" if left else "right_child"]
        return float(node["leaf_value"])

    return lambda document: sum(follow(tree["tree_structure"], document) for tree in dump["tree_info"])
