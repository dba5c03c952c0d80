"""From raw click logs to the collapsed `ClickLog`. No torch here; ibis is imported when it is used."""

from ultr.preparation.log import Prepared, prepare, read_log
from ultr.preparation.options import Options
from ultr.preparation.summary import Summary

__all__ = ["Options", "Prepared", "Summary", "prepare", "read_log"]
