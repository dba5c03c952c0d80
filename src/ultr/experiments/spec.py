"""The spec of an experiment: a TOML file with data, click settings, methods and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ultr import checks
from ultr.clicks.registry import CLICK_MODELS
from ultr.datasets.layouts import LAYOUTS
from ultr.datasets.source import LETOR_LIKE
from ultr.errors import DataError, OptionError
from ultr.evaluation.judged import DEFAULT_MEASURES
from ultr.files import parse_toml
from ultr.methods import METHODS, methods_with
from ultr.methods.flat_options import estimator, types
from ultr.metrics import Measure
from ultr.relevance.kinds import KINDS
from ultr.relevance.mlp import MLP
from ultr.simulation.log import READOUTS

REFERENCES = ("ranking-svm", "click-model")
"""Rankers that learn from no click: what was shown, and the one that knows the click model."""

WITHOUT_RUNS = ("inference-time", "click-matrix", "data-set")
"""Analyses of something else than trained rankers."""
AS_PUBLISHED = Path(str(files("ultr.experiments") / "as-published.toml"))
_SHORT = {"dimension": "d", "learning_rate": "rate"}
"""Short names of options in the labels of a grid."""

Options: TypeAlias = dict[str, Any]
Choice: TypeAlias = Literal["labels", "clicks"]
Analysis: TypeAlias = Literal[
    "table", "dimension", "embeddings", "projection", "inference-time", "click-matrix", "data-set", "selection"
]


class _TomlTable(BaseModel):
    """A table of the file; a key that it does not know is refused with the nearest one named."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, content: Any) -> Any:
        if isinstance(content, Mapping):
            for key in content:
                checks.one_of("a key", str(key), cls.model_fields)
        return content


class Simulation(_TomlTable):
    """Options of the simulated clicks."""

    impressions: int = Field(default=1_000_000, ge=1)
    svm_share: float = Field(default=0.01, gt=0, le=1)
    """The share of the labelled training queries that the ranker of the shown lists learns from."""
    rankings: int = Field(default=1, ge=1)
    """Shown lists for each query, which differ if there is noise."""
    noise: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    pairs: bool = True
    """Count which documents are clicked together, which pair-debias needs."""
    randomised: float = Field(default=0.1, gt=0, allow_inf_nan=False)
    """The impressions of a second log with random rankings, as a share of the first, for who asks for it."""


class Contender(_TomlTable):
    """A ranker in the experiment."""

    method: str
    """A method or a reference."""
    label: str
    """Name in tables."""
    options: Options = {}
    """Options of the method, over those that all methods share."""
    grid: dict[str, list[Any]] = {}
    """Options with several values: one ranker for each combination."""
    select: bool = False
    """Show only the ranker of the grid whose mean value of validation over seeds and folds is best."""
    shown_only: bool = False
    """For the method label: learn from the shown documents alone."""
    readout: str = READOUTS[0]
    """For the reference click-model: what it makes of the rates that it knows; see `ceiling_scores`."""
    randomised: bool = False
    """For the method inverse-propensity: propensities from a second log with random rankings."""

    @model_validator(mode="after")
    def _check(self) -> Contender:
        checks.one_of("method", self.method, [*METHODS, *REFERENCES])
        for name, values in self.grid.items():
            if not values or name in self.options:
                raise OptionError(f"grid needs values for {name}, which must not be in options, too")
        for variant in self.variants():
            if self.method in METHODS:
                _check_options(self.method, variant.options)
            elif variant.options:
                raise OptionError(f"{self.method} takes no options")
        checks.one_of("readout", self.readout, READOUTS)
        for flag, method in (("shown_only", "label"), ("randomised", "inverse-propensity"), ("readout", "click-model")):
            if getattr(self, flag) != type(self).model_fields[flag].default and self.method != method:
                raise OptionError(f"{flag} goes with the method {method}, not with {self.method}")
        return self

    @property
    def library(self) -> str | None:
        """The package besides torch that training needs."""
        return estimator(METHODS[self.method], self.options).library() if self.method in METHODS else None

    @property
    def kind(self) -> str | None:
        """The kind of its relevance model; None for a reference, which has none."""
        return estimator(METHODS[self.method], self.options).relevance.kind if self.method in METHODS else None

    def with_shared(self, shared: Options) -> Contender:
        """The same ranker with those of the shared options that it has and does not set itself."""
        if self.method not in METHODS:
            return self
        known = types(METHODS[self.method], (shared | self.options).get("relevance"))
        taken = {name: value for name, value in shared.items() if name in known}
        return self.model_copy(update={"options": taken | self.options})

    def variants(self) -> list[Contender]:
        """One contender for each combination of the grid."""
        variants = []
        for values in product(*self.grid.values()):
            chosen = dict(zip(self.grid, values, strict=True))
            words = [f"{_SHORT.get(name, name)}={_text(value)}" for name, value in chosen.items()]
            update = {"label": " ".join([self.label, *words]), "options": self.options | chosen, "grid": {}}
            variants.append(self.model_copy(update=update))
        return variants

    def shown(self) -> list[str]:
        """The labels in tables."""
        return [self.label] if self.select else [variant.label for variant in self.variants()]


