from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.plugin import EAGER, install

from ultr.errors import OptionError, PluginError
from ultr.open_family import Registry


class Plain:
    name: ClassVar[str] = "plain"


class Fancy:
    name: ClassVar[str] = "fancy"


def registry() -> Registry[Any]:
    return Registry("click model", "ultr.click_models", [Plain], fault=lambda kind: getattr(kind, "fault", None))


def class_called(name: object, *, fault: str | None = None, qualname: str = "Other") -> type:
    return type(qualname, (), {"name": name, "fault": fault})


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    monkeypatch.syspath_prepend(tmp_path)
    # A page of the documentation may have left a package of this name behind.
    for module in [name for name in sys.modules if name.partition(".")[0] == "eager_clicks"]:
        monkeypatch.delitem(sys.modules, module)
    before = set(sys.modules)

    yield lambda **options: install(tmp_path, **options)

    for module in set(sys.modules) - before:
        del sys.modules[module]


def test_it_is_a_mapping_from_names_to_classes() -> None:
    known = registry()
    assert dict(known) == {"plain": Plain}
    assert known["plain"] is known.choose("plain") is Plain
    assert len(known) == 1
    assert "fancy" not in known
    assert known.get("fancy") is None


def test_an_unknown_name_lists_the_known_ones_and_the_closest() -> None:
    with pytest.raises(OptionError, match=r"click model must be one of plain, got 'plane'; did you mean 'plain'\?"):
        registry().choose("plane")


def test_a_registered_class_is_found_by_its_name_and_given_back() -> None:
    known = registry()
    assert known.register(Fancy) is Fancy
    assert known.choose("fancy") is Fancy
    assert list(known) == ["plain", "fancy"]
    assert known.is_built_in("plain")
    assert not known.is_built_in("fancy")


def test_a_class_that_is_written_again_takes_the_place_of_the_older_one() -> None:
    known = registry()
    known.register(class_called("fancy"))
    again = class_called("fancy")
    known.register(again)
    assert known["fancy"] is again


def test_a_name_that_is_taken_is_refused_with_both_classes() -> None:
    known = registry()
    known.register(Fancy)
    for name in ("plain", "fancy"):
        with pytest.raises(OptionError, match=rf"there is a click model '{name}' already \(.*:{name.title()}\)"):
            known.register(class_called(name))
    assert dict(known) == {"plain": Plain, "fancy": Fancy}


@pytest.mark.parametrize(
    ("member", "sentence"),
    [
        (Fancy(), "it must be a class"),
        (class_called(""), r"it must say its name: ClassVar\[str\]"),
        (class_called(7), r"it must say its name: ClassVar\[str\]"),
        (class_called("fancy", fault="be a dataclass"), "it must be a dataclass"),
    ],
)
def test_what_is_no_member_is_refused_with_what_it_lacks(member: Any, sentence: str) -> None:
    with pytest.raises(PluginError, match=sentence):
        registry().register(member)


def test_an_installed_class_is_listed_without_being_imported_and_imported_when_asked_for(
    installed: Callable[..., None],
) -> None:
    installed()
    known = registry()
    assert list(known) == ["plain", "eager"]
    assert "eager" in known
    assert "eager_clicks" not in sys.modules
    assert known["eager"].__module__ == "eager_clicks"
    assert list(known) == ["plain", "eager"]


def test_entry_points_are_not_looked_up_for_known_names(
    installed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = registry()
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: pytest.fail("looked up"))
    assert known.choose("plain") is Plain
    assert "plain" in known


def test_a_class_may_be_offered_from_another_module_and_registered_by_hand_too(
    installed: Callable[..., None],
) -> None:
    installed(value="eager_clicks.again:Eager")
    eager_clicks = import_module("eager_clicks")

    sys.modules["eager_clicks.again"] = eager_clicks
    known = registry()
    known.register(eager_clicks.Eager)
    assert list(known) == ["plain", "eager"]
    assert registry()["eager"] is known["eager"] is eager_clicks.Eager


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"code": "import nowhere_to_be_found"}, r"cannot be imported \(ModuleNotFoundError: .*mend or uninstall it"),
        ({"code": "raise RuntimeError('too old')"}, r"cannot be imported \(RuntimeError: too old\)"),
        ({"value": "eager_clicks:Missing"}, r"cannot be imported \(AttributeError"),
        ({"code": EAGER.replace('"eager"', '"keen"')}, "calls itself 'keen'"),
        ({"code": "Eager = 3"}, "must be a class"),
    ],
)
def test_a_package_that_cannot_be_used_is_named_in_one_sentence(
    installed: Callable[..., None], options: dict[str, str], sentence: str
) -> None:
    installed(**options)
    known = registry()
    assert known["plain"] is Plain
    with pytest.raises(PluginError, match=rf"the click model 'eager' of eager-clicks 1\.2 .*{sentence}") as caught:
        known.choose("eager")
    assert "\n" not in str(caught.value)


def test_a_package_that_takes_the_name_of_another_is_refused(installed: Callable[..., None]) -> None:
    installed(entry="plain")
    known = registry()
    assert known["plain"] is Plain
    with pytest.raises(PluginError, match=r"eager-clicks 1\.2 offers a click model 'plain' .* already; uninstall one"):
        list(known)
    installed(package="other_clicks")
    installed(package="third_clicks")
    with pytest.raises(PluginError, match=r"-clicks 1\.2 offers a click model 'eager'"):
        Registry[Any]("click model", "ultr.click_models", [], fault=lambda _: None).choose("eager")
