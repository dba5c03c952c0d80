"""`ultr serve`: an exported ranker behind HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ultr import checks
from ultr.errors import OptionError


def _limit(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel="Limits")


def _loop(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel="Learning from what is shown")


def serve(
    model: Annotated[Path, typer.Argument(help="File that `ultr export MODEL --to onnx` wrote.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default this machine alone can connect.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one, which the log names.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that clients must send; or set ULTR_TOKEN.")
    ] = None,
    no_token: Annotated[bool, typer.Option("--no-token", help="Let other machines connect without a token.")] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Further name that requests may ask for (Host); without a token others are refused."),
    ] = None,
    missing: Annotated[
        str,
        typer.Option(
            help="Missing features: `as-trained` takes null where the model saw it in training and refuses others, "
            "`refuse` refuses all, `fill` takes all."
        ),
    ] = "as-trained",
    threads: Annotated[int, typer.Option(help="Requests scored side by side; 0 takes one per core.")] = 0,
    watch_seconds: Annotated[
        float, typer.Option(help="How often to look for a new model file; 0 reloads on SIGHUP alone.")
    ] = 1.0,
    drain_seconds: Annotated[
        float, typer.Option(help="Go on accepting for so long after SIGTERM, while /ready says no.")
    ] = 0.0,
    shutdown_seconds: Annotated[float, typer.Option(help="Time for requests that have begun when it stops.")] = 30.0,
    log_level: Annotated[str, typer.Option(help="debug, info or warning.")] = "info",
    log_to: Annotated[
        Path | None,
        _loop("Folder for what was shown and clicked, as hourly files of UBI 1.3; `ultr prepare` reads it."),
    ] = None,
    log_gigabytes: Annotated[float, _loop("Size of that folder; the oldest files give way.")] = 10.0,
    log_format: Annotated[
        str, _loop("Format of these files once their hour is over: parquet or jsonl (JSON lines).")
    ] = "parquet",
    shown: Annotated[int, _loop("Documents that a page shows; a query may say otherwise.")] = 10,
    explore: Annotated[
        str | None,
        _loop(
            "`swaps=0.05` exchanges a random adjacent pair of the shown documents in 5 % of the lists; `plan.json` "
            "does what `ultr doctor LOG --plan plan.json` asks for."
        ),
    ] = None,
    interleave: Annotated[
        Path | None,
        _loop("File of a new model that is interleaved with MODEL in a share of the queries; needs --log-to."),
    ] = None,
    share: Annotated[float | None, _loop("The share of queries that are interleaved; by default 0.05.")] = None,
    interleave_seconds: Annotated[
        float, _loop("Time for the new model to score a request; beyond it, the query is shown as MODEL ranks it.")
    ] = 0.05,
    shadow: Annotated[
        Path | None, _loop("File of a model that scores all queries without being shown; /metrics compares both.")
    ] = None,
    max_body_mib: Annotated[float, _limit("Size of a request, in MiB.")] = 8.0,
    max_all_bodies_mib: Annotated[float, _limit("Size of all requests at a time, in MiB.")] = 256.0,
    max_queries: Annotated[int, _limit("Queries per request.")] = 100,
    max_candidates: Annotated[int, _limit("Candidates per query.")] = 2_000,
    max_all_candidates: Annotated[int, _limit("Candidates per request.")] = 10_000,
    max_requests: Annotated[int, _limit("Requests being answered at once.")] = 64,
    max_connections: Annotated[int, _limit("Open connections.")] = 512,
    header_seconds: Annotated[float, _limit("Time to send headers.")] = 10.0,
    body_seconds: Annotated[float, _limit("Time to send a body.")] = 10.0,
    score_seconds: Annotated[float, _limit("Time to answer.")] = 5.0,
    write_seconds: Annotated[float, _limit("Time to take an answer.")] = 10.0,
    idle_seconds: Annotated[float, _limit("Time between requests on a connection.")] = 75.0,
) -> None:
    """Serve an exported ranker: `POST /rank`, `GET /model`, `/health`, `/ready`, `/metrics`; pages at `/` and `/docs`.

    Example: `ultr serve model.onnx`
    """
    from ultr.serving.exploration import parse_exploration
    from ultr.serving.limits import RequestLimits
    from ultr.serving.server import serve as run
    from ultr.serving.settings import ServiceSettings, read_token

    token = read_token(token_file, os.environ)
    if no_token and token is not None:
        raise OptionError("--no-token contradicts --token-file or ULTR_TOKEN; leave one of them out")
    if share is not None and interleave is None:
        raise OptionError("--share is for --interleave FILE; give both, or none")
    limits = RequestLimits(
        body_bytes=int(checks.positive("max_body_mib", max_body_mib) * 2**20),
        all_body_bytes=int(checks.positive("max_all_bodies_mib", max_all_bodies_mib) * 2**20),
        queries=max_queries,
        candidates=max_candidates,
        all_candidates=max_all_candidates,
        requests=max_requests,
        connections=max_connections,
        header_seconds=header_seconds,
        body_seconds=body_seconds,
        score_seconds=score_seconds,
        write_seconds=write_seconds,
        idle_seconds=idle_seconds,
    )
    settings = ServiceSettings(
        host=host,
        port=port,
        token=token,
        open_without_token=no_token,
        allowed_hosts=tuple(allow_host or ()),
        missing=missing,  # type: ignore[arg-type]
        threads=threads,
        watch_seconds=watch_seconds,
        drain_seconds=drain_seconds,
        shutdown_seconds=shutdown_seconds,
        log_level=log_level,
        log_to=log_to,
        log_gigabytes=log_gigabytes,
        log_format=log_format,
        shown=shown,
        explore=parse_exploration(explore),
        interleave=interleave,
        interleaved_share=0.05 if share is None else share,
        interleave_seconds=interleave_seconds,
        shadow=shadow,
        limits=limits,
    )
    run(model, settings)
