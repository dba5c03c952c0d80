"""An examination of a click log, before anything is trained on it. No torch here."""

from ultr.diagnosis.diagnosis import Diagnosis, diagnose
from ultr.diagnosis.finding import Finding, FindingTable, Verdict
from ultr.diagnosis.page import diagnosis_page

__all__ = ["Diagnosis", "Finding", "FindingTable", "Verdict", "diagnose", "diagnosis_page"]
