"""A trained model as one page: its training, its quality and what it learned."""

from ultr.reporting.inputs import ReportInputs
from ultr.reporting.model import Model, models_of
from ultr.reporting.report import comparison_report, report

__all__ = ["Model", "ReportInputs", "comparison_report", "models_of", "report"]
