"""Small changes to a Python source, one at a time: each should make some test fail. Knows nothing of tests.

What only speaks to people (docstrings, messages of assertions and errors, log lines) is left alone, and so are type
annotations and default values that a dataclass field merely names.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_SKIPPED = (ast.AnnAssign, ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Mutant:
    """One changed source. `name` tells where and what, and stays the same while that line does.

    A further one of the same name has a number: `#2`.
    """

    name: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a module."""
    tree = ast.parse(source)
    lines = source.splitlines()
    names = Counter[str]()
    for path, node in list(_walk(tree, ())):
        for what, changed in _changes(node):
            mutated = copy.deepcopy(tree)
            _put(mutated, path, changed)
            name = f"{lines[node.lineno - 1].strip()}  →  {what}"
            names[name] += 1
            numbered = name if names[name] == 1 else f"{name} #{names[name]}"
            yield Mutant(numbered, ast.unparse(ast.fix_missing_locations(mutated)))


def unchanged(source: str) -> str:
    """The same module in the same spelling, with nothing changed."""
    return ast.unparse(ast.parse(source))


Path = tuple[tuple[str, int | None], ...]


def _walk(node: ast.AST, path: Path) -> Iterator[tuple[Path, ast.expr | ast.stmt]]:
    """The nodes that may be changed, with the way to each."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "msg"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if not isinstance(child, ast.AST) or isinstance(child, _SKIPPED) or _says_nothing(child):
                continue
            step = (*path, (name, index))
            if isinstance(child, ast.expr | ast.stmt):
                yield step, child
            yield from _walk(child, step)


def _says_nothing(node: ast.AST) -> bool:
    """A docstring, or a line that a type checker has proved to be never reached."""
    match node:
        case ast.Expr(value=ast.Constant(value=str()) | ast.Call(func=ast.Name(id="assert_never"))):
            return True
    return False


def _changes(node: ast.expr | ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """What a node may become, in a word and as a node."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARED:
            other = _COMPARED[type(op)]
            yield other.__name__, ast.Compare(node.left, [other()], node.comparators)
        case ast.BoolOp(op=op, values=values):
            for index in range(len(values)):
                rest = values[:index] + values[index + 1 :]
                yield f"without {ast.unparse(values[index])}", rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "without not", operand
        case ast.IfExp(body=body, orelse=orelse):
            yield "always the first", body
            yield "always the second", orelse
        case ast.Constant(value=bool() as value):
            yield str(not value), ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield str(value + 1), ast.Constant(value + 1)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield "without the right", left
            yield "without the left", right
        case ast.If():
            yield "always", _with(node, test=ast.Constant(True))
            yield "never", _with(node, test=ast.Constant(False))
        case ast.Expr() | ast.AugAssign():
            yield "left out", ast.Pass()
        case ast.Call(func=func, args=args, keywords=keywords) if not _is_log_line(func):
            for index, keyword in enumerate(keywords):
                if keyword.arg:
                    rest_of = keywords[:index] + keywords[index + 1 :]
                    yield f"without {keyword.arg}", ast.Call(func, args, rest_of)
        case ast.Tuple(elts=[*elements]) if len(elements) > 1 and isinstance(node.ctx, ast.Load):
            for index in range(len(elements)):
                if isinstance(elements[index], ast.Starred):
                    yield "without the rest", ast.Tuple(elements[:index] + elements[index + 1 :], ast.Load())


def _is_log_line(func: ast.expr) -> bool:
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "log"


def _with(node: ast.stmt, **fields: ast.AST) -> ast.stmt:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _put(tree: ast.AST, path: Path, changed: ast.AST) -> None:
    """Replace the node at the end of the way."""
    node: ast.AST = tree
    for name, index in path[:-1]:
        value = getattr(node, name)
        node = value if index is None else value[index]
    name, index = path[-1]
    new = copy.deepcopy(changed)
    if index is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[index] = new
