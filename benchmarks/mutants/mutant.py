"""Small faults of a file: other thresholds, comparisons, signs, constants, `min` for `max`, `and` for `or`.

What is only said or typed is left as it is: text, messages of errors, annotations, decorators and plurals.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice

CONTEXT = 28
"""Characters shown on each side of a change."""
SMALLEST = 1e-5
"""Smaller constants are guards against rounding, which no count of clicks can tell apart."""
WORDING = 3
"""A choice between two texts that are no longer is one of grammar, such as a plural."""
UNTESTED_KEYWORDS = {
    "seed",
    "strict",
    "stacklevel",
    "kind",
    "kw_only",
    "repr",
    "compare",
    "copy",
    "keepdims",
    "figsize",
}
"""Arguments that guard, name or draw, and decide nothing."""
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {
    one: other
    for pair in (
        ("min", "max"),
        ("minimum", "maximum"),
        ("argmin", "argmax"),
        ("any", "all"),
        ("floor", "ceil"),
        ("logical_and", "logical_or"),
    )
    for one, other in (pair, pair[::-1])
}


@dataclass(frozen=True)
class Mutant:
    """One fault of a file."""

    number: int
    """Its place among the mutants of the file."""
    line: int
    scope: str
    """The function or class around the fault, such as `Interval.of`; empty at the top of the file."""
    change: str
    """The statement around the fault before and after it, cut to what differs."""
    lines: tuple[int, int]
    """The first and last line of that statement, without the block below it."""
    at_import: bool
    """True if the statement is run when the file is imported, and not by a call."""


def mutants(source: str) -> list[Mutant]:
    """All mutants of a file, as they come in a walk from its top."""
    found = list(_walk(ast.parse(source)))
    seen: Counter[tuple[str, str]] = Counter()
    named = []
    for number, each in enumerate(found):
        seen[each.scope, each.change] += 1
        times = seen[each.scope, each.change]
        change = f"{each.change} ({times})" if times > 1 else each.change
        named.append(replace(each, number=number, change=change))
    return named


def mutated(source: str, number: int) -> str:
    """The file with the fault of this number."""
    tree = ast.parse(source)
    next(islice(_walk(tree), number, None))
    return ast.unparse(tree)


def _walk(tree: ast.Module) -> Iterator[Mutant]:
    """The mutants of a file; while one is looked at, the tree has its fault."""
    for statement in tree.body:
        yield from _of_statement(statement, _Place())


@dataclass(frozen=True)
class _Place:
    """Where the walk through a file is."""

    lines: tuple[int, int] = (1, 1)
    scope: tuple[str, ...] = ()
    statement: ast.stmt | None = None
    at_import: bool = True

    def at(self, statement: ast.stmt) -> _Place:
        body = getattr(statement, "body", None)
        last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
        return replace(self, statement=statement, lines=(statement.lineno, max(statement.lineno, last)))

    def inside(self, name: str, *, at_import: bool) -> _Place:
        return replace(self, scope=(*self.scope, name), at_import=at_import)


def _of_statement(node: ast.stmt, place: _Place) -> Iterator[Mutant]:
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.Assert | ast.Delete):
        return
    here = place.at(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        inside = here.inside(node.name, at_import=place.at_import and isinstance(node, ast.ClassDef))
        if not isinstance(node, ast.ClassDef):
            at_definition = replace(inside, at_import=place.at_import)
            positional = [*node.args.posonlyargs, *node.args.args][-len(node.args.defaults) or 1_000 :]
            yield from _of_field(node.args, "defaults", at_definition, _names(positional))
            yield from _of_field(node.args, "kw_defaults", at_definition, _names(node.args.kwonlyargs))
        for statement in node.body:
            yield from _of_statement(statement, inside)
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) in UNTESTED_KEYWORDS:
        return
    for field in node._fields:
        if field != "annotation":
            yield from _of_field(node, field, here)


def _names(arguments: list[ast.arg]) -> list[str]:
    return [argument.arg for argument in arguments]


def _of_field(parent: ast.AST, field: str, place: _Place, names: Sequence[str] = ()) -> Iterator[Mutant]:
    """The mutants of what stands in one field of a node: an expression, statements, or a list of either.

    `names` are those of the arguments whose defaults stand there.
    """
    value = getattr(parent, field)
    for index, node in enumerate(value if isinstance(value, list) else [value]):
        if names and names[index] in UNTESTED_KEYWORDS:
            continue
        if isinstance(node, ast.stmt):
            yield from _of_statement(node, place)
        elif isinstance(node, ast.ExceptHandler | ast.match_case):
            for statement in node.body:
                yield from _of_statement(statement, place)
        elif isinstance(node, ast.AST) and not _is_wording_or_type(parent, node, place):
            for other in _others(parent, field, node):
                yield from _fault(parent, field, index, other, place)
            for inner in node._fields:
                if not (isinstance(node, ast.FormattedValue) and inner == "format_spec"):
                    yield from _of_field(node, inner, place)


def _fault(parent: ast.AST, field: str, index: int, other: ast.AST, place: _Place) -> Iterator[Mutant]:
    """The mutant with `other` in the place of a node; the tree is as before afterwards."""
    before = _header(place.statement)
    value = getattr(parent, field)
    node = value[index] if isinstance(value, list) else value
    _put(parent, field, index, other)
    change = _difference(before, _header(place.statement))
    line = getattr(node, "lineno", place.lines[0])
    yield Mutant(0, line, ".".join(place.scope), change, place.lines, place.at_import)
    _put(parent, field, index, node)


def _put(parent: ast.AST, field: str, index: int, node: ast.AST) -> None:
    value = getattr(parent, field)
    if isinstance(value, list):
        value[index] = node
    else:
        setattr(parent, field, node)


def _header(statement: ast.stmt | None) -> str:
    """The text of a statement without the blocks below it."""
    assert statement is not None, "an expression is part of a statement"
    names = ("orelse", "finalbody", "handlers", "decorator_list")
    blocks: dict[str, list[ast.stmt]] = {name: [] for name in names if hasattr(statement, name)}
    if hasattr(statement, "body"):
        blocks["body"] = [ast.Pass()]
    return ast.unparse(_with(statement, **blocks))


def _difference(before: str, after: str) -> str:
    """Two texts cut to where they differ and a little around it."""
    start = next((place for place, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    shorter = min(len(before), len(after)) - start
    end = next((place for place in range(shorter) if before[-1 - place] != after[-1 - place]), shorter)
    first = max(start - CONTEXT, 0)
    cut = [" ".join(text[first : len(text) - max(end - CONTEXT, 0)].split()) for text in (before, after)]
    return " -> ".join(cut)


def _is_wording_or_type(parent: ast.AST, node: ast.AST, place: _Place) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg in UNTESTED_KEYWORDS
    if isinstance(node, ast.IfExp):
        texts = [each.value for each in (node.body, node.orelse) if isinstance(each, ast.Constant)]
        return len(texts) == 2 and all(isinstance(text, str) and len(text) <= WORDING for text in texts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        called = ast.unparse(parent.func) if isinstance(parent, ast.Call) else ""
        return called in {"isinstance", "issubclass", "cast"} or (place.at_import and not place.scope)
    return False


def _others(parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            for kind in COMPARISONS[type(operator)]:
                yield _with(node, ops=[*node.ops[:number], kind(), *node.ops[number + 1 :]])
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not _holds_text(node):
        yield _with(node, op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Constant):
        for value in _other_values(node.value):
            yield ast.Constant(value)
    elif isinstance(node, ast.Name | ast.Attribute) and isinstance(parent, ast.Call) and field == "func":
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in NAMES:
            yield _with(node, **{"id" if isinstance(node, ast.Name) else "attr": NAMES[name]})
    is_condition = field == "test" and isinstance(parent, ast.If | ast.IfExp | ast.While)
    if is_condition and not isinstance(node, ast.Compare | ast.UnaryOp):
        yield ast.UnaryOp(ast.Not(), node)  # type: ignore[arg-type]


def _with(node: ast.AST, **fields: object) -> ast.AST:
    other = copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _other_values(value: object) -> list[bool | int | float]:
    """Both sides of a number, and the opposite of a truth value; none for text and tiny numbers."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1] if value < 2 else [value + 1, value - 1]
    if isinstance(value, float):
        if value == 0 or abs(value) == float("inf"):
            return [1.0] if value == 0 else []
        return [float(f"{value * by:.6g}") for by in (1.1, 0.9)] if abs(value) >= SMALLEST else []
    return []


def _holds_text(node: ast.BinOp) -> bool:
    """True for what joins texts, lists or tuples, where any other operator ends in an error."""
    joined = ast.JoinedStr | ast.List | ast.Tuple
    return any(
        isinstance(each, joined) or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in (node.left, node.right)
    )
