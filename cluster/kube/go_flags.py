# SPDX-License-Identifier: Apache-2.0
"""Arguments read as Go's `flag` package reads them: an error ends the reading, and earlier arguments count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pumice.core.go_numbers import read_int
from pumice.core.objects.metadata import parse_bool

Flag = str | int | bool


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
        if kind is bool:
            switch = parse_bool(value if cut else "true")
            is_valid = switch is not None
            values[name] = bool(switch)
        else:
            # Go's `flag` writes what the parser returned, even beside an error: 0, or the nearest number of 64 bits.
            values[name], is_valid = read_int(value, base=0)
        if not is_valid:
            break
    return values


def _name(argument: str) -> str:
    """Return the name behind one dash or two; empty for a word that is not a flag."""
    if not argument.startswith("-"):
        return ""
    name = argument.removeprefix("--") if argument.startswith("--") else argument[1:]
    return "" if name.startswith(("-", "=")) else name
