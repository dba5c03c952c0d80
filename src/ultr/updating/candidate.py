"""A new ranker for a day: trained on all but the reserved queries, from the weights of the one that is served."""

from __future__ import annotations

import glob
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ultr.data.click_log import ClickLog
from ultr.data.provenance import Lineage
from ultr.errors import ModelFileError, UltrWarning, WarmStartError
from ultr.methods import load
from ultr.methods.estimator import Estimator
from ultr.methods.model_file import weights_digest
from ultr.methods.ranker import Ranker
from ultr.methods.warm_start import TREES_ANEW
from ultr.train.progress import Observer
from ultr.updating.settings import UpdateSettings


@dataclass(frozen=True, eq=False)
class Shares:
    """The parts of a click log by what they are for."""

    trained_on: ClickLog
    chosen_by: ClickLog
    """A tenth of the queries, which chooses the weights."""
    reserved: ClickLog
    """Clicks of the last days on queries that no ranker of the run is trained on or chosen by."""

    @classmethod
    def of(cls, log: ClickLog, settings: UpdateSettings) -> Shares:
        """The parts of a log; a query is reserved on all days or on none."""
        kept = log.split(settings.reserve, by="hash", seed=settings.seed)[0]
        trained_on, chosen_by = kept.split(seed=settings.seed)
        recent = last_of(log, settings.compare_days)
        return cls(trained_on, chosen_by, recent.split(settings.reserve, by="hash", seed=settings.seed)[1])


def last_of(log: ClickLog, days: int) -> ClickLog:
    """The lists of the last days of a log, a day without a page counting as well."""
    assert log.periods is not None, "a log that grows has days"
    names = np.array(log.period_names, dtype="datetime64[D]")
    recent = names > names.max() - np.timedelta64(days, "D")
    return log if recent.all() else log.select(recent[log.periods])


@dataclass(frozen=True, eq=False)
class NewRanker:
    """A trained ranker, and why it did not begin with the served one if it did not."""

    ranker: Ranker
    anew: str = ""

    @classmethod
    def train(
        cls,
        shares: Shares,
        settings: UpdateSettings,
        served: Ranker | None,
        *,
        checkpoint: Path | None = None,
        progress: bool | Observer = False,
    ) -> NewRanker:
        """Train on a share of the log, from the weights of the served ranker where they fit."""

        def fitted(estimator: Estimator, init_model: Ranker | None) -> Ranker:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", TREES_ANEW, UltrWarning)
                try:
                    estimator.fit(
                        shares.trained_on,
                        validation=shares.chosen_by,
                        init_model=init_model,
                        checkpoint=checkpoint,
                        progress=progress,
                    )
                except ModelFileError:
                    # A checkpoint of other data or settings, or a damaged one, is worth nothing.
                    left = [] if checkpoint is None else [*checkpoint.parent.glob(f"{glob.escape(checkpoint.name)}*")]
                    if not left:
                        raise
                    for file in left:
                        file.unlink()
                    return fitted(estimator, init_model)
            return estimator.ranker_

        if served is None:
            return cls(fitted(settings.estimator(), None), "there was no ranker before")
        try:
            ranker = fitted(settings.estimator(warm=True), served)
        except WarmStartError as error:
            return cls(fitted(settings.estimator(), None), str(error))
        return cls(ranker, "" if ranker.provenance and ranker.provenance.init_model else TREES_ANEW)

    @classmethod
    def left_in(cls, folder: Path, shares: Shares, settings: UpdateSettings, served: Ranker | None) -> NewRanker | None:
        """The ranker that an earlier call has left in a folder; None unless it is what training would give again."""
        if not folder.is_dir():
            return None
        try:
            ranker = load(folder)
        except ModelFileError:
            return None
        record = ranker.provenance
        if record is None or record.data[0] != Lineage.of(shares.trained_on):
            return None
        begun = None if served is None else weights_digest(served.model)
        warm = record.init_model is not None
        if (warm and record.init_model != begun) or dict(ranker.options) != settings.estimator(warm=warm).content():
            return None
        return cls(ranker, "" if warm else "it was trained anew by a call that was stopped")
