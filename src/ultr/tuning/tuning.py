"""A search for the settings of one method that predict held-out clicks best."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from ultr import checks
from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError, TrainingError
from ultr.methods.estimator import Estimator
from ultr.methods.factors import factors_of
from ultr.methods.held_out_clicks import HeldOutClicks
from ultr.methods.lambdamart import LambdaMART
from ultr.methods.ranker import Ranker
from ultr.metrics import paired_lead
from ultr.relevance.search_space import Between, SearchSpace
from ultr.train.progress import Silent
from ultr.tuning.proposal import propose
from ultr.tuning.search_folder import BEST, FIRST, SearchFolder, TriedSettings

TUNING = "tuning"
"""The name of a search among the choices of a ranker."""


@dataclass(frozen=True, eq=False)
class Tuning:
    """Trials of a search, and the ranker of the best settings."""

    ranker: Ranker
    """The ranker of the best settings."""
    tried: tuple[TriedSettings, ...]
    """All that was tried, in order; the first are the settings that were given."""

    @property
    def best(self) -> TriedSettings:
        """The settings with the highest log-likelihood of held-out clicks."""
        return best_of(self.tried)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The best values of the options that were searched."""
        return self.best.settings


def best_of(tried: Sequence[TriedSettings]) -> TriedSettings:
    """The first of those with the highest log-likelihood."""
    return max(tried, key=lambda each: -math.inf if each.log_likelihood is None else each.log_likelihood)


def tune(
    estimator: Estimator,
    log: ClickLog,
    *,
    held_out: ClickLog | None = None,
    trials: int = 20,
    minutes: float | None = None,
    space: SearchSpace | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
    tell: Callable[[list[TriedSettings]], None] | None = None,
) -> Tuning:
    """Search for the settings of a method that predict held-out clicks best.

    Args:
        estimator: The method and its options, which are the first settings to be tried.
        log: What to learn from.
        held_out: Clicks that choose weights and settings; by default those of a tenth of the queries of `log`, which
            are not trained on. The ranker keeps a record of them, so that `compare` says what they have chosen.
        trials: Most settings to try, the first ones included.
        minutes: Most minutes to search; settings whose training is not done by then are left out. The first ones are
            always trained to their end.
        space: Values to try by option of the relevance model; by default `estimator.relevance.search_space()`.
        seed: Seed of the search and of the split.
        folder: Where to keep what was tried; a search that was stopped goes on from there.
        tell: Called with all that was tried after each trial.

    """
    deadline = None if minutes is None else monotonic() + 60 * checks.positive("minutes", minutes)
    checks.integer("trials", trials, at_least=1)
    _check(estimator, log)
    train, chosen_by = log.split(seed=seed) if held_out is None else (log, held_out)
    judge = HeldOutClicks.of(chosen_by)
    if not judge.enough:
        raise DataError("a search needs held-out clicks on at least two queries or lists; hold out more of the log")
    searched = _space(estimator, space)
    run = _run(estimator, train, chosen_by, searched, seed=seed)
    with TemporaryDirectory() if folder is None else nullcontext(str(folder)) as place:
        search = _Search(estimator, train, judge, SearchFolder(Path(place), run))
        tried = search.kept.tried()
        while len(tried) < trials and (not tried or deadline is None or monotonic() < deadline):
            settings = _next(estimator, searched, tried, seed=seed)
            try:
                search.trial(settings, tried, deadline=deadline)
            except _OutOfTimeError:
                break
            if tell is not None:
                tell(tried)
        ranker = search.kept.model(BEST)
    choices = {**ranker.choices, TUNING: [asdict(each) for each in tried]}
    return Tuning(replace(ranker, choices=choices), tuple(tried))


