"""A plan for exploration: which positions are to be exchanged, how often, for how many pages, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ultr.data.bias_factor import MOST_POSITIONS
from ultr.errors import DataError
from ultr.files import check_is_file, read_json, write_json
from ultr.printable import visible

LARGEST_FILE = 2**20
"""Bytes of a file that may be a plan."""
SMALLEST_SHARE, LARGEST_SHARE = 1e-9, 0.9
"""Least share of the pages on which a pair is exchanged, and the most of all pairs together."""
MOST_PAIRS = 1_000
_Position = Annotated[int, Field(ge=1, le=MOST_POSITIONS)]


class _PlanModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PlannedPair(_PlanModel):
    """Two positions whose documents are to change places on some pages."""

    first: _Position
    second: _Position
    probability: float = Field(ge=SMALLEST_SHARE, le=LARGEST_SHARE, allow_inf_nan=False)
    """Share of the pages on which they are exchanged."""
    pages: int = Field(ge=1, le=10**15)
    """Number of pages after which the link rests on enough clicks, by the click rates of the log."""
    why: str = Field(max_length=500)

    @property
    def ranks(self) -> int:
        """Ranks that the upper document loses."""
        return self.second - self.first


class ExplorationPlan(_PlanModel):
    """The pairs to exchange, at most one of them on a page."""

    format: Literal["ultr exploration plan 1"] = "ultr exploration plan 1"
    pairs: tuple[PlannedPair, ...] = Field(default=(), max_length=MOST_PAIRS, strict=False)
    most_ranks_lost: int = Field(default=0, ge=0, le=MOST_POSITIONS)
    """Ranks that a document may be shown lower than it was scored."""
    note: str = Field(default="", max_length=2_000)
    """A sentence on the links that the plan does not bring about."""

    @model_validator(mode="after")
    def _check(self) -> ExplorationPlan:
        seen = set()
        for pair in self.pairs:
            named = f"the pair of positions {pair.first} and {pair.second}"
            if pair.second <= pair.first:
                raise ValueError(f"{named} must have the upper position first")
            if (pair.first, pair.second) in seen:
                raise ValueError(f"{named} stands twice")
            if pair.ranks > self.most_ranks_lost:
                raise ValueError(
                    f"{named} costs {pair.ranks} ranks, more than the plan states ({self.most_ranks_lost})"
                )
            seen.add((pair.first, pair.second))
        if self.epsilon > LARGEST_SHARE:
            raise ValueError(f"the probabilities add up to {self.epsilon:g}, and must to at most {LARGEST_SHARE}")
        return self

    @property
    def epsilon(self) -> float:
        """Share of the pages on which a pair is exchanged, if they show all positions of the plan."""
        return sum(pair.probability for pair in self.pairs)

    @property
    def pages(self) -> int:
        """Number of pages after which all links rest on enough clicks."""
        return max((pair.pages for pair in self.pairs), default=0)

    def write(self, path: str | Path) -> None:
        """Write the plan as JSON."""
        write_json(path, self.model_dump(mode="json"), sealed=True)

    @classmethod
    def read(cls, path: str | Path) -> ExplorationPlan:
        """The plan in a file; what is none is a `DataError`."""
        file = Path(path)
        check_is_file(file)
        if file.is_file() and file.stat().st_size > LARGEST_FILE:
            raise DataError(f"{path} is larger than a plan can be; give one that `ultr doctor LOG --plan` wrote")
        content = read_json(file)
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            why = visible(f"{where}: {first['msg']}" if where else first["msg"])[:300]
            raise DataError(
                f"{path} is not an exploration plan ({why}); give one that `ultr doctor LOG --plan` wrote"
            ) from error