class DataSet(_TomlTable):
    """Options of a data set."""

    queries: int | None = Field(default=None, ge=10)
    """Training queries to generate, for letor-like."""
    folds: tuple[int, ...] = Field(default=(1,), min_length=1)
    """Which folds; those of letor-like are generated from different seeds."""
    training: Options = {}
    """Options that all methods share on this data set, over those that they share on all."""


class Spec(_TomlTable):
    """An experiment."""

    title: str
    analysis: Analysis
    """Name of the analysis of the runs."""
    clicks: tuple[str, ...] = Field(default=("trust",), min_length=1)
    """Click models; each has its own table."""
    validation: tuple[Choice, ...] = Field(default=("labels",), min_length=1)
    """Ways to choose the weights: nDCG@10 by labels, or the likelihood (of lightgbm and xgboost: nDCG@10) of held-out
    clicks."""
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    """Seeds of the clicks and of the training."""
    measures: tuple[str, ...] = Field(default=DEFAULT_MEASURES, min_length=1)
    simulation: Simulation = Simulation()
    training: Options = {}
    """Options that all methods share; each takes those that it has, `hidden` a network and `rounds` trees."""
    methods: tuple[Contender, ...] = ()
    only: tuple[str, ...] = ()
    """The labels of those methods that take part; by default all."""
    data: dict[str, DataSet] = Field(default={LETOR_LIKE: DataSet()}, min_length=1)
    """By the name of the data set; without --data, the first one is used."""
    repetitions: int = Field(default=300, ge=1)
    """Repetitions per time, for the analysis of times."""
    paper: dict[str, dict[str, tuple[tuple[float, float], ...]]] = {}
    """Published values by data set and label: mean and standard deviation for each measure."""

    @field_validator("measures")
    @classmethod
    def _parse_measures(cls, measures: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(Measure.parse(measure)) for measure in measures)

    @model_validator(mode="after")
    def _check(self) -> Spec:
        for model in self.clicks:
            CLICK_MODELS.choose(model)
        for seed in self.seeds:
            checks.integer("seed", seed, at_least=0)
        for shared in (self.training, *(self.training | data.training for data in self.data.values())):
            self._check_shared(shared)
        for name, data in self.data.items():
            checks.one_of("data set", name, [LETOR_LIKE, *LAYOUTS])
            _distinct(f"folds of {name}", data.folds)
            if data.queries is not None and name != LETOR_LIKE:
                raise OptionError(f"queries are generated for {LETOR_LIKE} alone, not for {name}")
        for name in ("clicks", "validation", "seeds", "measures"):
            _distinct(name, getattr(self, name))
        _distinct("labels of methods", [each.label for method in self.methods for each in method.variants()])
        labels, count = [label for each in self.methods for label in each.shown()], len(self.measures)
        for label in self.only:
            checks.one_of("a label in only", label, [method.label for method in self.methods])
        for name, published in self.paper.items():
            checks.one_of("data set", name, LAYOUTS)
            for label, found in published.items():
                checks.one_of(f"a label in paper.{name}", label, labels)
                if len(found) != count:
                    raise OptionError(
                        f"paper.{name} has {len(found)} values for {label!r}, but there are {count} measures"
                    )
        self._check_analysis()
        return self

    def _check_shared(self, shared: Options) -> None:
        """Refuse what no method has, and what a ranker of the spec has but cannot take."""
        known = {name for method in METHODS.values() for kind in KINDS for name in types(method, kind)}
        for name in shared:
            checks.one_of("an option that methods share", name, sorted(known))
        owners: dict[str, set[str]] = {}
        for contender in self.contenders():
            if contender.method in METHODS:
                merged = contender.with_shared(shared).options
                _check_options(contender.method, merged)
                relevance = estimator(METHODS[contender.method], merged).relevance
                for name in {*shared} - {*contender.options} & {field.name for field in fields(relevance)}:
                    owners.setdefault(name, set()).add(relevance.kind)
        for name, kinds in owners.items():
            if len(kinds) > 1:
                raise OptionError(
                    f"{name} is not the same to {' and '.join(sorted(kinds))}; give it in the options of each"
                )

    def _check_analysis(self) -> None:
        """Refuse what cannot be analysed before hours of training."""
        contenders = self.contenders()
        if not contenders and self.analysis not in ("click-matrix", "data-set"):
            raise OptionError(f"analysis {self.analysis} needs at least one of [[methods]]")
        # An untrained network takes as long as a trained one, but trees that have not grown take no time.
        networks = list(methods_with(MLP))
        allowed = {"embeddings": ["vectorization"], "projection": ["vectorization"], "inference-time": networks}
        for contender in contenders:
            if contender.method not in allowed.get(self.analysis, [contender.method]):
                raise OptionError(f"analysis {self.analysis} does not go with the method {contender.method}")
            if contender.method == "pair-debias" and not self.simulation.pairs and self.analysis != "inference-time":
                merged = contender.with_shared(self.training).options
                if not estimator(METHODS[contender.method], merged).relevance.training().sessions:
                    raise OptionError("pair-debias needs pairs = true in [simulation], or a recipe that draws sessions")
        if self.analysis == "selection":
            self._check_selection()
        if self.analysis == "dimension" and any(each.options.get("dimension") == "auto" for each in contenders):
            raise OptionError("analysis dimension draws a curve over numbers; leave dimension = 'auto' out")
        if self.analysis == "embeddings" and any(each.options.get("dimension") != 2 for each in contenders):
            raise OptionError("analysis embeddings needs dimension = 2 in the options of every method")

    def _check_selection(self) -> None:
        if self.validation != ("clicks",) or "nDCG@10" not in self.measures:
            raise OptionError('analysis selection needs validation = ["clicks"] and nDCG@10 among the measures')
        for contender in self.contenders():
            if contender.method not in METHODS or contender.method == "label":
                raise OptionError(f"analysis selection chooses by clicks, which {contender.method} does not predict")
            if contender.options.get("dimension") == "auto":
                raise OptionError("analysis selection tries dimension = 'auto' on the dimensions that are given")

    def with_seeds(self, seeds: Sequence[int]) -> Spec:
        """The same experiment with other seeds."""
        _distinct("seeds", seeds)
        if not seeds:
            raise OptionError("an experiment needs at least one seed")
        return self.model_copy(update={"seeds": tuple(checks.integer("seed", seed, at_least=0) for seed in seeds)})

    def contenders(self) -> list[Contender]:
        """Every ranker, grids written out."""
        return [variant for method in self.taking_part() for variant in method.variants()]

    def taking_part(self) -> list[Contender]:
        """The methods that take part, with their grids."""
        return [method for method in self.methods if not self.only or method.label in self.only]


