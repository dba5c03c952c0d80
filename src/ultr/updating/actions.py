"""Actions of a run: begin, take in a day, roll back. Each ends with an entry in its ledger.

The ledger is written before the served file is exchanged, and the next call finishes what is missing. All else that a
killed call leaves is found again and used if it is the same, or written anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from ultr.data.click_log import ClickLog
from ultr.diagnosis import diagnose
from ultr.errors import DataError, OptionError
from ultr.evaluation import Assumption
from ultr.exporting import export
from ultr.methods import load
from ultr.methods.model_file import load_manifest, weights_digest
from ultr.methods.ranker import Ranker
from ultr.preparation.growth import Grown
from ultr.preparation.log import prepare
from ultr.preparation.summary import Summary
from ultr.scoring import Scorer
from ultr.train.progress import Observer
from ultr.updating.candidate import NewRanker, Shares
from ultr.updating.gate import promotes
from ultr.updating.judgement import judge, troubles
from ultr.updating.ledger import FIRST, KEPT, PROMOTED, ROLLED_BACK, Ledger, LedgerEntry
from ultr.updating.run_folder import SETTINGS, RunFolder, digest_of_file
from ultr.updating.settings import UpdateSettings

DOCTOR_SAMPLES = 50
"""Resamples for the doctor's curves, which decide nothing here."""
SURE_OF_CLICKS = 10
"""Clicks that a day would usually have of which not one is missing by chance: exp(-10)."""


def begin(
    folder: str | Path,
    settings: UpdateSettings,
    *,
    model: str | Path | None = None,
    progress: bool | Observer = False,
) -> LedgerEntry:
    """Begin a run with a click log, and with a model of yours or one that is trained on it.

    A file that is served already is left as it is; it must have been exported from the model.
    """
    run = RunFolder(Path(folder))
    if run.path.exists() and any(run.path.iterdir()) and not (run.path / SETTINGS).is_file():
        raise OptionError(f"{run.path} holds other files; give a new folder for the run")
    with run.alone():
        ledger = run.ledger()
        if ledger.entries:
            raise OptionError(f"{run.path} is a run already, with {len(ledger.entries)} entries; leave --init out")
        clicks = ClickLog.load(Grown.load(settings.from_folder(run.path, settings.log)).folder)
        content = _served_already(Path(settings.from_folder(run.path, settings.served)), model)
        name, shares = clicks.period_names[-1], Shares.of(clicks, settings)
        settings.write(run.path / SETTINGS)
        if model is None:
            new = _trained(run, name, shares, None, progress=progress)
        else:
            new = NewRanker(load(model), f"it is {model}")
        new.ranker.save(run.model(name), overwrite=True)
        if content is None:
            export(new.ranker, run.exported(name), overwrite=True)
        else:
            run.exported(name).write_bytes(content)
        entry = ledger.next_entry(
            decision=FIRST,
            reason="the first model of the run" if model is None else f"the first model of the run is {model}",
            model=name,
            file_digest=digest_of_file(run.exported(name)),
            log="",
            candidate=name,
            training=_training(new, 0.0),
            versions=load_manifest(run.model(name)).versions,
            **_about(clicks, shares, settings),
        )
        ledger = ledger.append(entry)
        run.settle(ledger)
        return entry


def update(run: RunFolder, day: str, *, dry_run: bool = False, progress: bool | Observer = False) -> LedgerEntry:
    """Take in the clicks of a day and decide whether a new ranker is served.

    A dry run does the same work and decides nothing: the ledger and the served file stay as they are.
    """
    with run.alone():
        ledger, settings = run.ledger(), run.settings
        # First of all, so that a call that was killed before the file was exchanged is finished by the next one.
        run.settle(ledger)
        _check_day(ledger, day)
        log = _with_day(run, ledger, day)
        shares = Shares.of(log, settings)
        current = ledger.current
        served = load(run.model(current.model))
        found = diagnose(
            log,
            summary=Summary.read(run.log(day)),
            samples=DOCTOR_SAMPLES,
            source=str(run.log(day)),
            seed=settings.seed,
        )
        started = monotonic()
        new = _trained(run, day, shares, served, progress=progress)
        spent = monotonic() - started
        export(new.ranker, run.exported(day), overwrite=True)
        assumption = Assumption.of_test(found.dimension.scalar, found.stopping)
        judgement = judge(served, new.ranker, shares.reserved, swaps=log, assumption=assumption, seed=settings.seed)
        judgement = replace(judgement, troubles=troubles(found))
        promoted, reason = promotes(judgement, tolerance=settings.tolerance, largest_shift=settings.largest_shift)
        if not promoted and ledger.kept_in_a_row:
            reason += f"; {current.model} has now been kept {ledger.kept_in_a_row + 1} times in a row"
        entry = ledger.next_entry(
            decision=PROMOTED if promoted else KEPT,
            reason=reason,
            model=day if promoted else current.model,
            file_digest=digest_of_file(run.exported(day)) if promoted else current.file_digest,
            log=day,
            candidate=day,
            training=_training(new, spent),
            versions=load_manifest(run.model(day)).versions,
            judgement=asdict(judgement),
            doctor={finding.name: str(finding.verdict) for finding in found.findings},
            **_about(log, shares, settings),
        )
        if not dry_run:
            ledger = ledger.append(entry)
            run.settle(ledger)
            run.clear(ledger)
        return entry


