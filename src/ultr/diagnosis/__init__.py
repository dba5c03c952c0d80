"""An examination of a click log, before anything is trained on it. No torch here."""

from ultr.diagnosis.diagnosis import Diagnosis, diagnose
from ultr.pages import Verdict

__all__ = ["Diagnosis", "Verdict", "diagnose"]
