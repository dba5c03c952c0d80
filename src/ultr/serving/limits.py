"""Limits on what one client may ask, so that the others still get their answers."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ultr import checks


@dataclass(frozen=True, kw_only=True)
class RequestLimits:
    """Sizes, counts and times; whoever exceeds one is told which."""

    body_bytes: int = 8 * 2**20
    """The body of a request: 413."""
    all_body_bytes: int = 256 * 2**20
    """The bodies of all requests without an answer yet, of which many may be slow: 429."""
    queries: int = 100
    """Queries in a request: 422."""
    candidates: int = 2_000
    """Candidates of a query: 422."""
    all_candidates: int = 10_000
    """Candidates of all queries in a request: 422."""
    body_seconds: float = 10.0
    """From the headers to the last byte of the body: 408."""
    score_seconds: float = 5.0
    """From the last byte of the body to the answer, waiting for a free thread included: 429."""
    requests: int = 64
    """Requests being scored or waiting for it: 429. Those whose body is still on its way do not count, so that slow
    clients take nobody's place."""
    connections: int = 512
    """Open connections: 429, and the connection is closed."""
    header_bytes: int = 32 * 2**10
    """The headers of a request: 431, and the connection is closed."""
    header_seconds: float = 10.0
    """From the start of a connection, or of a request on it, to the end of the headers: 408."""
    idle_seconds: float = 75.0
    """Between two requests on one connection; it is closed without a word. Proxies keep theirs open for a minute."""
    write_seconds: float = 10.0
    """For a client to take an answer; the connection is cut."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, int):
                checks.integer(field.name, value, at_least=1)
            else:
                checks.positive(field.name, value)
