"""Options that several commands share, and how their text becomes values."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer
from pydantic import TypeAdapter, ValidationError

from ultr import checks
from ultr.cli import output
from ultr.errors import OptionError

if TYPE_CHECKING:
    from ultr.data.categories import Categories
    from ultr.data.click_log import ClickLog
    from ultr.data.judged import JudgedLists
    from ultr.datasets.splits import Splits
    from ultr.datasets.table_file import TableColumns, TableLists
    from ultr.methods.ranker import Ranker
    from ultr.scoring import Scorer

PARTS = ("train", "validation", "test")

Data = Annotated[
    str,
    typer.Option(
        help="`letor-like` (generated, or `letor-like=QUERIES`), a data set as `NAME=FOLDER` "
        "(yahoo, istella-s, mslr, mq2007, mq2008, tiangong-st), or a file: SVMlight, CSV or Parquet.",
    ),
]
Judged = Annotated[
    str | None, typer.Option(help="Judged lists: NAME=FOLDER, letor-like, or an SVMlight, CSV or Parquet file.")
]
Against = Annotated[
    Path | None, typer.Option(help="The model that the others are compared with, in place of the first.")
]
Fold = Annotated[int, typer.Option(help="Which fold of a data set that has several.")]
Part = Annotated[str, typer.Option(help="Which part of the data set: train, validation or test.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print neither progress nor summary, only warnings and mistakes.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output if it exists.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any further option, repeatable; an unknown name lists them all."),
]
Features = Annotated[
    int | None, typer.Option(help="Number of features of a sparse SVMlight file that leaves out zeros at the end.")
]
_COLUMN = "Column of the {} in a CSV or Parquet file; guessed if it has a usual name."
QueryColumn = Annotated[str | None, typer.Option(help=_COLUMN.format("query"))]
LabelColumn = Annotated[str | None, typer.Option(help=_COLUMN.format("label"))]
DocumentColumn = Annotated[str | None, typer.Option(help=_COLUMN.format("document id"))]


def read_splits(data: str, *, fold: int = 1, seed: int = 0) -> Splits:
    """The three parts of the data set that `--data` names; letor-like has a world for each seed."""
    from ultr.datasets.layouts import LAYOUTS
    from ultr.datasets.source import LETOR_LIKE, Source

    name, given, _ = data.partition("=")
    if not given and Path(data).is_file():
        raise OptionError(f"{data} is one file without a validation part; add --validate FILE or --validate none")
    if not given and name not in (LETOR_LIKE, *LAYOUTS):
        known = ", ".join([LETOR_LIKE, *LAYOUTS])
        if Path(data).is_dir():
            raise OptionError(
                f"{data} is a folder; a click log is given with --log, and a data set by its name ({known}) as "
                f"NAME={data}"
            )
        raise OptionError(
            f"there is no file {data!r}; give an SVMlight, CSV or Parquet file, or a data set ({known}) as NAME=FOLDER"
        )
    source = Source.parse(data)
    return source.with_fold(fold if source.folder is not None else seed + 1).read()


def read_part(
    data: str,
    part: str,
    *,
    fold: int = 1,
    seed: int = 0,
    features: int | None = None,
    like: Ranker | Scorer | ClickLog | JudgedLists | None = None,
    columns: TableColumns | None = None,
) -> JudgedLists:
    """The judged lists that `--data` and `--part` name; a file is read whole.

    Their features are matched by name to those of `like`, if it is given, and texts in tables become codes by its
    categories.
    """
    if Path(data).is_file():
        return read_file(data, labels=True, features=features, like=like, columns=columns).judged
    checks.one_of("part", part, PARTS)
    lists: JudgedLists = getattr(read_splits(data, fold=fold, seed=seed), part)
    lists = lists if like is None else lists.with_features(like.feature_names, what=data)
    _tell_missing(lists, data)
    return lists


def read_file(
    path: str | Path,
    *,
    labels: bool,
    features: int | None,
    like: Ranker | Scorer | ClickLog | JudgedLists | None,
    columns: TableColumns | None,
) -> TableLists:
    """The lists of an SVMlight, CSV or Parquet file."""
    from ultr.datasets.cache import read_judged
    from ultr.datasets.table_file import TableColumns, TableLists, check_labels, is_table

    if Path(path).is_dir():
        raise OptionError(f"{path} is a folder; give an SVMlight, CSV or Parquet file with a row per candidate")
    names = None if like is None else like.feature_names
    if is_table(path):
        if features is not None:
            raise OptionError(f"--features is for SVMlight files; {path} has its features by name, so leave it out")
        # Judged lists have no categories.
        categories = getattr(like, "categories", None)
        table = TableLists.read(path, columns, features=names, categories=categories)
        if labels:
            check_labels(table, path)
        output.echo(table.note, err=True)
        _tell_missing(table.judged, path)
        return table
    if columns is not None and columns.given():
        raise OptionError(f"columns are named for CSV and Parquet files; {path} has no such ending, so name none")
    judged = read_judged(path, features=features)
    if names is not None:
        zeros = f"write them, or give --features {len(names)} if those that are left out are zero"
        judged = judged.with_features(names, what=str(path), way_out=zeros)
    _tell_missing(judged, path)
    return TableLists(judged, None, TableColumns(), note="")


def read_candidates(path: Path, ranker: Ranker | Scorer, *, features: int | None, columns: TableColumns) -> TableLists:
    """The candidates of a file with the features of a ranker; labels, if there are any, are not used."""
    return read_file(path, labels=False, features=features, like=ranker, columns=columns)


def read_ranker(model: Path) -> Ranker | Scorer:
    """The ranker of a model folder or of an exported file."""
    if model.is_file():
        from ultr.scoring import Scorer

        return Scorer.load(model)
    from ultr.methods import load

    return load(model)


def _tell_missing(judged: JudgedLists, what: str | Path) -> None:
    from ultr.data.missing_values import in_words, missing_shares

    if shares := missing_shares(judged.features, judged.feature_names):
        output.echo(f"{what}: {in_words(shares, len(judged.feature_names))}", err=True)


def common_categories(rankers: Mapping[str, Ranker | Scorer]) -> Categories:
    """The categories that all rankers know, by which data are read for all of them."""
    (first, known), *others = ((name, ranker.categories) for name, ranker in rankers.items())
    for name, categories in others:
        if categories != known:
            raise OptionError(
                f"{first} and {name} know other values of categorical features, so the same codes would mean "
                "different things; give models that were trained on one log, or one at a time"
            )
    return known


def name_of_part(data: str, part: str) -> str:
    """The name of what `read_part` reads; a file has no parts."""
    return data if Path(data).is_file() else f"{data}, {part}"


def read_propensities(path: Path, estimator: str | None = None) -> tuple[float, ...]:
    """The propensities in a file, or those that are estimated from a click log, by default from its click rates."""
    from ultr import bias
    from ultr.data.click_log import ClickLog

    if path.exists() and not path.is_dir():
        if estimator is not None:
            raise OptionError(f"{path} has propensities, so there is nothing to estimate; leave --estimator out")
        return bias.read_propensities(path)
    if not (path / "manifest.json").is_file():
        raise OptionError(
            f"{path} is neither a file of propensities nor the folder of a click log; give --propensities one of them"
        )
    return tuple(bias.estimate_propensities(ClickLog.load(path), estimator or "click-rate").tolist())


def command_line() -> str:
    """The command as it was typed, for those who want to repeat it."""
    return shlex.join(["ultr", *sys.argv[1:]])


def method_settings(method: str, relevance: str | None, settings: Sequence[str] | None) -> dict[str, Any]:
    """The options of a method that `--relevance` and `--set` give, by name."""
    from ultr.methods import flat_options
    from ultr.methods import method as method_of

    chosen = parse_settings(settings, flat_options.types(method_of(method), relevance), of=f"method {method}")
    if "relevance" in chosen:
        raise OptionError("the relevance model decides which options there are; give it by --relevance, not by --set")
    return chosen if relevance is None else {"relevance": relevance} | chosen


def pair(text: str, flag: str) -> tuple[str, str]:
    """The name and the value of `NAME=VALUE`."""
    name, given, value = text.partition("=")
    if not given or not name or not value:
        raise OptionError(f"{flag} must be NAME=VALUE, got {text!r}")
    return name, value


def parse_settings(settings: Sequence[str] | None, types: dict[str, Any], *, of: str) -> dict[str, Any]:
    """`NAME=VALUE` texts as values of the types that the options have."""
    values: dict[str, Any] = {}
    for setting in settings or ():
        name, given, text = setting.partition("=")
        checks.one_of(f"option of {of}", name, types)
        if not given:
            raise OptionError(f"--set needs NAME=VALUE, got {setting!r}")
        if name in values:
            raise OptionError(f"option {name} is given twice")
        values[name] = parse_value(name, text, types[name])
    return values


def parse_signals(texts: Sequence[str] | None) -> dict[str, tuple[float, ...]]:
    """`NAME=RATE,RATE,...` texts as rates by name."""
    found: dict[str, tuple[float, ...]] = {}
    for text in texts or ():
        name, _, rates = text.partition("=")
        if not name or not rates:
            raise OptionError(f"--signal needs NAME=RATES such as purchase=0.02,0.1, got {text!r}")
        if name in found:
            raise OptionError(f"signal {name} is given twice")
        found[name] = parse_value(f"the rates of signal {name}", rates, tuple[float, ...])
    return found


def parse_value(name: str, text: str, kind: Any) -> Any:
    """A text as a value of the type that an option has."""
    # An optional tuple is a union, in which the tuple is one of the arguments.
    several = any(get_origin(part) is tuple for part in (kind, *get_args(kind)))
    value: Any = [part for part in text.split(",") if part] if several else text
    if any(get_origin(part) is Mapping for part in (kind, *get_args(kind))):
        pairs = [part.partition("=") for part in text.split(",") if part]
        value = {key: number for key, _, number in pairs}
        if len(value) < len(pairs):
            raise OptionError(f"{name} cannot be {text!r}: a name is given twice")
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise OptionError(f"{name} cannot be {text!r}: {error.errors()[0]['msg'].lower()}") from error
