"""The ensembles of RankLib, which the learning-to-rank plugins read as `model/ranklib`."""

from __future__ import annotations

from xml.etree import ElementTree

from ultr.exporting.engines.nested import InnerNode, trees
from ultr.scoring.forest import Forest


def ensemble(forest: Forest) -> str:
    """The text of a model; features are numbered from 1, in the order of the feature set.

    Values that are at most the threshold go left. The format says nothing of missing values.
    """

    def split(node: InnerNode[ElementTree.Element]) -> ElementTree.Element:
        made = ElementTree.Element("split")
        ElementTree.SubElement(made, "feature").text = str(node.feature + 1)
        ElementTree.SubElement(made, "threshold").text = repr(float(node.threshold))
        for side, child in (("left", node.left), ("right", node.right)):
            child.set("pos", side)
            made.append(child)
        return made

    def leaf(_: int, value: float) -> ElementTree.Element:
        node = ElementTree.Element("split")
        ElementTree.SubElement(node, "output").text = repr(value)
        return node

    whole = ElementTree.Element("ensemble")
    for number, root in enumerate(trees(forest, split, leaf)):
        ElementTree.SubElement(whole, "tree", id=str(number + 1), weight="1.0").append(root)
    ElementTree.indent(whole)
    return "## LambdaMART\n" + ElementTree.tostring(whole, encoding="unicode") + "\n"
