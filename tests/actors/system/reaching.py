"""What an object can reach: what it holds, and what that holds; functions and methods with what they have bound, and
the globals of their modules that they name.
"""

from __future__ import annotations
import __future__

import dataclasses
import enum
import functools
import logging
import re
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import timezone
from typing import Any

import msgspec

from pumice.actors.runtime.mailbox import Mailbox

PLAIN = (
    type(None), bool, int, float, complex, str, bytes, type, enum.Enum, re.Pattern, logging.Logger, types.ModuleType,
    types.BuiltinFunctionType, types.BuiltinMethodType, types.MethodWrapperType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.GenericAlias, type(functools.cache(len)), type(__future__.annotations),
)  # fmt: skip
"""What nobody can change, and what memory of pure functions there is."""
FIXED = (
    tuple, frozenset, types.FunctionType, types.MethodType, types.MappingProxyType, functools.partial, timezone,
)  # fmt: skip
"""What nobody can change, whatever may become of its parts. (A proxy's dict is the affair of who made it.)"""
READ_ONLY = re.compile(r"\bFinal\[(?:[\w.]+\.)?(?:Mapping|Sequence|AbstractSet|Collection)\[")
"""What a global is declared as that the type checkers let nobody rebind or write into."""
ONLY_READ: dict[str, tuple[str, ...]] = {
    "pumice.cluster.api.definitions.pruning": ("_ANYTHING",),
    "pumice.core.objects.metadata": ("_EMPTY",),
    "pumice.core.resources.partly": ("NOTHING",),
    "pumice.core.state.calm_jobs": ("AFTER_FINDING",),
    "pumice.storage.codec": ("_packer",),  # empty between two calls
}
"""Other globals that could be changed, and that nobody changes."""


def reached(start: object, ends: Iterable[object]) -> dict[int, Any]:
    """By id, all that can be reached from there but plain values. What is behind a mailbox or one of `ends` is not."""
    stop = {id(end) for end in ends}
    found: dict[int, Any] = {}
    left = [start]
    while left:
        each = left.pop()
        if id(each) in found or isinstance(each, PLAIN):
            continue
        found[id(each)] = each
        if id(each) not in stop and not isinstance(each, Mailbox):
            left.extend(parts(each))
    return found


def is_fixed(thing: object) -> bool:
    """Whether nobody can change it, whatever may become of its parts."""
    if isinstance(thing, FIXED):
        return True
    return is_fixed_type(type(thing)) or id(thing) in constants(len(sys.modules))


@functools.cache
def constants(modules: int) -> dict[int, object]:
    """By id, the tables of our modules that are declared to be read only; `modules` are loaded."""
    tables = [
        vars(module).get(table)
        for name, module in list(sys.modules.items())
        if _is_ours(name)
        for table, declared in vars(module).get("__annotations__", {}).items()
        if READ_ONLY.search(str(declared))
    ]
    return {id(each): each for each in tables if each is not None}


def is_fixed_type(kind: Any) -> bool:
    """Whether nobody can change a thing of that type, whatever may become of its parts."""
    if dataclasses.is_dataclass(kind):
        params: Any = getattr(kind, "__dataclass_params__")  # noqa: B009
        return bool(params.frozen)
    return issubclass(kind, tuple | frozenset) or (issubclass(kind, msgspec.Struct) and kind.__struct_config__.frozen)


def parts(thing: Any) -> Iterator[object]:
    """What it holds, and what its methods name."""
    yield from inside(thing)
    for kind in type(thing).__mro__:
        if _is_ours(kind.__module__):
            yield from filter(None, map(_function, vars(kind).values()))
    yield from getattr(thing, "__dict__", {}).values()
    for kind in type(thing).__mro__:
        slots = getattr(kind, "__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, name):
                yield getattr(thing, name)


def inside(thing: Any) -> Iterator[object]:
    """What is in a container, or bound by a function."""
    items: Any = thing
    if isinstance(thing, Mapping):
        yield from items.keys()
        yield from items.values()
    elif isinstance(thing, tuple | list | set | frozenset | deque):
        yield from items
    elif isinstance(thing, types.FunctionType):
        yield from (cell.cell_contents for cell in thing.__closure__ or ())
        yield from thing.__defaults__ or ()
        yield from globals_of(thing)
    elif isinstance(thing, types.MethodType):
        yield from (thing.__self__, thing.__func__)
    elif isinstance(thing, functools.partial):
        yield from (items.func, *items.args, *items.keywords.values())


def globals_of(function: types.FunctionType) -> Iterator[object]:
    """The globals that it names, but for those of ONLY_READ and of other people's modules."""
    known = function.__globals__
    if _is_ours(str(known["__name__"])):
        for name in {name for code in _codes(function.__code__) for name in code.co_names}:
            if name in known and name not in ONLY_READ.get(known["__name__"], ()):
                yield known[name]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of those that are written inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _function(member: Any) -> types.FunctionType | None:
    """The function of a method, a property or a class method that one of us wrote: no dataclass made it."""
    for name in ("__func__", "fget", "func"):
        member = getattr(member, name, None) or member
    written = isinstance(member, types.FunctionType) and member.__code__.co_filename != "<string>"
    return member if written and _is_ours(str(member.__globals__["__name__"])) else None


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "pumice"
