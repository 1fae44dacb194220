# SPDX-License-Identifier: Apache-2.0
"""Content that no object may hold, whatever its kind: too many levels, numbers and texts that the journal cannot
store.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final, cast

from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_DEPTH: Final = 128
"""Levels of an object at most; the schemas of definitions are the deepest in use."""

_PLAIN: Final = frozenset((bool, type(None)))


def unsound(obj: Object) -> str:
    """Return why an object cannot be kept, after its path where it has one; "" for a sound object."""
    level: list[tuple[str, Any]] = [("", obj)]
    # Level by level, without recursion: an object from outside cannot exhaust the stack.
    for _ in range(MOST_DEPTH):
        inside: list[tuple[str, Any]] = []
        for path, each in level:
            named = each.__class__ is dict
            for key, value in cast("Iterable[tuple[Any, Any]]", each.items() if named else enumerate(each)):
                kind = value.__class__
                # ASCII has no surrogates, and nearly all texts are ASCII: they cost no call.
                problem = _text_problem(key) if named and not key.isascii() else ""
                if kind is dict or kind is list:
                    inside.append((f"{path}.{key}" if named else f"{path}[{key}]", value))
                elif kind is str:
                    problem = problem or ("" if value.isascii() else _text_problem(value))
                elif kind not in _PLAIN:
                    problem = problem or _number_problem(value)
                if problem:
                    return f"{path}{f'.{_printed(key)}' if named else f'[{key}]'}: {problem}".removeprefix(".")
        level = inside
        if not level:
            return ""
    return f"nested deeper than {MOST_DEPTH} levels"


def _number_problem(value: float) -> str:
    if isinstance(value, int):
        return "" if -(2**63) <= value < 2**64 else "expected a number of 64 bits, was a longer one"
    return "" if isfinite(value) else f"expected a number, was {value}"


def _text_problem(text: str) -> str:
    """Return the problem of a text with half of a surrogate pair: JSON can write it, UTF-8 has no form for it."""
    half = next((character for character in text if "\ud800" <= character <= "\udfff"), "")
    return f"expected a text, was half of a character, {_printed(half)}" if half else ""


def _printed(text: str) -> str:
    return text if text.isprintable() else ascii(text)[1:-1]
