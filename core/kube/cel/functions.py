"""What expressions may call and reckon with: quantities, versions, texts, lists and numbers as CEL has them."""

from __future__ import annotations

import itertools
import operator
import re
from functools import total_ordering
from typing import TYPE_CHECKING, Any, Final

from core.errors import QuantityError
from core.kube.cel.optionals import OF_OPTIONALS
from core.kube.cel.reading import ExpressionError, shown
from core.kube.patterns import pattern_of
from core.quantity import quantity_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.quantity import Quantity

_LONGEST_VERSION: Final = 256
_LONGEST_VALUE: Final = 1 << 20
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


@total_ordering
class Amount:
    """A quantity in an expression."""

    def __init__(self, quantity: Quantity) -> None:
        self.quantity = quantity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amount) and self.quantity.compare(other.quantity) == 0

    def __lt__(self, other: Amount) -> bool:
        return self.quantity.compare(other.quantity) < 0

    def __hash__(self) -> int:
        return hash(self.quantity.value())


@total_ordering
class Version:
    """A semantic version in an expression; a pre-release comes before its release."""

    def __init__(self, text: str) -> None:
        match = _VERSION.fullmatch(text) if len(text) <= _LONGEST_VERSION else None
        if match is None:
            raise ExpressionError(f"{shown(text)} is no semantic version")
        early = match[4]
        marks = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in early.split(".")] if early else []
        self._key = (int(match[1]), int(match[2]), int(match[3]), not early, marks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key == other._key

    def __lt__(self, other: Version) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key[:3])


class Domains(dict[str, dict[str, Any]]):
    """Attributes or capacities by domain: an unknown domain is an empty one."""

    def __missing__(self, key: str) -> dict[str, Any]:
        return {}


def _amount(text: object) -> Amount:
    try:
        return Amount(quantity_of(text))
    except QuantityError as error:
        raise ExpressionError(str(error)) from error


def _matches(text: str, pattern: str) -> bool:
    return pattern_of(pattern).is_in(text)


def _compare(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def _is_in(one: Any, several: Any) -> bool:
    return one in several


def _numbers(left: Any, right: Any) -> bool:
    """Whether both are whole numbers; raises TypeError when they are not two numbers of one sort."""
    if type(left) is not type(right) or type(left) not in (int, float):
        raise TypeError
    return isinstance(left, int)


def _whole(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise ExpressionError("integer overflow")
    return number


def _bounded(length: int) -> None:
    if length > _LONGEST_VALUE:
        raise ExpressionError("a value of the expression gets too long")


def _plus(left: Any, right: Any) -> Any:
    if type(left) in (str, list) and type(left) is type(right):
        _bounded(len(left) + len(right))
    return left + right


def _replaced(text: str, old: str, new: str) -> str:
    _bounded(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _minus(left: Any, right: Any) -> Any:
    return _whole(left - right) if _numbers(left, right) else left - right


def _product(left: Any, right: Any) -> Any:
    return _whole(left * right) if _numbers(left, right) else left * right


def _quotient(left: Any, right: Any) -> Any:
    """Towards zero, as Go divides."""
    if not _numbers(left, right):
        return left / right if right else float("nan") if not left else left * float("inf")
    if not right:
        raise ExpressionError("divide by zero")
    return _whole(int(abs(left) // abs(right)) * (1 if (left < 0) == (right < 0) else -1))


def _rest(left: Any, right: Any) -> int:
    """With the sign of what is divided."""
    if not _numbers(left, right):
        raise TypeError
    if not right:
        raise ExpressionError("modulus by zero")
    rest: int = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _int(value: Any) -> int:
    return _whole(int(value))


def _dyn(value: Any) -> Any:
    return value


def _string(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _joined(parts: list[str], between: str = "") -> str:
    _bounded(len(between) * len(parts) + sum(map(len, parts)))
    return between.join(parts)


def _ordered(values: list[Any]) -> bool:
    return all(one <= other for one, other in itertools.pairwise(values))


def _piece(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise ExpressionError(f"index out of range: {start}")
    return text[start:end]


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "quantity": _amount,
    "semver": Version,
    "size": len,
    "int": _int,
    "double": float,
    "string": _string,
    "dyn": _dyn,
}
METHODS: Final[dict[str, Callable[..., Any]]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": operator.contains,
    "matches": _matches,
    "lowerAscii": str.lower,
    "upperAscii": str.upper,
    "trim": str.strip,
    "split": str.split,
    "replace": _replaced,
    "indexOf": str.find,
    "lastIndexOf": str.rfind,
    "substring": _piece,
    "join": _joined,
    "isSorted": _ordered,
    "sum": sum,
    "min": min,
    "max": max,
    "size": len,
    "compareTo": _compare,
    "isGreaterThan": operator.gt,
    "isLessThan": operator.lt,
    **OF_OPTIONALS,
}
OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": _plus,
    "-": _minus,
    "*": _product,
    "/": _quotient,
    "%": _rest,
    "in": _is_in,
}
