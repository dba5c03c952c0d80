"""`ultr tune`: settings of a method, chosen by held-out clicks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultr.cli import options, output
from ultr.errors import OptionError
from ultr.files import check_new_folder
from ultr.locks import alone

if TYPE_CHECKING:
    from ultr.tuning.search_folder import TriedSettings

SHOWN = 10
"""Settings in the table."""


def tune(
    log: Annotated[Path, typer.Option(help="Folder of the click log.")],
    out: Annotated[Path, typer.Option(help="Folder for the model with the best settings.")],
    method: Annotated[
        list[str] | None, typer.Argument(help="One method, such as dla or vectorization; by default `auto`.")
    ] = None,
    trials: Annotated[int, typer.Option(help="Most settings to try; the first are those that are given.")] = 20,
    minutes: Annotated[float | None, typer.Option(help="Most minutes to search, beside the first settings.")] = None,
    relevance: Annotated[
        str | None, typer.Option(help="The relevance model whose options are searched: `mlp` or `trees`.")
    ] = None,
    hold_out: Annotated[
        str, typer.Option(help="What a tenth of is held out to choose by: query, page, time (the last) or hash.")
    ] = "query",
    seed: options.Seed = 0,
    settings: options.Set = None,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Search for the settings of a method that predict held-out clicks best. What `--set` gives is not searched.

    A search that was stopped goes on where it was when it is started again.

    Example: `ultr tune dla --log log --trials 30 --minutes 20 --out model`
    """
    from ultr.data.click_log import ClickLog
    from ultr.methods import flat_options
    from ultr.methods import method as method_of
    from ultr.methods.origin import Origin, seen_from
    from ultr.tuning.search_folder import SearchFolder
    from ultr.tuning.tuning import tune as search

    output.hush(quiet)
    if method is not None and len(method) > 1:
        raise OptionError(
            f"held-out clicks compare settings of one method, not methods; tune {' and '.join(method)} one at a time, "
            "and ask ultr compare which is better"
        )
    name = method[0] if method else "auto"
    given = options.method_settings(name, relevance, settings)
    estimator = flat_options.estimator(method_of(name), {"seed": seed} | given)
    budget: dict[str, Any] = {"trials": trials, "minutes": minutes, "tell": lambda tried: _tell(tried, trials)}
    space = {each: values for each, values in estimator.relevance.search_space().items() if each not in given}
    check_new_folder(out, overwrite=overwrite)
    place = out.resolve()
    folder = place.with_name(f".{place.name}.search")
    busy = f"another search is writing {out}; wait until it is done, or give another --out"
    with alone(place.with_name(f".{place.name}.lock"), busy=busy):
        train, held_out = ClickLog.load(log).split(by=hold_out, seed=seed)
        try:
            found = search(estimator, train, held_out=held_out, space=space, seed=seed, folder=folder, **budget)
        except KeyboardInterrupt:
            output.echo("ultr: stopped; start the same command again to go on with the search", err=True)
            raise typer.Exit(130) from None
        command, source = options.command_line(), seen_from(out, str(log))
        origin = Origin(command=command, log=source, validation="clicks", hold_out=hold_out, seed=seed)
        found.ranker.save(out, overwrite=overwrite, origin=origin)
        SearchFolder(folder, "").remove()
    best, tried = found.best, found.tried
    if json:
        tried_as_json = [{**vars(each), "settings": dict(each.settings)} for each in tried]
        output.print_json({"model": str(out), "method": name, "settings": dict(best.settings), "tried": tried_as_json})
        return
    again = ["ultr", "train", name, "--log", str(log), "--seed", str(seed), "--hold-out", hold_out]
    for each, value in {**given, **best.settings}.items():
        again += ["--relevance", value] if each == "relevance" else ["--set", f"{each}={_exactly(value)}"]
    again += ["--out", f"{out}-again"]
    _print_table(tried)
    output.echo(_in_words(best, tried))
    output.echo(f"the same settings again: {shlex.join(again)}")
    output.echo(f"{out}: a ranker by the method {name}; that held-out clicks chose its settings is recorded")


def _tell(tried: Sequence[TriedSettings], trials: int) -> None:
    """A line for the last trial, which fits into 80 columns."""
    from ultr.tuning.tuning import best_of

    last, best = tried[-1], best_of(tried)
    value = "training failed" if last.log_likelihood is None else f"log-likelihood {last.log_likelihood:.4f}"
    output.tell(f"trial {len(tried)} of {trials}: {value}, best {best.log_likelihood:.4f}, {last.seconds:.0f} s")


def _print_table(tried: Sequence[TriedSettings]) -> None:
    """The best settings and those that were given."""
    ranked = sorted(
        tried, key=lambda each: -1e300 if each.log_likelihood is None else each.log_likelihood, reverse=True
    )
    shown = ranked[:SHOWN] if tried[0] in ranked[:SHOWN] else [*ranked[: SHOWN - 1], tried[0]]
    rows = [
        {
            "trial": f"{tried.index(each) + 1}{', as given' if each is tried[0] else ''}",
            "log-likelihood": "failed" if each.log_likelihood is None else f"{each.log_likelihood:.4f}",
            "lead": "" if each.lead is None or each is tried[0] else f"{each.lead:+.4f}",
            "error": "" if each.error is None or each is tried[0] else f"{each.error:.4f}",
            **{name: _value(value) for name, value in each.settings.items()},
        }
        for each in shown
    ]
    output.print_table(rows, title="held-out log-likelihood of a click, and its lead over the settings as given")


def _in_words(best: TriedSettings, tried: Sequence[TriedSettings]) -> str:
    """The sentence on the best settings."""
    if best is tried[0] or best.lead is None or best.error is None:
        return f"of {len(tried)} settings, those that were given predict held-out clicks best"
    from ultr.metrics.held_out_choice import Lead

    others = len(tried) - 1
    settings = " ".join(f"{name}={_value(value)}" for name, value in best.settings.items())
    surely = "beyond noise" if Lead(best.lead, best.error).beyond_noise_of(others) else "within noise"
    return (
        f"of {len(tried)} settings, {settings} predicts held-out clicks best; its lead over those that "
        f"were given, {best.lead:+.4f} with a standard error of {best.error:.4f}, is {surely}"
        f"{f' for the best of {others}' if others > 1 else ''}"
    )


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _exactly(value: Any) -> str:
    return repr(value) if isinstance(value, float) else _value(value)
