# SPDX-License-Identifier: Apache-2.0
"""Kubernetes quantities, exactly as Go's ``k8s.io/apimachinery/pkg/api/resource`` reads, rounds and prints them.

Go keeps a quantity in one of two forms, and its overflows differ between them, so both are kept apart here:

- *narrow* (Go's ``int64Amount``): an int64 times a power of ten. A scaled value that does not fit wraps or is 0.
- *wide* (Go's ``inf.Dec``): arbitrary precision, at most nano. A scaled value that does not fit wraps around 2**64.

A text that is already canonical is kept and printed as it was given ("01" stays "01", "+5" stays "+5"), as Go does.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from pumice.core.errors import QuantityError

if TYPE_CHECKING:
    from collections.abc import Mapping

# --- Integer arithmetic with Go's roundings and overflows
# Source: ``amount.go``, ``math.go``, ``scale_int.go`` and ``suffix.go`` of ``k8s.io/apimachinery/pkg/api/resource``.
# An amount is ``unscaled * 10**exponent``.

INT64_MAX: Final = 2**63 - 1
INT64_DIGITS: Final = 18
"""Decimal digits that surely fit an int64."""
NANO: Final = -9
DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
"""Decimal suffixes and their powers of ten."""
BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
"""Binary suffixes and their powers of two."""

_WRAPPING_SHIFTS = (1, 2, 3, 6, 9)  # powers of ten that Go multiplies by in one step, its overflow check unread
_TINY_SHIFT = 2000  # longer than any text that is accepted: 10**-shift of it is below one
_DECIMAL_NAMES: Final[Mapping[int, str]] = {exponent: name for name, exponent in DECIMAL.items()}
_BINARY_NAMES: Final[Mapping[int, str]] = {0: "", **{exponent: name for name, exponent in BINARY.items()}}


def pow10(exponent: int) -> int:
    """Return ten to a power that is not negative."""
    power: int = 10**exponent
    return power


def int32(value: int) -> int:
    """Return the low 32 bits, signed."""
    return (value + 2**31) % 2**32 - 2**31


def int64(value: int) -> int:
    """Return the low 64 bits, signed."""
    return (value + 2**63) % 2**64 - 2**63


def to_nano(amount: int, exponent: int) -> int:
    """Return a positive amount in nano units, rounded up."""
    if exponent >= NANO:
        return amount * pow10(exponent - NANO)
    shift = NANO - exponent
    if shift > _TINY_SHIFT:  # far below one nano, and pow10(shift) may not fit in memory
        return 1
    return -(-amount // pow10(shift))


def narrow_scaled(unscaled: int, exponent: int, target: int) -> int:
    """Scale like Go's ``int64Amount.AsScaledInt64``: rounds away from zero; an overflow wraps or is 0, depending on the
    shift.
    """
    if exponent < target:
        divisor = pow10(target - exponent)
        return -(unscaled // -divisor) if unscaled >= 0 else unscaled // divisor
    shift = int32(exponent - target)
    if unscaled == 0 or shift <= 0:
        return unscaled
    if shift in _WRAPPING_SHIFTS:
        return int64(unscaled * pow10(shift))
    scaled = unscaled * pow10(min(shift, INT64_DIGITS + 1))
    return scaled if -INT64_MAX - 1 <= scaled <= INT64_MAX else 0


def wide_scaled(unscaled: int, exponent: int, target: int) -> int:
    """Scale like Go's ``scaledValue``, with its wrapping and its upward rounding of negative remainders."""
    shift = target - exponent
    if shift <= 0:
        return int64(int64(unscaled) * _go_pow10(-shift))
    if unscaled < INT64_MAX and shift < 19:
        low = int64(unscaled)
        divisor = pow10(shift)
        result = abs(low) // divisor
        result = -result if low < 0 else result
        return result + 1 if low % divisor else result
    return int64(-(-unscaled // pow10(shift)))


def _go_pow10(exponent: int) -> int:
    # Go turns the float64 10**exponent into an int64; too large a float becomes the smallest int64 on amd64
    return pow10(exponent) if exponent <= INT64_DIGITS else -INT64_MAX - 1


def binary_text(amount: int) -> str:
    """Return a non-zero amount with the largest binary suffix that divides it."""
    exponent = 0
    while amount % 1024 == 0:
        amount //= 1024
        exponent += 10
    # Go prints no suffix where it knows none
    return f"{amount}{_BINARY_NAMES.get(exponent, '')}"


def decimal_text(amount: int, exponent: int, *, as_power: bool) -> str:
    """Return a non-zero amount with the largest exponent that is a multiple of three: as a suffix, or as e3, e6, ..."""
    digits = str(amount)
    zeros = len(digits) - len(digits.rstrip("0"))
    amount //= pow10(zeros)
    exponent += zeros
    amount *= pow10(exponent % 3)
    exponent -= exponent % 3
    if as_power:
        return f"{amount}e{exponent}" if exponent else str(amount)
    return f"{amount}{_DECIMAL_NAMES.get(exponent, '')}"


__all__ = [
    "Quantity",
    "QuantityFormat",
    "format_bytes",
    "format_milli",
    "format_whole",
    "parse_quantity",
    "quantity_of",
]

_MOST_LETTERS = 512  # no cluster has such a quantity
_MOST_EXPONENT = 512  # Go tries to hold 10**exponent in memory; beyond this it is refused here
_CACHED_TEXTS = 1 << 16

# Nothing is tried twice: what a part has taken it keeps, as in Go.
_TEXT = re.compile(r"([+-]?+)0*+([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?+[0-9]*+)", re.ASCII)


class QuantityFormat(Enum):
    """The format of a printed quantity: the family of suffixes it was written with."""

    DECIMAL_EXPONENT = "DecimalExponent"  # 12e6
    BINARY_SI = "BinarySI"  # 12Mi
    DECIMAL_SI = "DecimalSI"  # 12M


class _Suffix(NamedTuple):
    base: int
    exponent: int
    format: QuantityFormat


_SUFFIXES = {name: _Suffix(10, exponent, QuantityFormat.DECIMAL_SI) for name, exponent in DECIMAL.items()} | {
    name: _Suffix(2, exponent, QuantityFormat.BINARY_SI) for name, exponent in BINARY.items()
}


class Quantity(msgspec.Struct, frozen=True, gc=False):
    """A quantity of ``unscaled`` times ten to the ``exponent``; the module docstring explains ``wide`` and ``text``."""

    unscaled: int
    exponent: int = 0
    format: QuantityFormat = QuantityFormat.DECIMAL_SI
    wide: bool = False
    text: str = ""

    def value(self) -> int:
        """Return the value in whole units, rounded up as Go's ``Value`` does (an int64: may be 0 or wrapped when too
        large).
        """
        return self._scaled(0)

    def milli_value(self) -> int:
        """Return the value in thousandths, rounded up as Go's ``MilliValue`` does (an int64: may be 0 or wrapped when
        too large).
        """
        return self._scaled(-3)

    def sign(self) -> int:
        """Return -1, 0 or 1."""
        return (self.unscaled > 0) - (self.unscaled < 0)

    def canonical(self) -> str:
        """Return the text Go prints: no fraction, the largest suffix that loses nothing."""
        return self.text or _canonical(self)

    def compare(self, other: Quantity) -> int:
        """Return -1, 0 or 1: exact, whatever the formats."""
        left, right, _ = _aligned(self, other)
        return (left > right) - (left < right)

    def plus(self, other: Quantity) -> Quantity:
        """Return the exact sum; a zero left side takes the right side's format, as Go's ``Add`` does. Raises
        QuantityError.
        """
        if not self.unscaled:
            return Quantity(other.unscaled, other.exponent, other.format, other.wide)
        left, right, exponent = _aligned(self, other)
        total = left + right
        wide = self.wide or other.wide or not -INT64_MAX <= total <= INT64_MAX
        return Quantity(total, exponent, self.format, wide)

    def _scaled(self, exponent: int) -> int:
        if self.wide:
            return wide_scaled(self.unscaled, self.exponent, exponent)
        return narrow_scaled(self.unscaled, self.exponent, exponent)


def quantity_of(value: object) -> Quantity:
    """Return a quantity from JSON or YAML (Go's ``UnmarshalJSON``): text with blanks around it, a number, null (zero).

    Raises QuantityError for anything else.
    """
    if isinstance(value, str):
        return parse_quantity(value.strip() if len(value) <= _MOST_LETTERS else value)
    if value is None:
        return _ZERO
    if isinstance(value, int) and not isinstance(value, bool):
        return parse_quantity(str(value))
    if isinstance(value, float):
        return parse_quantity(_float_text(value))
    raise QuantityError(value, "expected a text or a number")


@lru_cache(maxsize=_CACHED_TEXTS)
def parse_quantity(text: str) -> Quantity:
    """Read a quantity like Go's ``ParseQuantity``. Raises QuantityError. Cached: clusters repeat few texts very
    often.
    """
    if not text:
        raise QuantityError(text, "is empty")
    if text == "0":
        return _ZERO
    if len(text) > _MOST_LETTERS:
        raise QuantityError(text[:40] + "...", f"longer than {_MOST_LETTERS} letters")
    match = _TEXT.fullmatch(text)
    if match is None:
        raise QuantityError(text, "expected a number and a suffix such as m, k, M, Gi or e3")
    sign, whole, fraction, suffix_text = match.groups(default="")
    suffix = _suffix(text, suffix_text)
    narrow = _narrow(text, sign == "-", whole or "0", fraction, suffix)
    if narrow is not None:
        return narrow
    if not whole and not fraction and "0" not in text[: len(text) - len(suffix_text)]:
        raise QuantityError(text, "has no digits")
    return _wide(text, sign == "-", whole, fraction, suffix)


def format_milli(milli: int) -> str:
    """Return thousandths as canonical DecimalSI text (Go's ``NewMilliQuantity``): 1500 -> "1500m", 2000 -> "2"."""
    return _canonical(Quantity(milli, -3))


def format_bytes(count: int) -> str:
    """Return bytes as canonical BinarySI text (Go's ``NewQuantity(n, BinarySI)``): 1048576 -> "1Mi"."""
    return _canonical(Quantity(count, 0, QuantityFormat.BINARY_SI))


def format_whole(count: int) -> str:
    """Return a count as canonical DecimalSI text (Go's ``NewQuantity(n, DecimalSI)``): 110 -> "110", 2000 -> "2k"."""
    return _canonical(Quantity(count))


def _suffix(text: str, suffix: str) -> _Suffix:
    found = _SUFFIXES.get(suffix)
    if found is not None:
        return found
    if len(suffix) > 1 and suffix[0] in "eE":
        try:
            exponent = int(suffix[1:])
        except ValueError:
            exponent = 2**63
        if -(2**63) <= exponent < 2**63:
            return _Suffix(10, int32(exponent), QuantityFormat.DECIMAL_EXPONENT)
    raise QuantityError(text, f"unknown suffix {suffix!r}")


def _narrow(text: str, negative: bool, whole: str, fraction: str, suffix: _Suffix) -> Quantity | None:
    """Return the int64 form, or None when Go would go for arbitrary precision."""
    factor = 1
    scale = suffix.exponent
    if suffix.format is QuantityFormat.BINARY_SI:
        scale = 0
        # 2**10 has about three decimal digits
        if fraction or 15 - len(whole) - suffix.exponent * 3 // 10 - 1 < 0:
            return None
        factor = 1 << suffix.exponent
    elif len(whole) + len(fraction) > INT64_DIGITS:
        return None
    scale = int32(scale - len(fraction))
    if scale < NANO:
        return None
    digits = whole + fraction
    number = int(digits)
    if number * factor > INT64_MAX:
        return None
    if suffix.format is QuantityFormat.BINARY_SI:
        canonical = number & 7 != 0
    else:
        canonical = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    unscaled = -number * factor if negative else number * factor
    return Quantity(unscaled, scale, suffix.format, wide=False, text=text if canonical else "")


def _wide(text: str, negative: bool, whole: str, fraction: str, suffix: _Suffix) -> Quantity:
    """Return the arbitrary precision form: rounded up to nano; binary amounts are capped at the largest int64."""
    amount = int(whole + fraction or "0")
    exponent = -len(fraction)
    if suffix.base == 10:
        exponent = int32(exponent + suffix.exponent)
    else:
        amount <<= suffix.exponent
    if exponent > _MOST_EXPONENT:
        raise QuantityError(text, f"exponent beyond {_MOST_EXPONENT}")
    format_ = suffix.format
    if amount:
        amount = to_nano(amount, exponent)
        exponent = NANO
        if format_ is QuantityFormat.BINARY_SI and amount > INT64_MAX * 10**9:
            amount, exponent = INT64_MAX, 0
        # Go writes a binary amount below one as a decimal (`quantity.go`).
        if format_ is QuantityFormat.BINARY_SI and exponent == NANO and amount < 10**9:
            format_ = QuantityFormat.DECIMAL_SI
    return Quantity(-amount if negative else amount, exponent, format_, wide=True)


def _canonical(quantity: Quantity) -> str:
    if not quantity.unscaled:
        return "0"
    if quantity.format is QuantityFormat.BINARY_SI:
        whole = _whole(quantity)
        # Go writes binary amounts below 1024 without a suffix (CanonicalizeBytes).
        if whole is not None and abs(whole) >= 1024:
            return binary_text(whole)
        return decimal_text(quantity.unscaled, quantity.exponent, as_power=False)
    as_power = quantity.format is QuantityFormat.DECIMAL_EXPONENT
    return decimal_text(quantity.unscaled, quantity.exponent, as_power=as_power)


def _whole(quantity: Quantity) -> int | None:
    """Return the exact number of units, or None when there is a fraction."""
    if quantity.exponent >= 0:
        return quantity.unscaled * pow10(quantity.exponent)
    whole, rest = divmod(quantity.unscaled, pow10(-quantity.exponent))
    return None if rest else whole


def _aligned(left: Quantity, right: Quantity) -> tuple[int, int, int]:
    """Return both amounts at the smaller of the two exponents. Raises QuantityError when they are too far apart to
    hold.
    """
    exponent = min(left.exponent, right.exponent)
    if max(left.exponent, right.exponent) - exponent > _MOST_EXPONENT:
        raise QuantityError(f"{left.canonical()} and {right.canonical()}", f"exponent beyond {_MOST_EXPONENT}")
    return (
        left.unscaled * pow10(left.exponent - exponent),
        right.unscaled * pow10(right.exponent - exponent),
        exponent,
    )


def _float_text(value: float) -> str:
    """Return a float as Go's encoding/json writes it: plain digits between 1e-6 and 1e21, else an exponent."""
    if not isfinite(value):
        raise QuantityError(value, "is not a finite number")
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    mantissa, exponent = repr(value).split("e")
    return f"{mantissa}e{int(exponent):+d}"


_ZERO = Quantity(0, text="0")
