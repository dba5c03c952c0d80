"""Members of an open family by name: those of the package, those of a program, and those of installed packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from ultr import checks
from ultr.errors import OptionError, PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Mapping[str, type[T]], Generic[T]):
    """Classes by their `name`: a mapping that also knows what other packages offer under an entry point group.

    A package offers a class in its `pyproject.toml`, under the name that the class gives itself:

        [project.entry-points."ultr.click_models"]
        eager = "my_package.eager:Eager"

    Entry points are looked up when a name is unknown and when the names are listed, and imported when their class is
    asked for. So importing `ultr` looks for nothing, and a broken package harms only those who use it.
    """

    def __init__(self, kind: str, group: str, members: Iterable[type[T]], *, fault: Callable[[type], str | None]):
        """A registry of built-in `members`.

        Args:
            kind: What a member is called in messages, such as "click model".
            group: The entry point group, such as "ultr.click_models".
            members: The classes of the package itself, each with a `name`.
            fault: What a class lacks to be a member, as the end of "it must ...", or None.

        """
        self.kind = kind
        self.group = group
        self._fault = fault
        self._built_in = {_name(member): member for member in members}
        self._members = dict(self._built_in)

    def register(self, member: type[T]) -> type[T]:
        """Make a class known under its `name`, for this process; it is given back, so this is a decorator too.

        A class of the same module and name takes the place of an older one, as when a cell of a notebook runs again.
        """
        self._check(member, what=f"{self.kind} {_place(member)}")
        known = self._members.get(_name(member))
        if known is not None and (_place(known) != _place(member) or _name(member) in self._built_in):
            raise OptionError(
                f"there is a {self.kind} {_name(member)!r} already ({_place(known)}); "
                f"give {_place(member)} another name"
            )
        self._members[_name(member)] = member
        return member

    def choose(self, name: str) -> type[T]:
        """The class of this name; an unknown one is an `OptionError` that lists all and names the closest."""
        return self[name] if name in self._members else self[checks.one_of(self.kind, name, self)]

    def is_built_in(self, name: str) -> bool:
        """Whether the class of this name is one of the package's own."""
        return name in self._built_in

    def __getitem__(self, name: str) -> type[T]:
        if name not in self._members:
            entry = self._offered()[name]
            self._members[name] = self._imported(entry)
        return self._members[name]

    def __contains__(self, name: object) -> bool:
        return name in self._members or name in self._offered()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._members, *self._offered()]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _offered(self) -> dict[str, EntryPoint]:
        """What installed packages offer, by name; two of one name are refused."""
        found: dict[str, EntryPoint] = {}
        for entry in _entry_points(self.group, _places_of_packages()):
            taken = found[entry.name].value if entry.name in found else None
            if entry.name in self._members:
                taken = _place(self._members[entry.name])
            # A package may also register its class by hand, or offer it from another of its modules.
            if taken is not None and _root(taken) != _root(entry.value):
                raise PluginError(
                    f"{_package(entry)} offers a {self.kind} {entry.name!r} ({entry.value}), which is the name of "
                    f"{taken} already; uninstall one of them or rename it"
                )
            found[entry.name] = entry
        return found

    def _imported(self, entry: EntryPoint) -> type[T]:
        what = f"the {self.kind} {entry.name!r} of {_package(entry)}"
        try:
            member = entry.load()
        # The code of others may fail in any way.
        except Exception as error:
            raise PluginError(
                f"{what} cannot be imported ({type(error).__name__}: {error}); mend or uninstall it"
            ) from error
        self._check(member, what=what)
        if _name(member) != entry.name:
            raise PluginError(f"{what} calls itself {_name(member)!r}; give its entry point and its `name` one name")
        return member  # type: ignore[no-any-return]

    def _check(self, member: type, *, what: str) -> None:
        fault = "be a class" if not isinstance(member, type) else self._fault(member)
        if fault is None and not (isinstance(name := getattr(member, "name", None), str) and name):
            fault = 'say its name: ClassVar[str] = "..."'
        if fault is not None:
            raise PluginError(f"{what} cannot be used: it must {fault}")


@lru_cache(maxsize=8)
def _entry_points(group: str, _places: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """The entry points of installed packages; the scan takes milliseconds, so it is done once for the same places."""
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def _places_of_packages() -> tuple[tuple[str, int], ...]:
    """Where packages are installed, and when each place was last changed."""
    return tuple((place, Path(place).stat().st_mtime_ns) for place in sys.path if Path(place).is_dir())


def _name(member: type) -> str:
    return str(member.name)  # type: ignore[attr-defined]


def _place(member: object) -> str:
    """Where a class is written, as entry points write it."""
    return f"{getattr(member, '__module__', '')}:{getattr(member, '__qualname__', repr(member))}"


def _root(place: str) -> str:
    """The package of a place such as `my_package.eager:Eager`."""
    return place.partition(":")[0].partition(".")[0]


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value
