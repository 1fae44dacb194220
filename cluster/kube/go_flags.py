# SPDX-License-Identifier: Apache-2.0
"""Arguments read as Go's `flag` package reads them: an error ends the reading, and earlier arguments count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pumice.core.objects.metadata import parse_bool

Flag = str | int | bool
_MOST: Final = 2**63 - 1
_LONGEST: Final = 64


def parsed_flags(arguments: Sequence[str], defaults: Mapping[str, Flag]) -> dict[str, Flag]:
    """Return the flags with the given values; the type of a default is that of its flag."""
    values = dict(defaults)
    rest = list(arguments)
    while rest:
        name, cut, value = _name(rest.pop(0)).partition("=")
        if not name or name not in values:
            break
        kind = type(values[name])
        if not cut and kind is not bool:
            if not rest:
                break
            value = rest.pop(0)
        if kind is str:
            values[name] = value
            continue
        number = parse_bool(value if cut else "true") if kind is bool else _whole(value)
        # Go's `flag` writes what the parser returned, even beside an error: a zero for a text that is not a number
        values[name] = number if number is not None else kind(0)
        if number is None:
            break
    return values


def _name(argument: str) -> str:
    """Return the name behind one dash or two; empty for a word that is not a flag."""
    if not argument.startswith("-"):
        return ""
    name = argument.removeprefix("--") if argument.startswith("--") else argument[1:]
    return "" if name.startswith(("-", "=")) else name


def _whole(text: str) -> int | None:
    """Read an integer like Go's strconv.ParseInt with base 0."""
    if len(text) > _LONGEST or not text.isascii() or text != text.strip():
        return None
    sign = -1 if text[:1] == "-" else 1
    digits = text[1:] if text[:1] in ("+", "-") else text
    # Go reads 010 as octal, while Python refuses it
    if digits[:1] == "0" and digits[1:2].isdigit():
        digits = f"0o{digits[1:]}"
    try:
        number = sign * int(digits, 0) if digits[:1].isdigit() else None
    except ValueError:
        return None
    return number if number is not None and abs(number) <= _MOST else None
