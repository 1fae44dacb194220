# SPDX-License-Identifier: Apache-2.0
"""Numbers in texts, read as Go's `strconv` reads them: Volcano and Kubernetes take annotations, labels and flags so.

Python's `int()` and `float()` take blanks and digits of all scripts, and no hexadecimal fractions. Go returns a value
beside an error, too, and many callers ignore the error: 0 for a text that is not a number, and the nearest number, or
infinity, for one that is out of range.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_BASES: Final[Mapping[str, int]] = {"0x": 16, "0o": 8, "0b": 2}
_DIGITS: Final[Mapping[int, str]] = {2: "01", 8: "0-7", 10: "0-9", 16: "0-9a-f"}
_LEADING: Final[Mapping[int, re.Pattern[str]]] = {
    base: re.compile(f"[{digits}]*", re.ASCII | re.IGNORECASE) for base, digits in _DIGITS.items()
}
_LEADING_ANY: Final[Mapping[int, re.Pattern[str]]] = {
    base: re.compile(f"[{digits}_]*", re.ASCII | re.IGNORECASE) for base, digits in _DIGITS.items()
}
_LONGEST: Final = 64  # digits of 2**64 in base 2; Python is slow with long texts
_MOST_UNSIGNED: Final = 2**64
_RUN: Final = "{0}(?:_?{0})*"
_DECIMAL_RUN: Final = _RUN.format("[0-9]")
_HEX_RUN: Final = _RUN.format("[0-9a-f]")
_FLOAT: Final = re.compile(
    rf"[+-]?(?:{_DECIMAL_RUN}\.?|(?:{_DECIMAL_RUN})?\.{_DECIMAL_RUN})(?:e[+-]?{_DECIMAL_RUN})?|[+-]?inf(?:inity)?|nan",
    re.ASCII | re.IGNORECASE,
)
_HEX_FLOAT: Final = re.compile(
    rf"[+-]?0x_?(?:{_HEX_RUN}\.?|(?:{_HEX_RUN})?\.{_HEX_RUN})p[+-]?{_DECIMAL_RUN}", re.ASCII | re.IGNORECASE
)


class ReadInt(NamedTuple):
    """What `strconv.ParseInt` returns: the number, and whether there is no error."""

    value: int
    is_valid: bool


class ReadFloat(NamedTuple):
    """What `strconv.ParseFloat` returns: the number, and whether there is no error."""

    value: float
    is_valid: bool


_NOT_A_NUMBER: Final = ReadInt(0, is_valid=False)


def read_int(text: str, *, base: int = 10, bits: int = 64) -> ReadInt:
    """Read a whole number of so many bits. Base 0: as Go writes them in its source, `0x1f`, `0o17`, `017`, `1_000`."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    negative, marked = text[:1] == "-", base == 0
    if marked:
        base = _BASES.get(digits[:2].lower(), 8 if digits[:1] == "0" else 10)
        whole, digits = digits, digits[2:] if digits[:2].lower() in _BASES else digits
        # Only between digits, or behind the mark of the base (underscoreOK).
        bad = "__" in whole or whole.endswith("_") or whole.startswith("_")
    else:
        bad = False
    found = (_LEADING_ANY if marked else _LEADING)[base].match(digits)
    leading = found[0].replace("_", "").lstrip("0") if found is not None else ""
    size = _MOST_UNSIGNED if len(leading) > _LONGEST else int(leading or "0", base)
    # A number that is too large is out of range, whatever stands behind it: Go reads no further.
    if size < _MOST_UNSIGNED and (bad or not digits or found is None or found.end() < len(digits)):
        return _NOT_A_NUMBER
    most = 2 ** (bits - 1)
    if negative:
        return ReadInt(-min(size, most), is_valid=size <= most)
    return ReadInt(min(size, most - 1), is_valid=size < most)


def parse_int(text: str, bits: int = 64) -> int | None:
    """Return the decimal number of so many bits, None where Go returns an error."""
    number, is_valid = read_int(text, bits=bits)
    return number if is_valid else None


def read_float(text: str) -> ReadFloat:
    """Read a floating-point number."""
    if _FLOAT.fullmatch(text) is not None:
        number = float(text)
    elif _HEX_FLOAT.fullmatch(text) is not None:
        try:
            number = float.fromhex(text.replace("_", ""))
        except OverflowError:
            number = -math.inf if text[0] == "-" else math.inf
    else:
        return ReadFloat(0.0, is_valid=False)
    return ReadFloat(number, is_valid=math.isfinite(number) or "n" in text.lower())


AS_PYTHON: Final = "fractions-as-python-reads-them"
"""The rule before version 6 (`pumice.config.rules`)."""


def value_of(text: str, *, as_python: bool = False) -> float:
    """Return the number that Go returns, whatever the error beside it; `as_python`: the rule before version 6."""
    if not as_python:
        return read_float(text).value
    try:
        return float(text)
    except ValueError:
        return 0.0


def parse_float(text: str) -> float | None:
    """Return the number, None where Go returns an error."""
    number, is_valid = read_float(text)
    return number if is_valid else None
