# SPDX-License-Identifier: Apache-2.0
"""Numbers of CEL besides int and double: unsigned ones; and arithmetic that fails where 64 bits do not suffice."""

from __future__ import annotations

import math
from typing import Any, Final


class Uint(int):
    """An unsigned 64-bit number of an expression."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"

    def __str__(self) -> str:
        return str(int(self))


class NumberError(ValueError):
    """A number without a result: an overflow, a division by zero."""


_LOW: Final = -(2**63)
_HIGH: Final = 2**63
_EDGE: Final = 2.0**63


def whole(number: int) -> int:
    """Return an int. Raises NumberError when it does not fit."""
    if not _LOW <= number < _HIGH:
        raise NumberError("integer overflow")
    return number


def as_whole(number: int) -> int:
    """Return an int or uint as an int."""
    return whole(int(number))


def unsigned(number: int) -> Uint:
    """Return a uint. Raises NumberError when it does not fit."""
    if not 0 <= number < 2**64:
        raise NumberError("unsigned integer overflow")
    return Uint(number)


def _like(number: int, other: int) -> int:
    return unsigned(number) if type(other) is Uint else whole(number)


def plus(left: Any, right: Any) -> Any:
    """Add two numbers of one type."""
    # `type`, not isinstance: a Uint is an int, too, and has other limits.
    if type(left) is int:
        return whole(left + right)
    return left + right if type(left) is float else _like(int(left) + int(right), left)


def minus(left: Any, right: Any) -> Any:
    """Subtract two numbers of one type."""
    if type(left) is int:
        return whole(left - right)
    return left - right if type(left) is float else _like(int(left) - int(right), left)


def times(left: Any, right: Any) -> Any:
    """Multiply two numbers of one type."""
    if type(left) is int:
        return whole(left * right)
    return left * right if type(left) is float else _like(int(left) * int(right), left)


def divided(left: Any, right: Any) -> Any:
    """Divide two numbers of one type, towards zero, as Go divides whole numbers."""
    if type(left) is float:
        # Python raises an error where IEEE 754, and so Go, has an infinity or NaN.
        if right:
            return left / right
        return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)
    if not right:
        raise NumberError("division by zero")
    # From absolute values: Python's // rounds down, Go cuts towards zero.
    return _like(abs(int(left)) // abs(int(right)) * (1 if (left < 0) == (right < 0) else -1), left)


def rest(left: int, right: int) -> int:
    """Return the remainder of a division, with the sign of the dividend."""
    if not right:
        raise NumberError("modulus by zero")
    found = abs(int(left)) % abs(int(right))
    return _like(-found if left < 0 else found, left)


def negated(number: Any) -> Any:
    """Return a number with the other sign."""
    return -number if type(number) is float else whole(-number)


def whole_of_double(number: float) -> int:
    """Return a double cut to an int, as `int(2.9)`."""
    # cel-go refuses both edges (`common/types/overflow.go`), though -2**63 itself would fit.
    if not -_EDGE < number < _EDGE:
        raise NumberError("integer overflow")
    return int(number)


def unsigned_of_double(number: float) -> Uint:
    """Return a double cut to a uint."""
    if not 0 <= number < 2 * _EDGE:
        raise NumberError("unsigned integer overflow")
    return Uint(int(number))


def text_of_double(number: float) -> str:
    """Return a double as Go's `%g` prints it with the fewest digits."""
    if math.isnan(number) or math.isinf(number):
        return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = _digits(number)
    point = len(digits) + exponent
    # With the fewest digits, strconv's 'g' writes an exponent below -4 and from 6 on (`ftoa.go`).
    if not -4 <= point - 1 < 6:
        mantissa = digits[0] + (f".{digits[1:]}" if digits[1:] else "")
        return f"{sign}{mantissa}e{'-' if point < 1 else '+'}{abs(point - 1):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _digits(number: float) -> tuple[str, str, int]:
    """Return the sign, the fewest digits, and the power of ten behind them."""
    mantissa, _, power = f"{number!r}e0".partition("e")
    power = power.partition("e")[0]
    sign = "-" if mantissa.startswith("-") else ""
    before, _, after = mantissa.lstrip("-").partition(".")
    digits = (before + after).lstrip("0")
    exponent = int(power) - len(after)
    cut = digits.rstrip("0")
    if not cut:
        return sign, "0", 0
    return sign, cut, exponent + len(digits) - len(cut)
