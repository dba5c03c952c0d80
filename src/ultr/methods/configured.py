"""Options by name, as scikit-learn asks for them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

from ultr import checks
from ultr.files import jsonable
from ultr.relevance.relevance_model import Relevance


@dataclass(kw_only=True, eq=False)
class Configured:
    """A dataclass whose fields are options, one of them a relevance model with options of its own."""

    relevance: Relevance

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001
        """The options by name, as scikit-learn asks for them; if deep, those of the relevance model, too."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        if not deep:
            return own
        return own | {f"relevance__{each.name}": getattr(self.relevance, each.name) for each in fields(self.relevance)}

    def set_params(self, **options: Any) -> Self:
        """Change options by name; `relevance__hidden` is the option `hidden` of the relevance model."""
        known = self.get_params()
        for name in options:
            checks.one_of(f"option of {type(self).__name__}", name, known)
        for name in sorted(options, key=lambda name: "__" in name):
            outer, inner, option = name.partition("__")
            setattr(self, outer, replace(self.relevance, **{option: options[name]}) if inner else options[name])
        return self

    def content(self) -> dict[str, Any]:
        """The options as JSON has them."""
        own = self.get_params(deep=False) | {"relevance": self.relevance.content()}
        found: dict[str, Any] = jsonable(own)
        return found
