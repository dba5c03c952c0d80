"""What was trained on what, how good it is and what it learned, as one page."""

from ultr.reporting.material import Material
from ultr.reporting.model import Model, models_of
from ultr.reporting.report import Report, comparison_report, report

__all__ = ["Material", "Model", "Report", "comparison_report", "models_of", "report"]
