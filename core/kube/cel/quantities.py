# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' quantities and semantic versions in expressions, and tables of them by domain (source: apiserver's
`pkg/cel/library`).
"""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Any, Final

from pumice.core.kube.cel.numbers import whole
from pumice.core.quantity import Quantity, QuantityFormat, parse_quantity

_LONGEST: Final = 256
_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_NUMBER: Final = r"(0|[1-9]\d*)"
_VERSION: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?", re.ASCII)


class Domains(dict[str, dict[str, Any]]):
    """Attributes or capacities by domain: an unknown domain is an empty one."""

    # As DRA's own map type: looking up an unknown domain finds an empty map
    # (`dynamic-resource-allocation/cel/compile.go`).
    def __missing__(self, key: str) -> dict[str, Any]:
        return {}


class VersionError(ValueError):
    """A text that is not a semantic version."""


@total_ordering
class Amount:
    """A quantity in an expression."""

    __slots__ = ("quantity",)

    def __init__(self, quantity: Quantity) -> None:
        self.quantity = quantity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amount) and self.quantity.compare(other.quantity) == 0

    def __lt__(self, other: Amount) -> bool:
        return self.quantity.compare(other.quantity) < 0

    def __hash__(self) -> int:
        # Equal amounts round to one value, whatever their unit; unequal ones may share a hash.
        return hash(self.quantity.value())


def amount(text: str) -> Amount:
    """Read a quantity. Raises QuantityError."""
    return Amount(parse_quantity(text))


def _other(value: Amount | int) -> Quantity:
    if isinstance(value, Amount):
        return value.quantity
    return Quantity(value, 0, QuantityFormat.DECIMAL_EXPONENT)


def added(one: Amount, other: Amount | int) -> Amount:
    """Return the sum with a quantity or a whole number."""
    return Amount(one.quantity.plus(_other(other)))


def subtracted(one: Amount, other: Amount | int) -> Amount:
    """Return the difference to a quantity or a whole number."""
    taken = _other(other)
    negative = Quantity(-taken.unscaled, taken.exponent, taken.format, taken.wide)
    return Amount(one.quantity.plus(negative))


def is_whole(one: Amount) -> bool:
    """Return whether the quantity is held as a whole number of 64 bits: Go gives up on wide ones, and on 1000m too."""
    quantity = one.quantity
    if quantity.wide:
        return False
    exponent, unscaled = quantity.exponent, quantity.unscaled
    # With more zeros only 0 would fit 64 bits, and 10**exponent would cost time and memory.
    return 0 <= exponent <= 19 and -(2**63) <= unscaled * 10**exponent < 2**63


def as_whole(one: Amount) -> int:
    """Return it as a whole number. Raises ValueError when it is none."""
    if not is_whole(one):
        raise ValueError("cannot convert value to integer")
    quantity = one.quantity
    return whole(quantity.unscaled * 10**quantity.exponent)


def as_double(one: Amount) -> float:
    """Return it as a double, infinite where it is too large for one."""
    # Python rounds the text once. A product with a power of ten would be rounded twice.
    return float(f"{one.quantity.unscaled}e{one.quantity.exponent}")


@total_ordering
class Version:
    """A semantic version in an expression; a pre-release comes before its release."""

    __slots__ = ("_key", "numbers")

    def __init__(self, text: str) -> None:
        match = _VERSION.fullmatch(text) if len(text) <= _LONGEST else None
        early = match[4] if match else None
        if match is None or any(int(match[part]) >= 2**64 for part in (1, 2, 3)) or _is_padded(early):
            raise VersionError(f"{text[:80]!r} is not a semantic version")
        # Numbers before words, and numbers by value (semver.org, rule 11).
        marks = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in early.split(".")] if early else []
        self.numbers = (int(match[1]), int(match[2]), int(match[3]))
        self._key = (self.numbers, not early, marks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key == other._key

    def __lt__(self, other: Version) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self.numbers)


def part(one: Version, place: int) -> int:
    """Return a number of a version, as Go's conversion to a signed one has it."""
    number = one.numbers[place]
    return number - 2**64 if number >= 2**63 else number


def sign(one: Amount) -> int:
    """Return -1, 0 or 1."""
    return one.quantity.sign()


def _is_padded(early: str | None) -> bool:
    """Return whether a number of a pre-release begins with a zero."""
    return any(len(part) > 1 and part.isdigit() and part[0] == "0" for part in (early or "").split("."))


def version(text: str, normalize: bool = False) -> Version:
    """Read a version. `normalize`: `v1.02` is read as 1.2.0. Raises VersionError."""
    return Version(_normalized(text) if normalize else text)


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        # Kubernetes' normalizeAndParse (`pkg/cel/library/semverlib.go`): all zeros go, and one comes back where no
        # digit is left.
        if len(part) > 1:
            cut = part.lstrip("0")
            parts[place] = cut if cut[:1].isdigit() else f"0{cut}"
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise VersionError("a short version cannot have a pre-release or build")
    return ".".join([*parts, *["0"] * (3 - len(parts))])
