# SPDX-License-Identifier: Apache-2.0
r"""JSONPath as a CRD's printer columns use it: the dialect of client-go's `util/jsonpath`, of one expression.

Fields (`.a`, `.a\.b`, `['a']`), indexes and slices (`[0]`, `[-1:]`, `[0:4:2]`), wildcards, unions (`[0,2]`),
recursive descent (`..a`) and filters (`[?(@.type=="Ready")]`). A missing key gives no result; what client-go calls
an error (an index out of bounds, a filter on no list) raises JsonPathError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, TypeGuard

from pumice.config.errors import RequestError
from pumice.core.objects.metadata import Object

Step = Callable[[list[Any]], list[Any]]

LONGEST: Final = 512
"""Letters of an expression."""
MOST_FOUND: Final = 5_000
"""Most values that all steps may find together: two unions or two descents in a row multiply them."""
MOST_INSIDE: Final = 500
"""Most values that a step inside brackets may find, for one item."""


class Effort:
    """The number of values that all the columns of one row may still find."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_FOUND


_FIELD: Final = re.compile(r"((?:\\.|[^\s.,\[\]$@{}\\])*)")
_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"((?:-?\d+)?)(:(?:-?\d+)?)?(:(?:-?\d+)?)?")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_NUMBER: Final = re.compile(r"[+-]?[0-9][0-9.]*")
_WORD: Final = re.compile(r"\w+")
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {"<": lt, ">": gt, "==": eq, "!=": ne, "<=": le, ">=": ge}


class JsonPathError(RequestError):
    """The expression cannot be read, or does not fit the object."""


# Every row of a table asks for the same few paths: they are parsed once.
@lru_cache(maxsize=1024)
def compile_path(path: str) -> tuple[Step, ...]:
    """Return the steps of an expression such as `.status.conditions[?(@.type=="Ready")].status`. Raises
    JsonPathError."""
    if len(path) > LONGEST:
        raise JsonPathError(f"longer than {LONGEST} letters")
    return tuple(_parse(path))


def find(path: str, obj: object, effort: Effort | None = None) -> list[Any]:
    """Return all values that the expression names in the object, in order. Raises JsonPathError, also for too many
    values.
    """
    effort = effort or Effort()
    values = [obj]
    for step in compile_path(path):
        values = step(values) if effort.left > 0 else []
        effort.left -= len(values)
        if effort.left <= 0:
            raise JsonPathError(f"more than {MOST_FOUND} values")
    return values