def roll_back(run: RunFolder, *, dry_run: bool = False) -> LedgerEntry:
    """Let the model be served that was before the one that is."""
    with run.alone():
        ledger = run.ledger()
        run.settle(ledger)
        *before, current = ledger.served
        if not before:
            raise OptionError(f"{current.model} is the first model of {run.path}, so there is none to go back to")
        back = before[-1]
        if not run.exported(back.model).is_file() or not run.model(back.model).is_dir():
            raise DataError(
                f"the model {back.model} is not kept any more, so there is none to go back to; keep more in "
                f"{run.path / SETTINGS}"
            )
        entry = ledger.next_entry(
            decision=ROLLED_BACK,
            reason=f"from {current.model} back to {back.model}",
            model=back.model,
            file_digest=back.file_digest,
            log=ledger.last.log,
            day=ledger.last.day,
            at=_now(),
            versions=load_manifest(run.model(back.model)).versions,
        )
        if not dry_run:
            run.content(back)
            run.settle(ledger.append(entry))
        return entry


def _check_day(ledger: Ledger, day: str) -> None:
    try:
        date.fromisoformat(day)
    except ValueError as error:
        raise OptionError(f"a day must be a date such as 2026-11-17, got {day!r}") from error
    if (entry := ledger.decided(day)) is not None:
        raise OptionError(f"{day} is done already: {entry.decision}, entry {entry.number} of the ledger")
    if day <= ledger.last.day:
        raise OptionError(f"{day} is not after {ledger.last.day}, the last day of the log; days are added in order")


def _with_day(run: RunFolder, ledger: Ledger, day: str) -> ClickLog:
    """The log with a day more, in a folder of its own; what a killed call has left there is written anew."""
    base, source = run.current_log(ledger), run.source(day)
    prepared = prepare(
        source,
        run.log(day),
        overwrite=True,
        append=base,
        last=run.settings.days,
        **run.prepare_options(day),
    )
    before, log = ClickLog.load(base), prepared.log
    added = [name for name in log.period_names if name not in set(before.period_names)]
    if added != [day]:
        days = " and ".join(added) or "no day that is new"
        raise DataError(f"{source} must have the pages of {day} and no others, and has those of {days}; mend its times")
    assert log.periods is not None, "a log that grows has days"
    new = log.part(log.periods == len(log.period_names) - 1, ())
    pages = int(new.impressions.sum())
    usual = pages * float(before.clicks.sum() / before.impressions.sum())
    if usual >= SURE_OF_CLICKS and not new.clicks.any():
        raise DataError(
            f"{source} has no click on {pages:,} pages, where {usual:,.0f} would be usual; look whether clicks were "
            "logged and joined. The day was not added"
        )
    return log


def _trained(
    run: RunFolder, name: str, shares: Shares, served: Ranker | None, *, progress: bool | Observer
) -> NewRanker:
    """The ranker of a day, as a killed call has left it or trained, in its folder."""
    left = NewRanker.left_in(run.model(name), shares, run.settings, served)
    if left is not None:
        return left
    checkpoint = run.checkpoint(name)
    new = NewRanker.train(shares, run.settings, served, checkpoint=checkpoint, progress=progress)
    new.ranker.save(run.model(name), overwrite=True)
    checkpoint.unlink(missing_ok=True)
    return new


def _served_already(served: Path, model: str | Path | None) -> bytes | None:
    """The content of the served file, if there is one, which must be that of the model."""
    if not served.is_file():
        return None
    if model is None:
        raise OptionError(f"{served} is served already; name the model that it was exported from (--model)")
    if Scorer.load(served).card.model_digest != weights_digest(load(model).model):
        raise OptionError(f"{served} was not exported from {model}; name the model that it was exported from (--model)")
    return served.read_bytes()


def _about(log: ClickLog, shares: Shares, settings: UpdateSettings) -> dict[str, Any]:
    """Fields of an entry that do not depend on the decision."""
    parts = {"log": log, "trained_on": shares.trained_on, "chosen_by": shares.chosen_by, "compared_on": shares.reserved}
    return {
        "day": log.period_names[-1],
        "at": _now(),
        "data": {
            "days": [log.period_names[0], log.period_names[-1]],
            "missing_days": _missing_days(log.period_names),
            "fingerprint": log.fingerprint(),
            **{name: _counts(part) for name, part in parts.items()},
        },
        "settings": settings.model_dump(),
    }


def _missing_days(days: Sequence[str]) -> list[str]:
    """The days between the first and the last that are not there; none where they are no dates."""
    try:
        known = {date.fromisoformat(day) for day in days}
    except ValueError:
        return []
    first = min(known)
    span = (first + timedelta(days=number) for number in range((max(known) - first).days))
    return [day.isoformat() for day in span if day not in known]


def _counts(log: ClickLog) -> dict[str, int]:
    return {
        "queries": len(np.unique(log.queries)),
        "impressions": int(log.impressions.sum()),
        "clicks": int(log.clicks.sum()),
    }


def _training(new: NewRanker, seconds: float) -> dict[str, Any]:
    record = new.ranker.provenance
    return {
        "method": new.ranker.method,
        "weights_digest": weights_digest(new.ranker.model),
        "init_model": None if record is None else record.init_model,
        "anew": new.anew,
        "seconds": round(seconds, 1),
        "choices": dict(new.ranker.choices),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
