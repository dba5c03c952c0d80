"""Rankers as files that other programs run, checked against the model they were made from."""

from ultr.exporting.export import Export, export
from ultr.exporting.parity import Parity

__all__ = ["Export", "Parity", "export"]
