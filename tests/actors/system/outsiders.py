"""What those hold who are no actors: the system itself, what it is made of besides, and who runs it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MethodType
from typing import Any, Final

from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.system.references import ALL_ROLES, REFERENCES
from pumice.actors.system.system import System
from pumice.actors.system.wiring import Wiring
from tests.actors.system.reaching import is_fixed, reached
from tests.kit import source

SYSTEM: Final = "actors/system/system.py"
BEFORE: Final = ("__init__", "_recover")
"""What is over before the first actor runs."""
HANDED: Final[dict[tuple[str, int | str | None], str]] = {
    ("System", 1): "journal",
    ("System", "decider"): "core",
    ("System", "objects"): "decoded objects",
    ("SystemSettings", "faults"): "faults",
    ("replace", "faults"): "faults",
}
"""Arguments of a system and its settings that are the thing of a row."""

Held = tuple[str, str]
"""A row of the table, or what is in none; and the path of who holds it."""


def named(tree: ast.AST, root: str) -> Iterator[tuple[str, ...]]:
    """The chains of attributes that begin at that name, or at an attribute that is called so."""
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    inner = {id(node.value) for node in attributes}
    for node in attributes:
        if id(node) not in inner:
            match = re.fullmatch(rf"(?:.*\.)?_?{root}\.([\w.]+)", ast.unparse(node))
            if match:
                yield tuple(match[1].split("."))


def running_methods(tree: ast.Module) -> Iterator[ast.AST]:
    """Those of the class System, but for what is over BEFORE."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "System":
            yield from [each for each in node.body if getattr(each, "name", "") not in BEFORE]


def along(start: object, names: Iterable[str]) -> Iterator[object]:
    """What one comes by on the way, up to a mailbox or a method; what a property reads is looked at there."""
    for name in names:
        start = None if isinstance(getattr(type(start), name, None), property) else getattr(start, name, None)
        if start is None or isinstance(start, Mailbox | MethodType):
            return
        yield start


def rows(system: Wiring) -> dict[int, str]:
    """By id, the rows of which not everybody has the thing."""
    return {id(each.of(system)): each.what for each in REFERENCES if each.roles != ALL_ROLES}


def of_a_chain(system: System, names: Iterable[str], actors: Mapping[int, Any]) -> str | None:
    """The row of what is read so, or the type of what is in none though an actor has it and may change it."""
    known = rows(system)
    everybody = {id(each.of(system)) for each in REFERENCES if each.roles == ALL_ROLES}
    found: str | None = None
    for thing in along(system, names):
        if id(thing) in everybody:
            return None
        if id(thing) in known:
            found = known[id(thing)]
        elif found is None and id(thing) in actors and not is_fixed(thing):
            found = type(thing).__name__
    return found


def spoken(trees: Iterable[tuple[str, ast.Module]]) -> set[tuple[str, tuple[str, ...]]]:
    """What of a system the modules speak of that may do so: their paths, and the chains of attributes."""
    found: set[tuple[str, tuple[str, ...]]] = set()
    for path, tree in trees:
        parts: Iterable[ast.AST] = running_methods(tree) if path == SYSTEM else [tree]
        found |= {(path, names) for part in parts for names in named(part, "self" if path == SYSTEM else "system")}
    return found


def held(system: System, actors: Mapping[int, Any], chains: Iterable[tuple[str, tuple[str, ...]]]) -> set[Held]:
    """By whom what is held: `actors` is what these reach, by id; `chains` are what is spoken of a system."""
    found = {(of_a_chain(system, names, actors), path) for path, names in chains}
    ends = [each.of(system) for each in REFERENCES]
    for name in vars(system).keys() - vars(_bare(system)).keys():
        thing = vars(system)[name]
        path = source.relative(source.path_of(type(thing).__module__).with_suffix(".py"))
        found |= {(rows(system).get(number), path) for number in reached(thing, ends)}
    return {(what, path) for what, path in found if what is not None}


def _bare(system: System) -> Wiring:
    """A wiring as the system's own, which has nothing but what actors are made of."""
    return Wiring(list(system.roles.values()), system.settings, system.journal, system.context.clock, _nothing)


async def _nothing(events: object) -> None:
    pass


def handed(trees: Iterable[tuple[str, ast.Module]]) -> set[Held]:
    """Who hands a system the thing of a row."""
    return {
        (HANDED[ast.unparse(node.func), name], path)
        for path, tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for name in (*range(len(node.args)), *(each.arg for each in node.keywords))
        if (ast.unparse(node.func), name) in HANDED
    }
