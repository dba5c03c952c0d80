"""The ensembles of RankLib, which the learning-to-rank plugins read as `model/ranklib`."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from ultr.exporting.engines.nested import trees
from ultr.relevance.forest import Forest


def ensemble(forest: Forest) -> str:
    """The text of a model; features are numbered from 1, in the order of the feature set.

    Values that are at most the threshold go left. The format says nothing of missing values.
    """

    def split(
        _: int,
        feature: int,
        threshold: np.float32,
        missing_left: bool,  # noqa: ARG001, FBT001
        left: ElementTree.Element,
        right: ElementTree.Element,
    ) -> ElementTree.Element:
        node = ElementTree.Element("split")
        ElementTree.SubElement(node, "feature").text = str(feature + 1)
        ElementTree.SubElement(node, "threshold").text = repr(float(threshold))
        for side, child in (("left", left), ("right", right)):
            child.set("pos", side)
            node.append(child)
        return node

    def leaf(_: int, value: float) -> ElementTree.Element:
        node = ElementTree.Element("split")
        ElementTree.SubElement(node, "output").text = repr(value)
        return node

    whole = ElementTree.Element("ensemble")
    for number, root in enumerate(trees(forest, split, leaf)):
        ElementTree.SubElement(whole, "tree", id=str(number + 1), weight="1.0").append(root)
    ElementTree.indent(whole)
    return "## LambdaMART\n" + ElementTree.tostring(whole, encoding="unicode") + "\n"
