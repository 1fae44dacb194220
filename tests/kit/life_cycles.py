"""The life cycles that the source declares, and where a state is set to something that none of them answered."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePath
from typing import Final

from tests.kit import source

MOVERS: Final = {"step", "after", "move"}
# Fields of these names that are of no life cycle, by module.
OTHERS: Final = {
    "core/devices/ascend/npu_node.py": "the health of a node's NPUs, as its annotation says",
    "pumice/questions/explain/account.py": "the words of an account, made from what is known of a pod or job",
    "pumice/questions/explain/advice/nodes.py": "the resources in the status of a node that is tried out",
    "pumice/questions/explain/jobs.py": "the phase that a report gives",
    "pumice/questions/measures/jobs.py": "what a journal says of a job",
    "pumice/questions/measures/lives.py": "what a journal says of a pod",
}


@dataclass
class Declared:
    """A life cycle: the module of its table, the name of that table, of the type of its states and of their fields."""

    module: str
    table: str
    states: str
    fields: set[str] = field(default_factory=set[str])


@cache
def trees() -> dict[str, ast.Module]:
    """The project's modules, without the tests."""
    return dict(source.modules(*source.LAYERS))


@cache
def lives() -> tuple[Declared, ...]:
    """Every `X = LifeCycle(...)`, and the fields that are annotated with the type of its states."""
    found = [
        Declared(path, target.id, _states(tree, node.value))
        for path, tree in trees().items()
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(target := node.target, ast.Name)
        if isinstance(node.value, ast.Call) and _name(node.value.func) == "LifeCycle"
    ]
    classes = [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for each in [each for node in classes if "NamedTuple" not in map(_name, node.bases) for each in node.body]:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            words = set(re.findall(r"\w+", ast.unparse(each.annotation)))
            for life in found:
                if life.states in words:
                    life.fields.add(each.target.id)
    return tuple(found)


def _states(tree: ast.Module, table: ast.Call) -> str:
    """The enumeration of states: the one of a module's that its table's first value is a member of."""
    aliases = {
        name.id: _name(value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
        for name, value in zip(node.targets[0].elts, node.value.elts, strict=True)
        if isinstance(name, ast.Name)
    }
    made: ast.AST = table.args[0]
    if isinstance(made, ast.Call):  # by a function of the module
        [made] = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == _name(made.func)]
        [made] = [node.value for node in ast.walk(made) if isinstance(node, ast.Assign)][:1]
    member = next(node for node in ast.walk(made) if isinstance(node, ast.Attribute))
    return aliases.get(_name(member.value), _name(member.value))


def _name(node: ast.AST) -> str:
    """The last name of a dotted one; of anything else none."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case _:
            return ""


FIELDS: Final = {"state", "phase", "status"}


def names_a_state(target: ast.expr, *, written: bool) -> bool:
    """Whether a field, or a cell of a column, holds a state; `written`: a section of an object that is written, too."""
    if isinstance(target, ast.Subscript):
        if isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
            return written and target.slice.value in FIELDS
        return _is_column(target.value) and not _name(target.slice).isupper()  # that would be a key
    return isinstance(target, ast.Attribute) and target.attr in FIELDS


def _is_column(node: ast.expr) -> bool:
    return _name(node).lstrip("_").removesuffix("_at") in FIELDS


def stores(function: ast.AST, *, written: bool) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is stored where a state is kept: by assignment, or as the argument of a `replace`."""
    for node in ast.walk(function):
        match node:
            case ast.Assign():
                pairs = [pair for target in node.targets for pair in _paired(target, node.value)]
            case ast.AnnAssign(value=ast.expr() as value) | ast.AugAssign(value=value):
                pairs = [(node.target, value)]
            case ast.Call(func=func) if _name(func) in ("replace", "_replace", "setattr"):
                yield from ((each.value, each.value) for each in node.keywords if each.arg in FIELDS)
                pairs = []
            case _:
                pairs = []
        yield from (pair for pair in pairs if names_a_state(pair[0], written=written))


def _paired(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if not isinstance(target, ast.Tuple):
        return [(target, value)]
    if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(each, value) for each in target.elts]


class Answers:
    """Which expressions of one module are what a life cycle answered, or were a state already."""

    def __init__(self, tree: ast.Module, path: str) -> None:
        homes = {source.module_of(life.module) for life in lives()}
        self._from_life = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module in homes or node.module == "pumice.core.life")
            for alias in node.names
        } - {life.states for life in lives()}
        if path in {life.module for life in lives()}:
            self._from_life |= {life.table for life in lives() if life.module == path}
        self._functions = {
            node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        self._asked: set[str] = set()

    def gives(self, value: ast.expr, function: ast.AST) -> bool:
        """Whether that is the value of an expression in a function."""
        match value:
            case ast.Name(id=name):
                return self._named(name, function)
            case ast.Attribute(value=inside):
                return value.attr in FIELDS or (value.attr == "value" and self.gives(inside, function))
            case ast.Subscript(slice=ast.Constant(value=key)):
                return key in FIELDS
            case ast.Subscript(value=inside):
                return _is_column(inside) or self._of_life(inside)
            case ast.IfExp(body=first, orelse=second):
                either = [each for each in (first, second) if not _is_nothing(each)]
                return all(self.gives(each, function) for each in either)
            case ast.BoolOp(values=parts):
                return any(self.gives(each, function) for each in parts)
            case ast.Dict():
                held = zip(value.keys, value.values, strict=True)
                of_state = [each for key, each in held if isinstance(key, ast.Constant) and key.value in FIELDS]
                return all(self.gives(each, function) for each in of_state)
            case ast.Call():
                return self._called(value, function)
            case _:
                return False

    def _called(self, call: ast.Call, function: ast.AST) -> bool:
        if isinstance(call.func, ast.Attribute) and self._of_life(call.func.value):
            return call.func.attr in (*MOVERS, "get")
        name = _name(call.func)
        if name in self._from_life:
            return True
        if isinstance(call.func, ast.Attribute) and name == "copy":
            return self.gives(call.func.value, function)
        if name in ("str", "cast", "grown", "integers"):
            return any(self.gives(each, function) for each in call.args)
        if name not in self._functions or name in self._asked:
            return False
        self._asked.add(name)
        here = self._functions[name]
        returned = [node.value for node in ast.walk(here) if isinstance(node, ast.Return) and node.value is not None]
        firsts = [each.elts[0] if isinstance(each, ast.Tuple) else each for each in returned]
        self._asked.discard(name)
        return bool(firsts) and all(self.gives(each, here) for each in firsts)

    def _of_life(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self._from_life
            case ast.Attribute(value=inside):
                return self._of_life(inside)
            case _:
                return False

    def _named(self, name: str, function: ast.AST) -> bool:
        """A local that was set to nothing else; a parameter hands on what its caller has."""
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = function.args
            if name in {each.arg for each in (*arguments.args, *arguments.kwonlyargs, *arguments.posonlyargs)}:
                return True
        set_to = [
            value
            for node in ast.walk(function)
            for target, value in _assigned(node)
            if isinstance(target, ast.Name) and target.id == name
        ]
        return bool(set_to) and all(self.gives(each, function) for each in set_to)


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _assigned(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Assign():
            return [pair for target in node.targets for pair in _paired(target, node.value)]
        case ast.AnnAssign(value=ast.expr() as value) | ast.NamedExpr(value=value):
            return [(node.target, value)]
        case _:
            return []


def offences(path: str, tree: ast.Module) -> list[str]:
    """Where a state is set to something that no life cycle answered. A new object begins as its class says."""
    if path in OTHERS:
        return []
    written = PurePath(path).parent in {PurePath(life.module).parent for life in lives()}
    found = [
        (function, target, value)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name != "__init__"
        for target, value in stores(function, written=written)
    ]
    answers = Answers(tree, path) if found else None
    return [
        f"{path}:{value.lineno}: {ast.unparse(target)} = {ast.unparse(value)}"
        for function, target, value in found
        if answers is not None and not answers.gives(value, function)
    ]
