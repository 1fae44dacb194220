# SPDX-License-Identifier: Apache-2.0
"""YAML scalars as ``gopkg.in/yaml.v2`` reads them, with which Volcano reads its configuration and kubectl manifests.

It is YAML 1.1 with its own choices: ``y`` and ``off`` are booleans, ``1:30`` is a text, ``010`` is 8, ``08`` is 8.0.
Timestamps stay texts here. Source: ``resolve.go`` of yaml.v2 2.4.
"""

from __future__ import annotations

import base64
import binascii
import re
from decimal import Decimal
from functools import lru_cache
from math import inf, isfinite, isinf, nan
from typing import Final

Scalar = None | bool | int | float | str

_TAG_PREFIX = "tag:yaml.org,2002:"


def _spellings(*words: str) -> tuple[str, ...]:
    return tuple(spelling for word in words for spelling in (word, word.capitalize(), word.upper()))


NAMED: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("y", "Y", *_spellings("yes", "true", "on")), True),
    **dict.fromkeys(("n", "N", *_spellings("no", "false", "off")), False),
    **dict.fromkeys(("", "~", *_spellings("null")), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), nan),
    **{f"{sign}.{word}": inf for sign in ("", "+") for word in _spellings("inf")},
    **{f"-.{word}": -inf for word in _spellings("inf")},
}
"""Plain scalars that are looked up, not parsed."""

_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])_(?=[0-9])", re.ASCII)
_BASES = (16, 2, 8, 10)
_LONGEST_INTEGER = 100
"""Letters. 64 bits in binary have 67; Python refuses to read thousands of digits."""


def resolve_plain(text: str) -> Scalar:
    """Return the value of a plain (unquoted, untagged) scalar."""
    if text in NAMED:
        return NAMED[text]
    first = text[:1]
    # Here yaml.v2 leaves underscores to Go's ParseFloat, which takes them between digits only; below it drops them all.
    if first == ".":
        value = _float(_BETWEEN_DIGITS.sub("", text))
        return value if isinstance(value, float) else text
    # yaml.v2 decides by the first letter whether it can be a number at all (`resolve.go`, resolveTable).
    if first not in "+-0123456789":
        return text
    plain = text.replace("_", "")
    number = _integer(plain)
    if number is not None:
        return number
    value = _float(plain)
    return value if isinstance(value, float) else text


def resolve_true_false(text: str) -> Scalar:
    """Return the value of a plain scalar where ``n`` and ``off`` are names: ``true`` and ``false`` are the booleans."""
    value = resolve_plain(text)
    return text if isinstance(value, bool) and text.lower() not in ("true", "false") else value


@lru_cache(maxsize=65_536)
def resolve_for_api(text: str) -> Scalar:
    """Return what reaches the API of a plain scalar. Raises ValueError for infinities and NaN.

    kubectl turns YAML into JSON first. JSON has one sort of number, so ``1e3``, ``1.0`` and ``08`` arrive as integers,
    and whole numbers beyond 64 bits with a sign as floating-point numbers (sigs.k8s.io/yaml, apimachinery's json).
    """
    return as_json_number(resolve_plain(text))


def as_json_number(value: Scalar) -> Scalar:
    """Return the value as a reader of its JSON form sees it. Raises ValueError where JSON has no form for it."""
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError(f"JSON has no number {value}")
        whole = int(Decimal(repr(value))) if value.is_integer() else None  # the digits that Go prints
        return whole if whole is not None and -(2**63) <= whole < 2**63 else value
    if type(value) is int and not -(2**63) <= value < 2**63:
        return float(value)
    return value


def key_text(value: Scalar) -> str:
    """Return a mapping's key as JSON's text. Raises ValueError for a null, which kubectl refuses as well."""
    match value:
        case None:
            raise ValueError("a null is not a key")
        case bool():
            return "true" if value else "false"
        case float():
            return _shortest(value) if isfinite(value) else {inf: ".inf", -inf: "-.inf"}.get(value, ".nan")
        case _:
            return str(value)


def _shortest(value: float) -> str:
    """Return Go's ``FormatFloat(value, 'g', -1, 64)``: it takes to exponents from a million on."""
    exponent = Decimal(repr(value)).adjusted() if value else 0
    if -4 <= exponent < 6:
        return repr(value).removesuffix(".0")
    sign, digits, _ = Decimal(repr(value)).normalize().as_tuple()
    rest = "".join(map(str, digits[1:]))
    return f"{'-' * sign}{digits[0]}{f'.{rest}' if rest else ''}e{exponent:+03d}"


def resolve_tagged(tag: str, text: str) -> Scalar:
    """Return the value of a scalar with an explicit tag. Raises ValueError when the text does not match the tag."""
    kind = tag.removeprefix(_TAG_PREFIX)
    if kind not in ("null", "bool", "int", "float"):
        return text
    value = resolve_plain(text)
    # `!!float 1` is 1.0: an integer is the only other type that a tag may change.
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    kinds: dict[str, type | tuple[type, ...]] = {"null": type(None), "bool": bool, "int": int, "float": float}
    if not isinstance(value, kinds[kind]) or (kind == "int" and isinstance(value, bool)):
        raise ValueError(f"{text!r} is not a {kind}")
    return value


def resolve_tagged_for_api(tag: str, text: str) -> Scalar:
    """Return what reaches the API of a scalar with an explicit tag. Raises ValueError as the two above do."""
    if tag == _TAG_PREFIX + "binary":
        try:
            return base64.b64decode(text, validate=True).decode("utf-8", "replace")
        except binascii.Error as error:
            raise ValueError("!!binary: not valid base64") from error
    return as_json_number(resolve_tagged(tag, text))


def _integer(plain: str) -> int | None:
    match = _INTEGER.fullmatch(plain)
    if match is None or len(plain) > _LONGEST_INTEGER:
        return None
    sign, *digits = match.groups()
    number = next(int(text, base) for text, base in zip(digits, _BASES, strict=True) if text is not None)
    if sign == "-":
        number = -number
    # an unsigned 64-bit number may not carry a sign
    top = 2**63 if sign else 2**64
    return number if -(2**63) <= number < top else None


def _float(text: str) -> float | str:
    if _FLOAT.fullmatch(text) is None:
        return text
    value = float(text)
    # Go's ParseFloat calls this out of range, so yaml.v2 keeps the text.
    return text if isinf(value) else value
