"""Small mistakes that somebody could make in a file of Python, each with the file that it leaves.

Wording is no behaviour: texts with a space in them stay as they are, and so do docstrings, annotations,
decorators and what only the type checker reads.
"""

import ast
import contextlib
import copy
import dataclasses
import functools
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

_Node = TypeVar("_Node", bound=ast.AST)

_OPERATORS: Final[Mapping[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitOr,
}
_COMPARISONS: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_TWINS: Final = (
    ("any", "all"),
    ("min", "max"),
    ("startswith", "endswith"),
    ("removeprefix", "removesuffix"),
    ("lstrip", "rstrip"),
    ("find", "rfind"),
    ("partition", "rpartition"),
    ("split", "rsplit"),
    ("fullmatch", "match"),
)
"""Functions and methods that are taken for each other."""
_OTHERS: Final = {one: other for pair in _TWINS for one, other in (pair, pair[::-1])}
_COPIES: Final = {"copy_value", "copy", "deepcopy", "dict", "list", "set", "sorted", "reversed"}
"""Functions and methods of which nothing but what they were given may be left."""
_TYPES: Final = {"isinstance", "issubclass", "NewType", "TypeVar", "cast", "Struct"}
"""Calls whose arguments are for the type checker, or fail in every test when they change."""
_SYMMETRIC: Final = {"min", "max"}
"""Functions to which the order of their arguments is the same."""
_DECLARED: Final = {"annotation", "returns", "decorator_list", "bases", "ctx"}
"""What a function or class is declared to be."""
_PATTERNS: Final = {"compile", "match", "fullmatch", "search", "sub", "split", "finditer", "findall"}
_SIGNS: Final = {"*": "+", "+": "*", "?": "", "^": "", "$": "", ".": "x"}
_SIGN: Final = re.compile(r"\\.|\(\?|([*+?^$.])")


@dataclasses.dataclass(frozen=True, slots=True)
class Mutation:
    """A file with one mistake in it."""

    line: int
    """Where it begins, counted from 1."""
    after: str
    """The line there with the mistake, without the spaces around it."""
    source: str
    """The whole file."""


def of(source: str) -> list[Mutation]:
    """Return all mutations of a file, in the order of their places."""
    tree = ast.parse(source)
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[str, Mutation] = {}
    for node, text in _changes(tree):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        mutated = (data[:begin] + text.encode() + data[end:]).decode()
        if mutated not in found and _differs(tree, mutated):
            after = mutated.splitlines()[node.lineno - 1].strip()
            found[mutated] = Mutation(node.lineno, after, mutated)
    return sorted(found.values(), key=lambda one: (one.line, one.after))


def _differs(tree: ast.Module, mutated: str) -> bool:
    """Say whether it is Python, and another program."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.dump(ast.parse(mutated)) != ast.dump(tree)
    except SyntaxError:
        return False


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield what to replace, and by which text."""
    for node in _walked(tree):
        if isinstance(node, ast.stmt):
            if _is_removable(node):
                yield node, "pass"
            yield from _statement(node)
        elif isinstance(node, ast.Constant | ast.JoinedStr):
            yield from _constant(node)
        elif isinstance(node, ast.expr):
            for other in _variants(node):
                yield node, _text(other)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield test, "True"


def _walked(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that may be wrong: without what is for readers and for the type checker."""
    yield node
    if isinstance(node, ast.JoinedStr):
        return  # Before Python 3.12 it is not known where in the text they stand.
    for name, value in ast.iter_fields(node):
        if name in _DECLARED or (name == "keywords" and isinstance(node, ast.ClassDef)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_for_readers(child):
                yield from _walked(child)


def _is_for_readers(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
    if isinstance(node, ast.Assign):
        slots = [target.id for target in node.targets if isinstance(target, ast.Name)]
        return slots == ["__slots__"] or _is_for_readers(node.value)
    return isinstance(node, ast.Call) and _called(node) in _TYPES


def _called(call: ast.Call) -> str:
    """Return the last name of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _text(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Attribute) else f"({text})"


def _is_removable(node: ast.stmt) -> bool:
    """Say whether the program can go on without it: not where nothing but it gives a name its first value."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets)
    return isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Delete | ast.Continue | ast.Break)


def _statement(node: ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    match node:
        case ast.Return(value=ast.Constant(value=False | None)):
            pass  # To whoever asks, it would be the same.
        case ast.Return(value=ast.expr() as value):
            yield value, "None"
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            if not isinstance(value, ast.Constant):
                yield value, "None"
        case ast.Break():
            yield node, "continue"
        case ast.Continue():
            yield node, "break"
        case ast.AugAssign(target=target, op=op, value=value):
            yield node, f"{ast.unparse(target)} = {ast.unparse(value)}"
            changed = ast.BinOp(target, _OPERATORS.get(type(op), ast.Add)(), value)
            yield node, f"{ast.unparse(target)} = {ast.unparse(changed)}"
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Compare | ast.UnaryOp):
            yield test, f"not ({ast.unparse(test)})"
        case _:
            pass


def _constant(node: ast.Constant | ast.JoinedStr) -> Iterator[tuple[ast.expr, str]]:
    value = node.value if isinstance(node, ast.Constant) else ""
    if isinstance(value, bool):
        yield node, str(not value)
    elif isinstance(value, int | float):
        yield node, str(value + 1)
    elif isinstance(value, str):
        text = ast.unparse(node)
        if " " not in text:
            yield node, f"{text[:-1]}x{text[-1]}"


def _changed(node: _Node, **fields: object) -> _Node:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


@functools.singledispatch
def _variants(_node: ast.expr) -> Iterator[ast.expr]:
    """Yield what an expression could be by mistake."""
    yield from ()


@_variants.register
def _binary(node: ast.BinOp) -> Iterator[ast.expr]:
    if type(node.op) in _OPERATORS:
        yield _changed(node, op=_OPERATORS[type(node.op)]())
    yield node.left


@_variants.register
def _boolean(node: ast.BoolOp) -> Iterator[ast.expr]:
    yield _changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    for number in range(len(node.values)):
        rest = node.values[:number] + node.values[number + 1 :]
        yield rest[0] if len(rest) == 1 else _changed(node, values=rest)


@_variants.register
def _comparison(node: ast.Compare) -> Iterator[ast.expr]:
    for number, op in enumerate(node.ops):
        yield _changed(node, ops=[*node.ops[:number], _COMPARISONS[type(op)](), *node.ops[number + 1 :]])


@_variants.register
def _unary(node: ast.UnaryOp) -> Iterator[ast.expr]:
    yield node.operand


@_variants.register
def _choice(node: ast.IfExp) -> Iterator[ast.expr]:
    yield _changed(node, body=node.orelse, orelse=node.body)
    yield node.body
    yield node.orelse


@_variants.register
def _mapping(node: ast.Dict) -> Iterator[ast.expr]:
    """Leave the copy of ``{**one}`` out, else one of several entries."""
    if node.keys == [None]:
        yield node.values[0]
    elif len(node.keys) > 1:
        for number in range(len(node.keys)):
            keys = node.keys[:number] + node.keys[number + 1 :]
            yield ast.Dict(keys, node.values[:number] + node.values[number + 1 :])


@_variants.register
def _listing(node: ast.List | ast.Set) -> Iterator[ast.expr]:
    """Leave the copy of ``[*one]`` out."""
    match node.elts:
        case [ast.Starred(value=value)]:
            yield value
        case _:
            pass


@_variants.register
def _call(node: ast.Call) -> Iterator[ast.expr]:
    yield from _without_copy(node)
    yield from _twins(node)
    if _has_order(node):
        yield _changed(node, args=[node.args[1], node.args[0], *node.args[2:]])
    for number, given in enumerate(node.keywords):
        before, behind = node.keywords[:number], node.keywords[number + 1 :]
        yield _changed(node, keywords=[*before, *behind])
        if given.arg and not isinstance(given.value, ast.Constant):
            yield _changed(node, keywords=[*before, _changed(given, value=ast.Constant(None)), *behind])
    if _called(node) in _PATTERNS and node.args:
        for pattern in _patterns(node.args[0]):
            yield _changed(node, args=[pattern, *node.args[1:]])


def _has_order(node: ast.Call) -> bool:
    """Say whether its first two arguments can be taken for each other."""
    starred = any(isinstance(each, ast.Starred) for each in node.args[:2])
    return len(node.args) > 1 and not starred and _called(node) not in _SYMMETRIC


def _without_copy(node: ast.Call) -> Iterator[ast.expr]:
    if _called(node) in _COPIES:
        if node.args:
            yield node.args[0]
        elif isinstance(node.func, ast.Attribute):
            yield node.func.value


def _twins(node: ast.Call) -> Iterator[ast.expr]:
    twin = _OTHERS.get(_called(node))
    if twin in {"split", "rsplit"} and len(node.args) + len(node.keywords) < 2:
        return  # What splits all finds the same from both ends.
    if twin and isinstance(node.func, ast.Attribute):
        yield _changed(node, func=_changed(node.func, attr=twin))
    elif twin:
        yield _changed(node, func=ast.Name(twin))


def _patterns(node: ast.expr) -> Iterator[ast.expr]:
    """Yield a regular expression with one sign changed, unless every test would fail with it."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return
    for sign in _SIGN.finditer(node.value):
        if sign[1]:
            changed = node.value[: sign.start()] + _SIGNS[sign[1]] + node.value[sign.end() :]
            with contextlib.suppress(re.error):
                re.compile(changed)
                yield ast.Constant(changed)
