"""The reasons for which rows are put aside, alone or with the rest of their page."""

from __future__ import annotations

from dataclasses import dataclass

from ultr.data.bias_factor import MOST_POSITIONS

KEPT = 0
_FIRST_OF_ROWS = 100


@dataclass(frozen=True)
class Reason:
    """One kind of fault; of several faults of a row, that with the lowest code counts."""

    code: int
    text: str

    @property
    def whole_page(self) -> bool:
        """True if the page goes with the row.

        It does where it is not known any more what was shown where, or for what: the other rows of the page might then
        be wrong as well. It does not where the fault is that of one document alone.
        """
        return self.code < _FIRST_OF_ROWS


NO_QUERY = Reason(1, "no query")
TWO_QUERIES = Reason(2, "two queries on one page")
LENGTHS = Reason(3, "lists of different lengths")
NO_POSITION = Reason(4, "no position")
BELOW_ONE = Reason(5, "position below 1")
TOO_FAR = Reason(6, f"position above {MOST_POSITIONS:,}")
TWICE = Reason(7, "same document twice on a page")
ONE_POSITION = Reason(8, "two documents at one position")
NO_TIME = Reason(9, "no time")
ROBOT = Reason(10, "clicks of a robot")
FEW_OF_QUERY = Reason(11, "query with few pages")
FEW_OF_USER = Reason(12, "user with few pages")
NO_IMPRESSION = Reason(101, "no impression id")
NO_DOCUMENT = Reason(102, "no document")
CLICK = Reason(103, "click is no number of clicks")
SIGNAL = Reason(104, "signal is no whole number")
NO_FACTOR = Reason(105, "no value of a numeric bias factor")
NOT_FINITE = Reason(106, "infinity or text in the features")
NO_FEATURES = Reason(107, "no features")
CONFLICT = Reason(108, "conflicting features")
PLACEMENT = Reason(109, "placement propensity or base position that is none")

REASONS = tuple(each for each in list(globals().values()) if isinstance(each, Reason))
LAST_OF_PAGES = _FIRST_OF_ROWS - 1
"""Codes from 1 to this are faults of whole pages."""
