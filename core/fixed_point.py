"""The integer arithmetic below Go's quantities: scaling with its roundings and overflows, and printing.

Source: ``amount.go``, ``math.go``, ``scale_int.go`` and ``suffix.go`` of ``k8s.io/apimachinery/pkg/api/resource``.
An amount is ``unscaled * 10**exponent``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """Ten to a power that is not negative."""
    power: int = 10**exponent
    return power


def int32(value: int) -> int:
    """The low 32 bits, signed."""
    return (value + 2**31) % 2**32 - 2**31


def int64(value: int) -> int:
    """The low 64 bits, signed."""
    return (value + 2**63) % 2**64 - 2**63


def to_nano(amount: int, exponent: int) -> int:
    """A positive amount in nano units, rounded up."""
    if exponent >= NANO:
        return amount * pow10(exponent - NANO)
    shift = NANO - exponent
    if shift > _TINY_SHIFT:  # far below one nano, and pow10(shift) may not fit in memory
        return 1
    return -(-amount // pow10(shift))


def narrow_scaled(unscaled: int, exponent: int, target: int) -> int:
    """Go's ``int64Amount.AsScaledInt64``: rounds away from zero; what overflows wraps or is 0, as the shift has it."""
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
    """Go's ``scaledValue``, with its wrapping and its upward rounding of negative remainders."""
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
    """A non-zero amount with the largest binary suffix that divides it."""
    exponent = 0
    while amount % 1024 == 0:
        amount //= 1024
        exponent += 10
    # Go prints no suffix where it knows none
    return f"{amount}{_BINARY_NAMES.get(exponent, '')}"


def decimal_text(amount: int, exponent: int, *, as_power: bool) -> str:
    """A non-zero amount with the largest exponent that is a multiple of three: as a suffix, or as e3, e6, ..."""
    digits = str(amount)
    zeros = len(digits) - len(digits.rstrip("0"))
    amount //= pow10(zeros)
    exponent += zeros
    amount *= pow10(exponent % 3)
    exponent -= exponent % 3
    if as_power:
        return f"{amount}e{exponent}" if exponent else str(amount)
    return f"{amount}{_DECIMAL_NAMES.get(exponent, '')}"
