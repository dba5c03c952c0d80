"""An answer that says no: one shape for all of them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import to_json

from ultr.serving.schemas import Problem, Where


class Refusal(Exception):  # noqa: N818
    """A request that cannot be answered as asked."""

    def __init__(
        self,
        status: int,
        reason: str,
        error: str,
        *,
        where: Where | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(error)
        self.status = status
        self.reason = reason
        """One word for the metrics; the sentence may quote the request and is told to the client alone."""
        self.problem = Problem(error=_in_one_line(error), where=where or Where())
        self.headers = dict(headers or {})

    def content(self) -> bytes:
        """The body of the answer."""
        return to_json(self.problem, exclude_none=True)

    def all_headers(self) -> dict[str, str]:
        """The headers of an answer that nobody else writes."""
        return {"content-type": "application/json", "content-length": str(len(self.content())), **self.headers}


def _in_one_line(sentence: str) -> str:
    """A sentence whose line breaks and control characters, which a request put there, are escaped."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in sentence)


def try_later(reason: str, error: str) -> Refusal:
    """A refusal that has nothing to do with the request itself."""
    return Refusal(429, reason, f"{error}; try again in a second", headers={"Retry-After": "1"})
