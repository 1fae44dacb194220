"""What no object may hold, whatever its kind: too many levels, numbers that JSON and the journal have no room for."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_DEPTH: Final = 128
"""Levels of an object at most; the schemas of definitions are the deepest that anybody writes."""

_TEXTS: Final = frozenset((str, bool, type(None)))


def unsound(obj: dict[str, Any]) -> str:
    """What makes it impossible to keep an object, with the path in front where there is one; "" when it is sound."""
    level: list[tuple[str, Any]] = [("", obj)]
    for _ in range(MOST_DEPTH):
        inside: list[tuple[str, Any]] = []
        for path, each in level:
            named = each.__class__ is dict
            for key, value in cast("Iterable[tuple[Any, Any]]", each.items() if named else enumerate(each)):
                kind = value.__class__
                if kind in _TEXTS:
                    continue
                if kind is dict or kind is list:
                    inside.append((f"{path}.{key}" if named else f"{path}[{key}]", value))
                elif problem := _number_problem(value):
                    return f"{f'{path}.{key}' if named else f'{path}[{key}]'}: {problem}".removeprefix(".")
        level = inside
        if not level:
            return ""
    return f"nested deeper than {MOST_DEPTH} levels"


def _number_problem(value: float) -> str:
    if isinstance(value, int):
        return "" if -(2**63) <= value < 2**64 else "expected a number of 64 bits, was a longer one"
    return "" if isfinite(value) else f"expected a number, was {value}"