def _walk(steps: Iterable[Step], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
        # Steps inside brackets run once for each item, where the row's effort does not see them.
        if len(values) > MOST_INSIDE:
            raise JsonPathError(f"more than {MOST_INSIDE} values")
    return values


def _parse(path: str) -> list[Step]:
    steps: list[Step] = []
    at = 0
    while at < len(path):
        step, at = _next(path, at)
        if step:
            steps.append(step)
    return steps


def _next(path: str, at: int) -> tuple[Step | None, int]:
    """Return the step that begins here (none for `$`, `@` and blanks) and where it ends."""
    if path.startswith("[?(", at):
        return _filter(path, at)
    if path.startswith("..", at):
        # One of the two dots is left for the field that follows; brackets and the end need none.
        return _descend, at + 2 if path[at + 2 : at + 3] in ("[", "") else at + 1
    match path[at]:
        case " " | "@" | "$":
            return None, at + 1
        case "[":
            return _bracket(path, at)
        case ".":
            return _field(path, at + 1)
        case "'" | '"':
            return _text(path, at)
        case _:
            return _literal(path, at)


def _field(path: str, at: int) -> tuple[Step, int]:
    found = _FIELD.match(path, at)
    # The pattern also matches the empty text: the `else` is for type checkers.
    name = found[1] if found else ""
    return (_every if name == "*" else _member(name.replace("\\", ""))), at + len(name)


def _bracket(path: str, at: int) -> tuple[Step, int]:
    end = path.find("]", at)
    if end < 0:
        raise JsonPathError(f"{path}: unterminated array")
    parts = path[at + 1 : end].split(",")
    steps = [_subscript(path, part.strip(" ") if len(parts) > 1 else part) for part in parts]
    if len(steps) == 1:
        return steps[0], end + 1
    return lambda values: list(chain.from_iterable(step(values) for step in steps)), end + 1


def _subscript(path: str, inside: str) -> Step:
    if quoted := _KEY.fullmatch(inside):
        # client-go's parser reads a quoted key as a path behind a dot: `['a.b']` is `.a.b`.
        return _walker(_parse(f".{quoted[1]}"))
    found = _SLICE.fullmatch(":" if inside == "*" else inside)
    if not found:
        raise JsonPathError(f"{path}: invalid array index {inside}")
    first, last, step = (int(part.lstrip(":")) if part and part != ":" else None for part in found.groups())
    single = found[2] is None and first is not None
    return _slicer(first, last, step, single=single)


def _walker(steps: list[Step]) -> Step:
    return lambda values: _walk(steps, values)


def _slicer(first: int | None, last: int | None, step: int | None, *, single: bool) -> Step:
    def take(values: list[Any]) -> list[Any]:
        return [
            one for value in values if value is not None for one in _sliced(value, first, last, step, single=single)
        ]

    return take


def _sliced(value: object, first: int | None, last: int | None, step: int | None, *, single: bool) -> list[Any]:
    items = _items(value)
    start = first or 0
    start += len(items) if start < 0 else 0
    end = len(items) if last is None else last
    end = start + 1 if single else end + (len(items) if end < 0 else 0)
    # client-go lets a request for no elements through, even out of bounds.
    if start == end:
        return []
    if not (0 <= start < len(items) and start <= end <= len(items)) or (step is not None and step <= 0):
        raise JsonPathError(f"array index out of bounds: {start}:{end}, length {len(items)}")
    return items[start : end : step or 1]


def _is_map(value: object) -> TypeGuard[Object]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _member(name: str) -> Step:
    def pick(values: list[Any]) -> list[Any]:
        return [value[name] for value in values if _is_map(value) and name in value]

    return pick


def _children(value: object) -> list[Any]:
    if _is_map(value):
        return list(value.values())
    return value if _is_list(value) else []


def _every(values: list[Any]) -> list[Any]:
    return [child for value in values for child in _children(value)]


def _descend(values: list[Any]) -> list[Any]:
    """Return every map and list at or below the values, parents first, as client-go walks them."""
    found: list[Any] = []
    for value in values:
        children = _children(value)
        if children:
            found += [value, *_descend(children)]
    return found


def _filter(path: str, at: int) -> tuple[Step, int]:
    end = _filter_end(path, at + 3)
    inside = path[at + 3 : end]
    compared = _COMPARISON.fullmatch(inside)
    if not compared:
        return _existing(_parse(inside)), end + 2
    left, sign, right = compared.groups()
    if sign not in _COMPARE:
        raise JsonPathError(f"{path}: unrecognized filter operator {sign}")
    return _comparing(_parse(left), _COMPARE[sign], _parse(right)), end + 2


def _filter_end(path: str, at: int) -> int:
    quote = ""
    for place in range(at, len(path)):
        sign = path[place]
        if quote:
            quote = "" if sign == quote and path[place - 1] != "\\" else quote
        elif sign in "'\"":
            quote = sign
        elif path.startswith(")]", place):
            return place
    raise JsonPathError(f"{path}: unterminated filter")


def _items(value: object) -> list[Any]:
    if not _is_list(value):
        raise JsonPathError(f"{type(value).__name__} is not a list")
    return value


def _existing(steps: list[Step]) -> Step:
    return lambda values: [item for value in values for item in _items(value) if _walk(steps, [item])]


def _comparing(left: list[Step], holds: Callable[[Any, Any], bool], right: list[Step]) -> Step:
    def passes(item: object) -> bool:
        sides = _walk(left, [item]), _walk(right, [item])
        # An item without the field is left out; one with several values is an error, as in evalFilter of client-go.
        if not all(sides):
            return False
        if any(len(side) > 1 for side in sides):
            raise JsonPathError("can only compare one element at a time")
        try:
            return holds(sides[0][0], sides[1][0])
        except TypeError as error:
            raise JsonPathError(str(error)) from error

    return lambda values: [item for value in values for item in _items(value) if passes(item)]


def _text(path: str, at: int) -> tuple[Step, int]:
    end = at + 1
    while path[end : end + 1] not in ("", path[at]) or path[end - 1] == "\\":
        if end >= len(path):
            break
        end += 1
    if end >= len(path):
        raise JsonPathError(f"{path}: unterminated quoted string")
    return _constant(path[at + 1 : end].replace("\\", "")), end + 1


def _literal(path: str, at: int) -> tuple[Step, int]:
    if found := _NUMBER.match(path, at):
        try:
            return _constant(float(found[0]) if "." in found[0] else int(found[0])), found.end()
        except ValueError:
            raise JsonPathError(f"{path}: cannot parse number {found[0]}") from None
    found = _WORD.match(path, at)
    if found and found[0] in ("true", "false"):
        return _constant(found[0] == "true"), found.end()
    raise JsonPathError(f"{path}: unrecognized {path[at : at + 10]!r} at {at}")


def _constant(value: object) -> Step:
    return lambda values: [value] * len(values)
