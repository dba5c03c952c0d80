"""An experiment: a spec on a data set, and the runs that it asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path

from ultr.datasets.source import Source
from ultr.errors import OptionError
from ultr.experiments.progress_table import ProgressTable
from ultr.experiments.results import Line, Results
from ultr.experiments.run import Run
from ultr.experiments.spec import REFERENCES, Choice, Contender, DataSet, Spec
from ultr.experiments.store import Outcome, Store
from ultr.experiments.workers import run_all


@dataclass(frozen=True)
class Experiment:
    """The runs of a spec on one data set, and where they are kept."""

    spec: Spec
    source: Source
    """The data set; which of its folds, the spec says."""
    store: Store

    @classmethod
    def of(cls, spec: Spec, data: str | None, runs: Path) -> Experiment:
        """The experiment on the data set that `data` names, or else on the first one of the spec."""
        source = Source.parse(next(iter(spec.data)) if data is None else data)
        queries = spec.data.get(source.name, DataSet()).queries
        if queries is not None and (data is None or "=" not in data):
            source = replace(source, queries=queries)
        return cls(spec, source, Store(runs))

    @property
    def data_set(self) -> DataSet:
        """Options of the data set in the spec."""
        return self.spec.data.get(self.source.name, DataSet())

    @property
    def sources(self) -> list[Source]:
        """The folds of the data set."""
        return [self.source.with_fold(fold) for fold in self.data_set.folds]

    def contenders(self) -> list[Contender]:
        """The rankers, with the options that all share, without those whose library is not installed."""
        return [contender for contender in self._all_contenders() if _installed(contender)]

    def left_out(self) -> list[str]:
        """The labels of the rankers whose library is not installed."""
        return [contender.label for contender in self._all_contenders() if not _installed(contender)]

    def _all_contenders(self) -> list[Contender]:
        shared = self.spec.training | self.data_set.training
        return [contender.with_shared(shared) for contender in self.spec.contenders()]

    def runs_of(self, contender: Contender, clicks: str, validation: Choice) -> list[Run]:
        """The runs of a ranker, one for each seed and fold; what does not learn from clicks is chosen by labels."""
        by_labels = contender.method == "label" or contender.method in REFERENCES
        return [
            Run(
                source=source,
                clicks=clicks,
                simulation=self.spec.simulation,
                contender=contender,
                validation="labels" if by_labels else validation,
                measures=self.spec.measures,
                seed=seed,
            )
            for seed in self.spec.seeds
            for source in self.sources
        ]

    def runs(self) -> list[Run]:
        """Every run once, those on the same clicks one after the other."""
        everything: dict[str, Run] = {}
        for clicks, validation, contender in product(self.spec.clicks, self.spec.validation, self.contenders()):
            for run in self.runs_of(contender, clicks, validation):
                everything.setdefault(self.store.key(run), run)
        return sorted(everything.values(), key=lambda run: (run.seed, run.clicks, run.source.fold))

    def run(self, *, workers: int, say: Callable[[str], object] = str) -> None:
        """Do the runs that are not done yet."""
        runs = self.runs()
        outcomes = [self.store.read(run) for run in runs]
        kept = [outcome for outcome in outcomes if outcome is not None]
        left = [run for run, outcome in zip(runs, outcomes, strict=True) if outcome is None]
        if kept:
            say(f"{len(kept)} of {len(runs)} runs are kept in {self.store.folder} already")
        if left:
            run_all(left, self.store, ProgressTable(runs, kept, workers=workers), workers=workers)

    def outcomes(self, contender: Contender, clicks: str, validation: Choice) -> list[Outcome]:
        """Outcomes of the runs of a ranker."""
        found = [self.store.read(run) for run in self.runs_of(contender, clicks, validation)]
        if any(outcome is None for outcome in found):
            raise OptionError(f"the runs of {contender.label} are not finished yet; run the experiment first")
        return [outcome for outcome in found if outcome is not None]

    def results(self, clicks: str, validation: Choice) -> Results:
        """The rankers of one click setting, their weights chosen in one way."""
        found = {each.label: Line(each, tuple(self.outcomes(each, clicks, validation))) for each in self.contenders()}
        lines: list[Line] = []
        selected: dict[str, dict[str, float]] = {}
        for method in self.spec.taking_part():
            grid = [found[variant.label] for variant in method.variants() if variant.label in found]
            if method.select and grid:
                selected[method.label] = {line.label: line.validation for line in grid}
                grid = [max(grid, key=lambda line: line.validation).called(method.label)]
            lines += grid
        return Results(clicks, validation, self.spec.measures, tuple(lines), selected)


def _installed(contender: Contender) -> bool:
    library = contender.library
    return library is None or find_spec(library) is not None
