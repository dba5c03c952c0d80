"""Causes of bias beside the position: what a page or a document has of them, and how they change examination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers
from ultr.clicks import parameters
from ultr.data import ragged
from ultr.data.bias_factor import BiasFactor, numeric_factor
from ultr.errors import OptionError
from ultr.simulation.shown import ShownLists

_ROUNDING = 1e-9
"""So far from 1 may shares add up to."""


@dataclass(frozen=True, eq=False)
class Effect:
    """The bias factors of shown documents, and what they do to examination: curve ** steepness * attention."""

    factors: tuple[BiasFactor, ...]
    curve: Doubles | None = None
    """[shown documents], examination in the place of that by position."""
    steepness: Doubles | float = 1.0
    """[shown documents], the power that the curve is raised to: 2 falls twice as steeply, 0 is flat."""
    attention: Doubles | float = 1.0
    """[shown documents], the share of the curve's examination that is left."""


class Cause(Protocol):
    """A cause of bias beside the position."""

    @property
    def name(self) -> str:
        """Its name on the command line."""

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of the impressions with each kind of page."""

    def effect(self, shown: ShownLists, kinds: Integers, random: np.random.Generator) -> Effect:
        """The effect on shown lists that are pages of these kinds, [lists]."""


@dataclass(frozen=True)
class Device:
    """The device of a page: examination by position `theta_p` becomes `theta_p ** steepness`.

    One bias factor, `device`, the same for a whole page.
    """

    name: ClassVar[str] = "device"

    levels: tuple[str, ...] = ("desktop", "phone", "tablet")
    shares: tuple[float, ...] = (0.4, 0.45, 0.15)
    """Share of the impressions on each device."""
    steepness: tuple[float, ...] = (1.0, 2.0, 1.4)
    """By device; people give up earlier on a small screen."""

    def __post_init__(self) -> None:
        _check_shares("shares", self.shares, levels=self.levels)
        _check_numbers("steepness", self.steepness, levels=self.levels)

    def effect(self, shown: ShownLists, kinds: Integers, random: np.random.Generator) -> Effect:
        """A curve that is steeper on some devices."""
        devices = kinds[ragged.list_numbers(shown.offsets)].astype(np.int32)
        return Effect((BiasFactor("device", devices, self.levels),), steepness=np.array(self.steepness)[devices])


@dataclass(frozen=True)
class ResultLayout:
    """The layout of a result, drawn for each result of each list: a share of its examination is left.

    One bias factor, `layout`, which differs within a page.
    """

    name: ClassVar[str] = "layout"
    shares: ClassVar[tuple[float, ...]] = (1.0,)

    levels: tuple[str, ...] = ("image", "plain", "small")
    drawn: tuple[float, ...] = (0.25, 0.5, 0.25)
    """Share of the results with each layout."""
    attention: tuple[float, ...] = (1.0, 0.7, 0.4)
    """By layout."""

    def __post_init__(self) -> None:
        _check_shares("drawn", self.drawn, levels=self.levels)
        parameters.vector("attention", self.attention, length=len(self.levels))

    def effect(self, shown: ShownLists, kinds: Integers, random: np.random.Generator) -> Effect:
        """Less attention for some results."""
        layouts = random.choice(len(self.levels), size=len(shown.documents), p=self.drawn).astype(np.int32)
        return Effect((BiasFactor("layout", layouts, self.levels),), attention=np.array(self.attention)[layouts])


@dataclass(frozen=True)
class Pixels:
    """Pixels between the top of the page and a result, below results of different heights.

    Examination is `exp(-pixels / fold)`, whatever the position. One numeric bias factor, `pixels`, in bins.
    """

    name: ClassVar[str] = "pixels"
    shares: ClassVar[tuple[float, ...]] = (1.0,)

    heights: tuple[float, float] = (80.0, 320.0)
    """Smallest and largest height of a result, which is drawn for each document."""
    fold: float = 600.0
    """After so many pixels, examination has fallen to 1/e."""
    edges: tuple[float, ...] = tuple(float(edge) for edge in range(100, 2_000, 100))
    """Between the bins of the bias factor."""

    def __post_init__(self) -> None:
        _check_numbers("heights", self.heights, levels=("smallest", "largest"))
        checks.positive("fold", self.fold)

    def effect(self, shown: ShownLists, kinds: Integers, random: np.random.Generator) -> Effect:
        """A curve over pixels."""
        heights = random.uniform(*self.heights, size=int(shown.documents.max(initial=-1)) + 1)[shown.documents]
        below = np.cumsum(heights)
        starts = shown.offsets[:-1][ragged.list_numbers(shown.offsets)]
        pixels = below - heights - (below - heights)[starts]
        factor = numeric_factor("pixels", pixels, edges=self.edges)
        return Effect((factor,), curve=np.exp(-pixels / self.fold))


@dataclass(frozen=True)
class Grid:
    """Results in a grid, row by row, on pages with different numbers of columns.

    Examination is `row_decay ** (row - 1) * column_attention[column]`, whatever the position. Two bias factors, `row`
    and `column`, both from 1.
    """

    name: ClassVar[str] = "grid"

    columns: tuple[int, ...] = (2, 4)
    """Columns of each kind of page, such as a narrow one and a wide one."""
    shares: tuple[float, ...] = (0.5, 0.5)
    """Share of the impressions with each kind of page."""
    row_decay: float = 0.7
    column_attention: tuple[float, ...] = (1.0, 0.9, 0.75, 0.55)
    """By column from the left."""

    def __post_init__(self) -> None:
        _check_shares("shares", self.shares, levels=checks.sizes("columns", self.columns))
        parameters.probability("row_decay", self.row_decay)
        parameters.vector("column_attention", self.column_attention, length=max(self.columns))

    def effect(self, shown: ShownLists, kinds: Integers, random: np.random.Generator) -> Effect:
        """A curve over rows and columns."""
        width = np.array(self.columns)[kinds][ragged.list_numbers(shown.offsets)]
        row, column = np.divmod(shown.positions - 1, width)
        curve = self.row_decay**row * np.array(self.column_attention)[column]
        return Effect((_numbered("row", row), _numbered("column", column)), curve=curve)


def _check_shares(name: str, shares: Sequence[float], *, levels: Sequence[object]) -> None:
    parameters.vector(name, shares, length=len(levels))
    if abs(sum(shares) - 1) > _ROUNDING:
        raise OptionError(f"{name} must add up to 1, got {shares}")


def _check_numbers(name: str, values: Sequence[float], *, levels: Sequence[object]) -> None:
    if len(values) != len(levels):
        raise OptionError(f"{name} must have {len(levels)} numbers, got {len(values)}")
    for value in values:
        checks.not_negative(name, value)


def _numbered(name: str, values: Integers) -> BiasFactor:
    """A bias factor with levels from 1."""
    count = int(values.max(initial=0)) + 1
    return BiasFactor(name, values.astype(np.int32), tuple(str(number + 1) for number in range(count)))


CAUSES: dict[str, type[Cause]] = {kind.name: kind for kind in (Device, ResultLayout, Pixels, Grid)}
"""Those that come with the simulator, by name."""