def shipped() -> dict[str, Path]:
    """The experiments that come with the package, by name."""
    folder = Path(str(files("ultr.experiments") / "specs"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def read_spec(name: str, *, quick: bool = False, as_published: bool = False, changes: Sequence[str] = ()) -> Spec:
    """The experiment of this name or in this file.

    With `quick`, as its table [quick] shortens it; with `as_published`, by the protocol of the paper: what
    as-published.toml says for all experiments, and then its table [as-published]. `changes` are lines of TOML that go
    over what the file has, such as `simulation.impressions = 100_000`.
    """
    path = Path(name)
    if path.suffix != ".toml":
        known = shipped()
        path = known[checks.one_of("experiment", name, known)]
    content = _read(path)
    shorter, published = content.pop("quick", None), content.pop("as-published", {})
    if quick and as_published:
        raise OptionError("quick is no protocol of the paper; shorten it with --set training.steps=100 and --seeds 0")
    if quick and shorter is None:
        raise OptionError(f"{path} has no table [quick] that says how to shorten it")
    changed = _merged(content, shorter) if quick else content
    if as_published:
        own = {each: {**table, "training": {}} for each, table in content.get("data", {}).items()}
        changed = _merged(_merged(content | {"data": own}, _read(AS_PUBLISHED)), published)
    for change in changes:
        try:
            changed = _merged(changed, parse_toml(change, "it"))
        except DataError as error:
            raise OptionError(
                f"{change!r} is no line of TOML such as simulation.impressions=100000 ({error}); text needs quotes"
            ) from error
    try:
        whole = Spec.model_validate(content)
        return whole if changed is content else Spec.model_validate(changed)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        cause = first.get("ctx", {}).get("error", first["msg"])
        raise DataError(f"{path}{f' at {where}' if where else ''}: {cause}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror}; give a TOML file or the name of an experiment"
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not valid TOML: {error}") from error


def _check_options(method: str, options: Options) -> None:
    if "seed" in options:
        raise OptionError("seed is no option here; the seeds of all methods stand in seeds = [...]")
    estimator(METHODS[method], options)


def _distinct(name: str, values: Sequence[object]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise OptionError(f"{name} has {value!r} more than once; everything there must be different")


def _merged(content: Any, changes: Any) -> Any:
    """Tables are merged key by key, and lists of tables label by label; everything else is replaced."""
    if isinstance(content, list) and isinstance(changes, dict):
        labels = [each.get("label", "") for each in content]
        for label in changes:
            checks.one_of("a label of methods", label, labels)
        return [_merged(each, changes.get(label, {})) for label, each in zip(labels, content, strict=True)]
    if not isinstance(content, dict) or not isinstance(changes, dict):
        return changes
    return content | {key: _merged(content.get(key), value) for key, value in changes.items()}


def _text(value: Any) -> str:
    return "-".join(str(part) for part in value) if isinstance(value, list) else str(value)
