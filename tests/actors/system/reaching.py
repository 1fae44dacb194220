"""What an object can reach: what it holds, and what that holds, functions and what they have bound included."""

from __future__ import annotations

import dataclasses
import enum
import functools
import logging
import re
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from actors.runtime.mailbox import Mailbox

PLAIN = (
    type(None), bool, int, float, complex, str, bytes, type, enum.Enum, re.Pattern, logging.Logger, types.ModuleType,
    types.BuiltinFunctionType, types.BuiltinMethodType, types.MethodWrapperType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.GenericAlias, type(functools.cache(len)),
)  # fmt: skip
"""What nobody can change, and what memory of pure functions there is."""


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
    if isinstance(thing, tuple | frozenset | types.FunctionType | types.MethodType | functools.partial):
        return True
    if dataclasses.is_dataclass(thing):
        params: Any = getattr(thing, "__dataclass_params__")  # noqa: B009
        return bool(params.frozen)
    return isinstance(thing, msgspec.Struct) and bool(thing.__struct_config__.frozen)


def parts(thing: Any) -> Iterator[object]:
    """What it holds."""
    yield from inside(thing)
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
    elif isinstance(thing, types.MethodType):
        yield from (thing.__self__, thing.__func__)
    elif isinstance(thing, functools.partial):
        yield from (items.func, *items.args, *items.keywords.values())
