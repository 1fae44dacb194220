# SPDX-License-Identifier: Apache-2.0
"""The first field of an object whose JSON type differs from its kind's schema: one wrong field would break every reader
of the kind, so such an object is refused.

Fields that the schema does not describe may hold anything. Of a kind without a schema only the metadata is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import ge, gt, le, lt
from typing import Any, Final

import msgspec

from pumice.cluster.api.kinds import KINDS
from pumice.cluster.api.refusals import Cause, required
from pumice.cluster.api.schema.compiled import PATTERNS, type_of_kind
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object, is_list, is_mapping
from pumice.core.quantity import quantity_of

NAMES: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
FORM: Final = "Expected `str` matching regex "
FORMS: Final = {
    "time": "a time like 2026-01-02T03:04:05Z",
    "microtime": "a time like 2026-01-02T03:04:05.000000Z",
    "base64": "a text in base64",
}
LONGEST: Final = 40
"""Length of a text as shown."""
MOST_DIGITS: Final = 18
"""Number that fits into 64 bits in any case."""
_EXPECTED: Final = re.compile(r"Expected `([a-z |]+)`((?: [<>]=? \S+)?)(?:, got `[a-z]+`)?")
_GOT: Final = re.compile(r"got `([a-z]+)`")
_BOUND: Final = re.compile(r"([<>]=?) (-?\d+)")
_HOLDS: Final[dict[str, Callable[[Any, int], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_TYPES: Final[dict[type, str]] = {
    str: "str", bool: "bool", int: "int", float: "float", list: "array", dict: "object", type(None): "null",
}  # fmt: skip
"""JSON's types as msgspec calls them."""


def in_words(problem: str, place: str, obj: object) -> tuple[str, str]:
    """Return the place of a wrong value ("spec.tasks[0].replicas"), the expected and the found type, from msgspec's
    message.
    """
    # msgspec names no keys of mappings, and stops at the first wrong value: the first that is wrong is meant
    found = ((where, value) for where, value in _values(_STEP.findall(place), obj, "") if _is_meant(problem, value))
    where, value = next(found, (place, None))
    if problem.startswith(FORM):
        return where, _of_wrong_form(problem, value)
    match = _EXPECTED.fullmatch(problem)
    if match is None:
        return where, problem.replace("`", "")
    types = [each for each in match[1].split(" | ") if each != "null"]
    return where, f"expected {' or '.join(NAMES.get(each, each) for each in types)}{match[2]}, was {_described(value)}"


def _values(steps: list[tuple[str, str]], value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield the values at a place that may leave keys open (`spec.hard[...]`), each with its place in full."""
    if not steps:
        yield place, value
        return
    (key, number), *rest = steps
    if number == "...":
        for name, each in value.items():
            yield from _values(rest, each, f"{place}[{name}]")
    elif number:
        if is_list(value) and int(number) < len(value):
            yield from _values(rest, value[int(number)], f"{place}[{number}]")
    elif is_mapping(value) and key in value:
        yield from _values(rest, value[key], f"{place}.{key}" if place else key)


def _is_meant(problem: str, value: object) -> bool:
    """Return whether msgspec says this of the value."""
    if problem.startswith(FORM):
        return isinstance(value, str) and re.match(PATTERNS[_form_of(problem)], value) is None
    if got := _GOT.search(problem):
        return _json_type(value) == got[1]
    bound = _BOUND.search(problem)
    return bound is None or not _HOLDS[bound[1]](value, int(bound[2]))


def _json_type(value: object) -> str | None:
    return _TYPES.get(type(value))


def _form_of(problem: str) -> str:
    return next(name for name, pattern in PATTERNS.items() if repr(pattern)[1:-1] in problem)


def _of_wrong_form(problem: str, value: object) -> str:
    form = _form_of(problem)
    described = _described(value)
    return f"{described}: {_problem_of(value)}" if form == "quantity" else f"expected {FORMS[form]}, was {described}"


def _problem_of(value: object) -> str:
    try:
        return str(quantity_of(value))
    except QuantityError as error:
        return error.problem


def _described(value: object) -> str:
    if isinstance(value, float) and abs(value) >= 2**63:
        return "a number of more than 64 bits"
    if isinstance(value, str):
        bare = value.lstrip("+-")
        long = bare.isdigit() and len(bare) > MOST_DIGITS
        return "a number of more than 64 bits" if long else repr(value[:LONGEST]) + "…" * (len(value) > LONGEST)
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool) or value is None:
        return {"True": "true", "False": "false"}.get(str(value), "null")
    return str(value)


_ABSENT: Final = re.compile(r"Object missing required field `(.*)`")
_PLACE: Final = re.compile(r"(.*?)(?: - at `(?:key in )?\$\.?(.*)`)?", re.DOTALL)


def type_problems(group: str, version: str, kind: str, obj: Object) -> list[Cause]:
    """Return the first field of a wrong type, as a cause, or nothing."""
    try:
        msgspec.convert(obj, type_of_kind(group, version, kind))
    except msgspec.ValidationError as error:
        match = _PLACE.fullmatch(str(error))
        problem, place = (match[1], match[2] or "") if match else (str(error), "")
        if absent := _ABSENT.fullmatch(problem):
            return [required(f"{place}.{absent[1]}" if place else absent[1])]
        place, words = in_words(problem, place, obj)
        return [Cause(place or "metadata", "FieldValueTypeInvalid", f"Invalid value: {words}")]
    return []


def key_problems(key: str, obj: Object) -> list[Cause]:
    """Return `type_problems` of an object of the kind that is stored by that key."""
    kind = KINDS.get(key)
    return type_problems("", "", key, obj) if kind is None else type_problems(kind.group, kind.version, kind.kind, obj)


def status_problems(key: str, status: object) -> list[Cause]:
    """Return `type_problems` of an object's status alone."""
    return key_problems(key, {"metadata": {}, "spec": {}, "status": status})
