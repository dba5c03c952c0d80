"""`ultr simulate`: a click log from judged lists."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, get_type_hints

import typer

from ultr import checks
from ultr.cli import options, output
from ultr.files import check_new_folder


def simulate(
    out: Annotated[Path, typer.Option(help="Folder for the click log.")],
    data: options.Data = "letor-like",
    fold: options.Fold = 1,
    part: options.Part = "train",
    clicks: Annotated[
        str, typer.Option(help="Click model, such as trust, real or cascade; an unknown one lists all.")
    ] = "trust",
    impressions: Annotated[int, typer.Option(help="Result pages shown, over all queries.")] = 1_000_000,
    svm_share: Annotated[
        float, typer.Option(help="Share of the labelled queries that the shown lists come from.")
    ] = 0.01,
    rankings: Annotated[int, typer.Option(help="Shown lists per query.")] = 1,
    noise: Annotated[float, typer.Option(help="How much the rankings of a query differ; 0 is not at all.")] = 0.0,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Also count which documents were clicked together, which pair-debias needs.")
    ] = False,
    factor: Annotated[
        list[str] | None,
        typer.Option(help="Cause of bias beside the position: device, layout, pixels or grid; repeatable."),
    ] = None,
    signal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=RATES",
            help="What follows a click, with its rate for each grade from 0, such as purchase=0.02,0.05,0.1,0.2,0.4; "
            "repeatable.",
        ),
    ] = None,
    settings: options.Set = None,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Simulate users who click on the lists of a weak ranker.

    Example: `ultr simulate --data mq2007=data/mq2007 --clicks trust --out log`
    """
    from ultr.clicks.registry import CLICK_MODELS, click_model
    from ultr.simulation.causes import CAUSES
    from ultr.simulation.log import simulate as simulate_log

    output.hush(quiet)
    causes = [CAUSES[checks.one_of("factor", name, CAUSES)]() for name in factor or []]
    kind = CLICK_MODELS.choose(clicks)
    hints = get_type_hints(kind)
    types = {field.name: hints[field.name] for field in fields(kind)}
    model = click_model(clicks, **options.parse_settings(settings, types, of=f"click model {clicks}"))
    signals = options.parse_signals(signal)
    check_new_folder(out, overwrite=overwrite)
    with output.status(f"simulating {impressions:,} impressions of {data}"):
        judged = options.read_part(data, part, fold=fold, seed=seed)
        log = simulate_log(
            judged,
            model,
            impressions=impressions,
            svm_share=svm_share,
            rankings=rankings,
            noise=noise,
            pairs=pairs,
            factors=causes,
            signals=signals,
            seed=seed,
        )
    log.save(out, overwrite=overwrite)
    output.print_log(log, out, as_json=json)