@dataclass(eq=False)
class _Search:
    """The parts of a search that stay the same."""

    estimator: Estimator
    train: ClickLog
    judge: HeldOutClicks
    kept: SearchFolder
    reference: Doubles | None = None
    """Log-likelihoods by the first settings, which leads are over."""

    def trial(self, settings: dict[str, Any], tried: list[TriedSettings], *, deadline: float | None) -> None:
        """Train with these settings, and keep what comes of it with all that was tried before."""
        started = monotonic()
        candidate = replace(self.estimator, relevance=replace(self.estimator.relevance, **settings))
        watching = _Clock(deadline if tried else None)
        try:
            ranker = candidate.fit(self.train, validation=self.judge.log, progress=watching).ranker_
        except TrainingError:
            if not tried:
                raise
            tried.append(TriedSettings(settings, None, None, None, monotonic() - started))
            self.kept.keep(tried, models={})
            return
        found = self.judge.log_likelihoods(ranker.click_shares)
        if self.reference is None:
            first = self.kept.model(FIRST).click_shares if tried else None
            self.reference = found if first is None else self.judge.log_likelihoods(first)
        lead = paired_lead(found, self.reference, self.judge.clicks)
        seconds = monotonic() - started
        tried.append(TriedSettings(settings, self.judge.mean(found), lead.mean, lead.error, seconds))
        names = [name for name, wanted in ((FIRST, len(tried) == 1), (BEST, best_of(tried) is tried[-1])) if wanted]
        self.kept.keep(tried, models=dict.fromkeys(names, ranker))


class _OutOfTimeError(Exception):
    """The time of the search is over."""


class _Clock(Silent):
    """An observer that ends a training when the time is over."""

    def __init__(self, deadline: float | None) -> None:
        self._deadline = deadline

    def step(self, done: int) -> None:
        """Look at the clock."""
        if self._deadline is not None and monotonic() > self._deadline:
            raise _OutOfTimeError


def _check(estimator: object, log: object) -> None:
    """Raise an `OptionError` for what held-out clicks cannot choose the settings of."""
    if not isinstance(estimator, Estimator):
        several = isinstance(estimator, list | tuple | Mapping)
        why = "held-out clicks compare settings of one method, not methods" if several else "it is no method"
        raise OptionError(f"tune takes one method such as ultr.DLA(), got {checks.shown(estimator)}: {why}")
    name = type(estimator).__name__
    if estimator.learns_from is not ClickLog:
        raise OptionError(f"{name} learns from labels, and a search goes by held-out clicks; tune another method")
    if not isinstance(log, ClickLog):
        raise OptionError(f"a search learns from ClickLog, got {type(log).__name__}; make one with ultr.read_log")
    estimator.check()
    if estimator.value is not None:
        raise OptionError("held-out clicks say nothing of a value; tune without value, then train with what was found")
    learned = [factor for factor in factors_of(log) if estimator.learns(factor)]
    # LambdaMART orders documents, and its scores have no scale that clicks could be predicted on.
    if isinstance(estimator, LambdaMART) or not estimator.objective(learned).ranks_by_click_model:
        raise OptionError(
            f"{name} with {estimator.relevance.kind} does not predict clicks by the model that it ranks by, so "
            "held-out clicks say nothing of its settings; tune another method, such as dla"
        )


def _space(estimator: Estimator, space: SearchSpace | None) -> SearchSpace:
    """The values to try, those of the estimator among them."""
    usual = {
        name: values
        for name, values in estimator.relevance.search_space().items()
        if f"relevance__{name}" not in estimator.without
    }
    searched = usual if space is None else space
    if not searched:
        raise OptionError("there is nothing to search; leave some option of the relevance model open")
    known = [field.name for field in fields(estimator.relevance)]
    for name, values in searched.items():
        checks.one_of("option to search", name, known)
        values.check(name)
        if isinstance(values, Between):
            checks.positive(f"{name}, to be searched between two numbers,", estimator.relevance.value_of(name))
    return {name: values.including(estimator.relevance.value_of(name)) for name, values in searched.items()}


def _next(estimator: Estimator, space: SearchSpace, tried: Sequence[TriedSettings], *, seed: int) -> dict[str, Any]:
    """The settings that were given, and then those that promise most."""
    if not tried:
        return {name: estimator.relevance.value_of(name) for name in space}
    known = [(each.settings, each.log_likelihood) for each in tried if each.log_likelihood is not None]
    return propose(space, known, seed=seed, number=len(tried))


def _run(estimator: Estimator, train: ClickLog, held_out: ClickLog, space: SearchSpace, *, seed: int) -> str:
    """A digest of all that decides what is tried."""
    values = {name: [type(each).__name__, asdict(each)] for name, each in space.items()}
    content = [estimator.name, estimator.content(), train.fingerprint(), held_out.fingerprint(), values, seed]
    return blake2b(json.dumps(content, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()
