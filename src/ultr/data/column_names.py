"""Columns of a table by name: what usual names stand for, and which column was meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from ultr.errors import DataError, OptionError

USUAL = {
    "impression": ("impression", "impression_id", "page_id", "serp_id", "search_id", "request_id"),
    "query": ("query", "query_id", "qid", "search_term", "user_query", "query_text", "keywords"),
    "document": (
        *("document", "document_id", "doc_id", "docid", "doc", "item_id", "item", "product_id", "sku", "product"),
        *("object_id", "url"),
        *("documents", "document_ids", "doc_ids", "docs", "item_ids", "items", "product_ids", "skus", "products"),
        *("results", "urls"),
    ),
    "position": ("position", "rank", "pos", "ordinal", "shown_position"),
    "click": ("click", "clicked", "is_click", "is_clicked", "clicks"),
    "title": ("title", "document_title", "product_title", "product_name", "item_name", "name", "headline", "text"),
    "label": ("label", "grade", "relevance", "relevance_label", "relevance_grade", "rel", "judgment", "judgement"),
}
"""The names by which a column is recognised, the surest first; case and punctuation do not count."""


def guess(role: str, names: Iterable[str], *, taken: Iterable[str] = ()) -> str | None:
    """The column whose usual name says what it is, if there is one that is not taken."""
    free = {_plain(name): name for name in names if name not in set(taken)}
    return next((free[_plain(usual)] for usual in USUAL[role] if _plain(usual) in free), None)


def check_column(name: str, names: Sequence[str], *, what: str) -> None:
    """Raise an `OptionError` that names the closest column and lists all unless there is a column of this name."""
    if name not in names:
        near = closest(name, names)
        hint = f", did you mean {near!r}" if near else ""
        raise OptionError(f"{what} has no column {name!r}{hint}; it has: {listed(names)}")


def check_names(names: Sequence[str], *, what: str) -> None:
    """Raise a `DataError` if two names are the same, or if one is no text that can be written to a file."""
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise DataError(f"two {what} are called {twice!r}; give each a name of its own")
    check_texts(names, what=what)


def check_texts(texts: Iterable[str], *, what: str) -> None:
    """Raise a `DataError` for what no file or array holds as it is: half a surrogate pair, and NUL at the end."""
    for text in texts:
        if text.endswith("\0"):
            raise DataError(
                f"{text!r} among the {what} ends with a NUL character, which arrays drop; name it otherwise"
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"{text!r} among the {what} is no valid Unicode text; name it otherwise") from error


def closest(name: str, names: Iterable[str]) -> str | None:
    """The name that is most like this one, if any is; case and punctuation do not count.

    >>> closest("Unit_Price", ["price", "unitprice"])
    'unitprice'
    """
    folded = {_plain(each): each for each in names}
    near = get_close_matches(_plain(name), folded, n=1)
    return folded[near[0]] if near else None


def listed(names: Sequence[str], *, most: int = 30) -> str:
    """Names with commas between, the rest of many as a number."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
