"""The routes of the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from ultr.serving.explaining import PARAMETER, is_wanted
from ultr.serving.gate import Exchange, Gate
from ultr.serving.pages import POLICY, page
from ultr.serving.parsing import parse_events
from ultr.serving.refusal import Refusal
from ultr.serving.schemas import EventsAnswer, ModelAnswer, Overview, RankAnswer, StatusAnswer
from ultr.serving.service import Service
from ultr.serving.specification import refusals_of, specification
from ultr.serving.status import overview


def build_app(service: Service) -> ASGIApp:
    """The service as an ASGI app."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        watcher = asyncio.create_task(service.watch()) if service.settings.watch_seconds else None
        try:
            yield
        finally:
            if watcher is not None:
                watcher.cancel()
                with suppress(asyncio.CancelledError):
                    await watcher
            service.close()

    app = FastAPI(
        lifespan=lifespan,
        exception_handlers=dict.fromkeys((Refusal, HTTPException, Exception), _refuse),
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    _add_routes(app, service)
    return Gate(app, service)


def _add_routes(app: FastAPI, service: Service) -> None:
    settings = service.settings
    pages = {name: page(f"{name}.html") for name in ("overview", "page")}
    refusals = refusals_of(settings)
    made: dict[str, bytes] = {}

    @app.post(
        "/rank",
        summary="Order candidates",
        response_model=RankAnswer,
        responses=refusals["/rank"],
        openapi_extra={"parameters": [PARAMETER]},
    )
    async def rank(request: Request) -> Response:
        """The candidates of each query, the best first."""
        explain = is_wanted(request.query_params)
        async with service.bodies.receive(request) as body:
            ranking = await service.rank(body, explain=explain)
        if service.feedback is not None:
            service.feedback.keep(ranking.shown)
        exchange: Exchange = request.scope["exchange"]
        exchange.queries, exchange.candidates = ranking.queries, ranking.candidates
        service.metrics.queries.inc(ranking.queries)
        service.metrics.candidates.inc(ranking.candidates)
        service.metrics.unseen.inc(ranking.unseen)
        service.metrics.outside.inc(ranking.outside)
        return Response(ranking.content, media_type="application/json")

    @app.post("/events", summary="What users did", responses=refusals["/events"], status_code=202)
    async def events(request: Request) -> EventsAnswer:
        """Clicks, carts and purchases, for the log that the next model is trained on."""
        async with service.bodies.receive(request) as body:
            found = parse_events(body)
        if service.feedback is None:
            raise Refusal(404, "no_log", "this service keeps no events; start it with --log-to FOLDER")
        return service.feedback.take(found)

    @app.get("/model", summary="What answers", responses=refusals["/model"])
    async def model() -> ModelAnswer:
        """The card of the model, its features in order, its digest, and the limits on requests."""
        loaded = service.slot.current
        return ModelAnswer(
            digest=loaded.scorer.digest,
            loaded=loaded.since.isoformat(timespec="milliseconds"),
            missing=settings.missing,
            limits=asdict(settings.limits),
            card=loaded.scorer.card,
        )

    @app.get("/health", summary="Is the process alive?", responses=refusals["/health"])
    async def health() -> StatusAnswer:
        """For a supervisor that restarts what does not answer."""
        return StatusAnswer(status="alive")

    @app.get("/ready", summary="May requests be sent?", responses=refusals["/ready"])
    async def ready() -> StatusAnswer:
        """For a balancer: no while the service is shutting down, or no thread of it is free for long."""
        if service.closing:
            raise Refusal(503, "closing", "the service is shutting down; ask another one", headers={"Retry-After": "5"})
        if service.stuck >= settings.cores:
            error = "every thread works on a request that was given up; ask another service, and restart this one"
            raise Refusal(503, "stuck", error, headers={"Retry-After": "5"})
        return StatusAnswer(status="ready")

    @app.get("/metrics", summary="Counters", response_class=PlainTextResponse, responses=refusals["/metrics"])
    async def metrics() -> Response:
        """For Prometheus."""
        return PlainTextResponse(service.metrics.text())

    @app.get("/status", summary="What it does now", responses=refusals["/status"])
    async def status() -> Overview:
        """The models, what the service was told to do, and the counters of `/metrics`; the page at `/` shows it."""
        return overview(service)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        scorer = service.slot.current.scorer
        if scorer.digest not in made:
            # It takes long enough to make that it is kept until the model changes.
            made.clear()
            made[scorer.digest] = to_json(specification(app, scorer, settings))
        return Response(made[scorer.digest], media_type="application/json")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(pages["page"], headers={"Content-Security-Policy": POLICY})

    @app.get("/", include_in_schema=False)
    async def start() -> Response:
        return HTMLResponse(pages["overview"], headers={"Content-Security-Policy": POLICY})


async def _refuse(request: Request, error: Exception) -> Response:
    match error:
        case Refusal():
            refusal = error
        case HTTPException(status_code=404):
            refusal = Refusal(404, "path", "there is nothing at this path; GET /docs shows what there is")
        case HTTPException(status_code=405, headers=headers):
            way = "POST" if request.url.path in ("/rank", "/events") else "GET"
            refusal = Refusal(405, "method", f"this path answers to {way} alone; GET /docs shows how", headers=headers)
        case HTTPException():
            refusal = Refusal(error.status_code, "http", str(error.detail), headers=error.headers)
        case _:
            # The gate gets the exception after this answer, and logs it.
            refusal = Refusal(500, "error", "the service failed on this request; its log says where")
    exchange: Exchange = request.scope["exchange"]
    exchange.reason = refusal.reason
    return Response(refusal.content(), refusal.status, refusal.all_headers())
