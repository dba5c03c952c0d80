"""Rankers as files that other programs run, checked against the model they were made from."""

from ultr.exporting.distillation import Distillation, distil
from ultr.exporting.export import Export, export
from ultr.exporting.forest_file import ForestExport, export_forest
from ultr.exporting.parity import Parity

__all__ = ["Distillation", "Export", "ForestExport", "Parity", "distil", "export", "export_forest"]
