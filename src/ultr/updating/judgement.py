"""A new ranker beside the one that is served, measured by the clicks on queries that neither was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ultr.arrays import Floats, Integers
from ultr.data.categories import Categories, recode
from ultr.data.click_log import ClickLog
from ultr.data.provenance import Provenance
from ultr.diagnosis import Diagnosis
from ultr.errors import DataError
from ultr.evaluation import Assumption, compare, shift_from_log, unseen_part
from ultr.evaluation.relative_gain import relative_gain
from ultr.methods.ranker import Ranker
from ultr.metrics import Interval
from ultr.metrics.exposure import ExposureShift
from ultr.pages import Verdict, sentences

SERVED, NEW = "served", "new"
"""Names of the two rankers in a comparison."""
LEVEL = 0.95
NOT_TESTED = Assumption(None, None, "Whether one number for each position is enough is for the doctor to say.")
STOPPING = ("volume", "identifiability")
"""Findings of the doctor that stop a promotion if they are bad.

That features tell the position is no reason: where the ranker that shows the lists is a function of the features, they
do, and swaps tell bias and relevance apart all the same.
"""


@dataclass(frozen=True)
class Judgement:
    """All that the gate goes by."""

    gain: Interval | None
    """Gain of the new ranker over the served one, as a share of what the compared pages had; None: not measured."""
    why: str
    """The answer of the comparison, or the reason why there is none."""
    shift: ExposureShift
    """The shift of exposure from the served ranker to the new one."""
    troubles: Mapping[str, str] = field(default_factory=dict)
    """Bad findings of the doctor by name, with their answers."""
    compared_on: str = ""
    remarks: tuple[str, ...] = ()
    counted: str = "clicks"
    """What the gain is in."""

    @property
    def interval(self) -> str:
        """The interval of the gain in words."""
        assert self.gain is not None
        return f"{LEVEL:.0%} interval {self.gain.low:+.1%} to {self.gain.high:+.1%}"


@dataclass(frozen=True, eq=False)
class _Recoded:
    """A ranker that takes the codes that a log has for the values of categorical features."""

    ranker: Ranker
    categories: Categories
    """Those of the log."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.ranker.feature_names

    @property
    def provenance(self) -> Provenance | None:
        return self.ranker.provenance

    def score(self, features: Floats, offsets: Integers) -> Floats:
        names, known = self.feature_names, self.ranker.categories
        return self.ranker.score(recode(features, names, self.categories, known, what="the log"), offsets)


def judge(
    served: Ranker,
    new: Ranker,
    reserved: ClickLog,
    *,
    swaps: ClickLog,
    assumption: Assumption = NOT_TESTED,
    seed: int = 0,
) -> Judgement:
    """Measure a new ranker beside the one that is served.

    `reserved` holds the clicks on queries that are kept from training, `swaps` is the log that it is a part of, whose
    swaps tell the position bias, and `assumption` what the doctor found in it. A ranker by value is measured by that
    value, others by clicks.
    """
    value = new.options.get("value")
    before, after = (_Recoded(each, reserved.categories) for each in (served, new))
    shift = shift_from_log(after, reserved, base=before)
    try:
        unseen = unseen_part({SERVED: before, NEW: after}, reserved)
        found = compare(
            before,
            after,
            reserved,
            swaps=swaps,
            names=(SERVED, NEW),
            assumption=assumption,
            unseen=unseen,
            value=value,
            level=LEVEL,
            seed=seed,
        )
    except DataError as error:
        return Judgement(None, str(error), shift)
    gain, why = None, f"{found.value.verdict}: {found.value.reason}"
    if found.value.supported:
        gain = relative_gain(found.value.difference, unseen.log, value)
    # The log of the comparison is the reserved part of the run's.
    part = unseen.name.replace("of the log", "that are reserved")
    remarks = tuple(filter(None, [*unseen.remarks, sentences([assumption.stopped])]))
    return Judgement(gain, why, shift, compared_on=part, remarks=remarks, counted=found.counted)


def troubles(diagnosis: Diagnosis) -> dict[str, str]:
    """The findings that stop a promotion, by name, with their answers."""
    found = [finding for finding in diagnosis.findings if finding.name in STOPPING]
    return {finding.name: finding.answer for finding in found if finding.verdict is Verdict.BAD}
