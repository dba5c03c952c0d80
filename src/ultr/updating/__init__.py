"""The loop that keeps a served ranker up to date: a day of clicks, a new ranker, a gate, a ledger."""

from ultr.updating.actions import begin, roll_back, update
from ultr.updating.gate import Decision, PromotionGate
from ultr.updating.judgement import Judgement, judge
from ultr.updating.ledger import Ledger, LedgerEntry
from ultr.updating.run_folder import RunFolder
from ultr.updating.settings import UpdateSettings

__all__ = [
    "Decision",
    "Judgement",
    "Ledger",
    "LedgerEntry",
    "PromotionGate",
    "RunFolder",
    "UpdateSettings",
    "begin",
    "judge",
    "roll_back",
    "update",
]
