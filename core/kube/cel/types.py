# SPDX-License-Identifier: Apache-2.0
"""Types of expressions before their values exist, and the signatures of functions over them.

Where cel-go infers a type, this may know less (`UNSURE`), and then refuses nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class CelType:
    """A type: `params` of lists, maps and optional values, `fields` of an object whose fields are known.

    `reading`: how a value of JSON becomes one of this type, where it is not one already.
    """

    name: str
    params: tuple[CelType, ...] = ()
    # Left out of equality: two objects are of one type, whatever fields their schemas describe.
    fields: Mapping[str, CelType] | None = field(default=None, compare=False)
    reading: str = field(default="", compare=False)
    keys: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.params))
        return f"{self.name}({inside})" if inside else self.name


DYN: Final = CelType("dyn")
UNSURE: Final = CelType("?")
BOOL: Final = CelType("bool")
INT: Final = CelType("int")
DOUBLE: Final = CelType("double")
STRING: Final = CelType("string")
BYTES: Final = CelType("bytes")
NULL: Final = CelType("null_type")
TYPE: Final = CelType("type")
_OPEN: Final = frozenset({"dyn", "?"})
_NULLABLE: Final = frozenset({"object", "timestamp", "duration", "null_type", "optional_type"})


def list_of(element: CelType) -> CelType:
    """Return the type of lists of these."""
    return CelType("list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    """Return the type of maps from these to those."""
    return CelType("map", (key, value))


def optional_of(value: CelType) -> CelType:
    """Return the type of optional values of these."""
    return CelType("optional_type", (value,))


def needs_reading(kind: CelType) -> bool:
    """Return whether values of JSON must be converted to be of a type."""
    return bool(kind.reading) or (kind.name in ("list", "map") and any(map(needs_reading, kind.params)))


def is_open(kind: CelType) -> bool:
    """Return whether values of a type may be anything."""
    return kind.name in _OPEN


def joined(types: Iterable[CelType]) -> CelType | None:
    """Return the common type of all these types, None without one."""
    found = UNSURE
    for each in types:
        if found.name == "?" or each == found:
            found = each
        elif each.name == "?":
            continue
        # One element of any type makes the whole a list of any type.
        elif "dyn" in (found.name, each.name):
            found = DYN
        elif not fits(each, found, {}):
            return None
        elif each.name == "null_type":
            continue
        elif found.name == each.name and found.params:
            inner = [joined(pair) for pair in zip(found.params, each.params, strict=True)]
            found = CelType(found.name, tuple(one or DYN for one in inner))
        else:
            found = each
    return found


def fits(given: CelType, wanted: CelType, known: dict[str, CelType]) -> bool:
    """Return whether a value of a type may stand where another is wanted. `known`: what letters such as A stand for."""
    # A letter stands for the common type of all arguments so far, so `1` and a dyn may be one A.
    if _is_letter(wanted):
        bound = joined((known.get(wanted.name, UNSURE), given))
        if bound is not None:
            known[wanted.name] = bound
        return bound is not None
    if is_open(given) or is_open(wanted) or given == wanted:
        return True
    # null may stand for objects, times and types of libraries (a dot in the name), not for plain values.
    if "null_type" in (given.name, wanted.name):
        other = wanted if given.name == "null_type" else given
        return other.name in _NULLABLE or "." in other.name
    # A value of JSON that a schema describes is an object to the checker, and a map when it is evaluated.
    if {given.name, wanted.name} == {"object", "map"}:
        return True
    if given.name != wanted.name:
        return False
    return all(fits(*pair, known) for pair in zip(given.params, wanted.params, strict=True))


def _is_letter(kind: CelType) -> bool:
    return len(kind.name) == 1 and kind.name.isupper()


def filled(kind: CelType, known: Mapping[str, CelType]) -> CelType:
    """Return a type with its letters replaced by the types that they stand for."""
    if _is_letter(kind):
        return known.get(kind.name, UNSURE)
    return CelType(kind.name, tuple(filled(each, known) for each in kind.params)) if kind.params else kind


@dataclass(frozen=True, slots=True)
class Signature:
    """One way to call a function. `method`: it is called on its first parameter."""

    name: str
    method: bool
    params: tuple[CelType, ...]
    result: CelType

    def result_for(self, given: Sequence[CelType]) -> CelType | None:
        """Return the result's type for arguments of these types, None where the function does not take them."""
        known: dict[str, CelType] = {}
        if len(given) != len(self.params):
            return None
        if not all(fits(one, wanted, known) for one, wanted in zip(given, self.params, strict=True)):
            return None
        return filled(self.result, known)


_SIGNATURE: Final = re.compile(r"(?:\((?P<owner>.+?)\)\.)?(?P<name>[^ (]+)\((?P<params>.*)\) -> (?P<result>.+)")


@cache
def signature(text: str) -> Signature:
    """Read a signature such as `(list<A>).indexOf(A) -> int`, or `size(string) -> int`."""
    match = _SIGNATURE.fullmatch(text)
    assert match is not None, text
    owner = [match["owner"]] if match["owner"] else []
    params = tuple(type_named(each) for each in [*owner, *_split(match["params"])])
    return Signature(match["name"], bool(owner), params, type_named(match["result"]))


@cache
def type_named(text: str) -> CelType:
    """Read a type such as `map<string, list<A>>`."""
    name, bracket, inside = text.partition("<")
    return CelType(name, tuple(type_named(each) for each in _split(inside[:-1]))) if bracket else CelType(name)


def _split(text: str) -> list[str]:
    """Return the parts between the commas that stand in no brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [each.strip() for each in found if each.strip()]
