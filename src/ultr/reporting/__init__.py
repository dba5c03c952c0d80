"""What was trained on what, how good it is and what it learned, as one page."""

from ultr.reporting.inputs import ReportInputs
from ultr.reporting.model import Model, models_of
from ultr.reporting.report import Report, comparison_report, report

__all__ = ["Model", "Report", "ReportInputs", "comparison_report", "models_of", "report"]
