"""The loop that keeps a served ranker up to date: a day of clicks, a new ranker, a gate, a ledger."""

from ultr.updating.actions import begin as begin
from ultr.updating.actions import roll_back as roll_back
from ultr.updating.actions import update as update
from ultr.updating.gate import promotes as promotes
from ultr.updating.judgement import Judgement as Judgement
from ultr.updating.judgement import judge as judge
from ultr.updating.ledger import Ledger as Ledger
from ultr.updating.ledger import LedgerEntry as LedgerEntry
from ultr.updating.run_folder import RunFolder as RunFolder
from ultr.updating.settings import UpdateSettings as UpdateSettings
