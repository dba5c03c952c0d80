"""An examination of a click log, before anything is trained on it. No torch here."""

from ultr.diagnosis.diagnosis import Diagnosis, diagnose
from ultr.diagnosis.finding import Finding, Verdict
from ultr.diagnosis.page import diagnosis_page

__all__ = ["Diagnosis", "Finding", "Verdict", "diagnose", "diagnosis_page"]
