"""Mutants of a source file: one small change each, as a replacement of a span of its text.

Left alone are docstrings, annotations, texts and what only type checkers see. Everything is a function of the text, so
the same source has the same mutants in every run.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec

Function = ast.FunctionDef | ast.AsyncFunctionDef

COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
CHECKING: Final = frozenset({"TYPE_CHECKING", "typing.TYPE_CHECKING"})
CALLED: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Mutant(msgspec.Struct, frozen=True):
    """A change of one span: `start` and `end` are offsets in letters, `line` counts from 1.

    `function` is the outermost function whose body holds the span, by its dotted name, "" for what runs at import;
    `key` stays the same while that function's text (or, at import, the file's) does.
    """

    path: str
    function: str
    line: int
    start: int
    end: int
    before: str
    after: str
    key: str

    def applied(self, source: str) -> str:
        return source[: self.start] + self.after + source[self.end :]

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function or 'at import'}: {self.before} → {self.after or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Change:
    """A node and the text that takes its place."""

    node: ast.expr | ast.stmt
    after: str


def mutants_of(path: str, source: str) -> list[Mutant]:
    """All mutants of one file, in the order of the text."""
    tree = ast.parse(source)
    offsets = _offsets(source)
    seen: Counter[str] = Counter()
    found: list[Mutant] = []
    for function, owner, change in _walk(tree, ""):
        start, end = _span(change.node, offsets)
        before = source[start:end]
        if before == change.after:
            continue
        text = ast.get_source_segment(source, owner) if isinstance(owner, ast.stmt) else source
        named = "\0".join((path, function, hashlib.sha256((text or "").encode()).hexdigest(), before, change.after))
        seen[named] += 1
        key = hashlib.sha256(f"{named}\0{seen[named]}".encode()).hexdigest()[:16]
        found.append(Mutant(path, function, change.node.lineno, start, end, before, change.after, key))
    return found


def _offsets(source: str) -> list[tuple[int, bytes]]:
    """Where each line starts, in letters, and its bytes: columns of `ast` count bytes."""
    offsets: list[tuple[int, bytes]] = []
    at = 0
    for line in source.splitlines(keepends=True):
        offsets.append((at, line.encode()))
        at += len(line)
    return offsets


def _span(node: ast.expr | ast.stmt, offsets: list[tuple[int, bytes]]) -> tuple[int, int]:
    first, first_bytes = offsets[node.lineno - 1]
    last, last_bytes = offsets[(node.end_lineno or node.lineno) - 1]
    return first + len(first_bytes[: node.col_offset].decode()), last + len(last_bytes[: node.end_col_offset].decode())


def _walk(node: ast.AST, function: str, owner: ast.AST | None = None) -> Iterator[tuple[str, ast.AST | None, Change]]:
    """Changes below a node, each with the outermost function it is in."""
    for name, child in _children(node):
        inside, held = function, owner
        if owner is None and isinstance(node, Function) and name == "body":
            held = node
        if held is None and isinstance(child, Function | ast.ClassDef):
            inside = f"{function}.{child.name}" if function else child.name
        for change in _changes(child):
            yield (inside if held else ""), held, change
        yield from _walk(child, inside, held)


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What may be changed below a node, each with the field it is in."""
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.TypeIgnore):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) in CHECKING:
        return
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "bases", "pattern", "type_comment"}:
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue  # of zip: says what holds anyway
        children = cast("Iterable[Any]", value if isinstance(value, list) else (value,))
        for child in children:
            if isinstance(child, ast.AST):
                yield name, child


def _changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(left, [one], [right]) if type(one) in COMPARED:
            yield Change(node, _text(ast.Compare(left, [COMPARED[type(one)]()], [right])))
        case ast.Compare(left, [one, *ops], others) if type(one) in COMPARED:
            yield Change(node, _text(ast.Compare(left, [COMPARED[type(one)](), *ops], others)))
        case ast.BinOp(left, operator, right) if type(operator) in COMPUTED and not _is_type(node):
            yield Change(node, _text(ast.BinOp(left, COMPUTED[type(operator)](), right)))
        case ast.BoolOp(operator, values):
            other = ast.And() if isinstance(operator, ast.Or) else ast.Or()
            yield Change(node, _text(ast.BoolOp(other, values)))
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield Change(node, _text(operand))
        case ast.Constant(bool() as value):
            yield Change(node, str(not value))
        case ast.Constant(int() | float() as value):
            yield Change(node, str(value + 1))
        case ast.Call(ast.Name(name), _, _) if name in CALLED:
            yield Change(node.func, CALLED[name])
        case ast.If(test) | ast.While(test) | ast.IfExp(test):
            yield from _negated(test)
        case ast.comprehension(ifs=ifs):
            for test in ifs:
                yield from _negated(test)
        case ast.stmt():
            yield from _left_out(node)
        case _:
            pass


def _negated(test: ast.expr) -> Iterator[Change]:
    """Conditions that no other change turns round, but for the one that only a type checker finds true."""
    if ast.unparse(test) not in CHECKING and not isinstance(test, ast.Compare | ast.UnaryOp | ast.Constant):
        yield Change(
            test, f"(not {ast.unparse(test)})" if not isinstance(test, ast.BoolOp) else f"(not ({ast.unparse(test)}))"
        )


def _left_out(node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.Expr(ast.Call(ast.Name("assert_never"))):
            return
        case ast.Delete(targets) if all(isinstance(each, ast.Name) for each in targets):
            return  # says that an argument is not looked at
        case ast.Expr(ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete() | ast.Raise():
            yield Change(node, "pass")
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield Change(node, "pass")
        case ast.Return(value) if value is not None and not (isinstance(value, ast.Constant) and not value.value):
            yield Change(node, "return None")
        case ast.Break():
            yield Change(node, "continue")
        case ast.Continue():
            yield Change(node, "break")
        case _:
            return


def _is_type(node: ast.BinOp) -> bool:
    """A union of types, as in `X | None`: by the capitals."""
    named = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    return isinstance(node.op, ast.BitOr) and any(
        each.id[:1].isupper() or each.id in {"str", "int", "float"} for each in named
    )


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"
