"""`ultr train`: a ranker from a click log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ultr.cli import options
from ultr.errors import OptionError

if TYPE_CHECKING:
    from ultr.data.click_log import ClickLog
    from ultr.data.judged import JudgedLists

CLICKS = "clicks"


def train(
    method: Annotated[str, typer.Argument(help="vectorization, click, or label (the last one learns from --data).")],
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    log: Annotated[Path | None, typer.Option(help="Folder of the click log.")] = None,
    data: Annotated[str | None, typer.Option(help="Judged lists to learn from, for the method `label`.")] = None,
    validate: Annotated[
        str,
        typer.Option(
            help="How to choose the weights: `clicks` (a held-out tenth of the queries), `none`, "
            "or labels, as a data set NAME=FOLDER (its validation part) or an SVMlight file."
        ),
    ] = CLICKS,
    fold: options.Fold = 1,
    dimension: Annotated[int | None, typer.Option(help="Length of the vectors of the method vectorization.")] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps of the first stage.")] = None,
    seed: options.Seed = 0,
    settings: options.Set = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Train a ranker. A run that was killed goes on where it was when it is started again.

    Example: `ultr train vectorization --log log --dimension 3 --out model`
    """
    from ultr.cli.output import print_json
    from ultr.data.judged import JudgedLists
    from ultr.files import check_new_folder
    from ultr.methods import method as method_of

    kind = method_of(method)
    types = {name: hint for name, hint in get_type_hints(kind).items() if name in kind().get_params()}
    chosen: dict[str, Any] = {"seed": seed} | options.parse_settings(settings, types, of=f"method {method}")
    for name, value in (("dimension", dimension), ("steps", steps)):
        if value is not None:
            if name not in types:
                raise OptionError(f"method {method} has no option {name}")
            chosen[name] = value
    ranker = kind(**chosen)
    ranker.check()
    check_new_folder(out, overwrite=overwrite)
    source: ClickLog | JudgedLists
    validation: ClickLog | JudgedLists | None
    if kind.learns_from is JudgedLists:
        source, validation = _judged(log, data, validate, fold=fold, seed=seed)
    else:
        source, validation = _clicks(log, data, validate, method=method, fold=fold, seed=seed)
    checkpoint = out.resolve().with_name(f".{out.resolve().name}.checkpoint")
    ranker.fit(source, validation=validation, checkpoint=checkpoint, progress=True)
    ranker.save(out, overwrite=overwrite)
    checkpoint.unlink(missing_ok=True)
    last = ranker.history_[-1]
    values = [record.value for record in ranker.history_ if record.stage == last.stage and record.value is not None]
    best = max(values, default=None)
    if json:
        print_json({"model": str(out), "method": method, "loss": last.loss, "validation": best})
    else:
        chosen_by = "" if best is None else f", best validation value {best:.4f}"
        typer.echo(f"{out}: {method} after {last.step} steps of stage {last.stage}, loss {last.loss:.4f}{chosen_by}")


def _clicks(
    log: Path | None, data: str | None, validate: str, *, method: str, fold: int, seed: int
) -> tuple[ClickLog, ClickLog | JudgedLists | None]:
    from ultr.data.click_log import ClickLog

    if log is None or data is not None:
        raise OptionError(f"method {method} learns from clicks; give it --log FOLDER and no --data")
    clicks = ClickLog.load(log)
    if validate == "none":
        return clicks, None
    if validate == CLICKS:
        return clicks.split(0.1, seed=seed)
    return clicks, options.read_part(validate, "validation", fold=fold, seed=seed)


def _judged(
    log: Path | None, data: str | None, validate: str, *, fold: int, seed: int
) -> tuple[JudgedLists, JudgedLists | None]:
    if log is not None or data is None:
        raise OptionError("method label learns from labels; give it --data NAME=FOLDER and no --log")
    if validate == "none":
        return options.read_part(data, "train", fold=fold, seed=seed), None
    if validate != CLICKS:
        return (
            options.read_part(data, "train", fold=fold, seed=seed),
            options.read_part(validate, "validation", fold=fold, seed=seed),
        )
    splits = options.read_splits(data, fold=fold, seed=seed)
    return splits.train, splits.validation
