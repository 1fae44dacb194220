"""What a device selector's tree comes to for one device."""

from __future__ import annotations

import operator
import re
from functools import total_ordering
from typing import TYPE_CHECKING, Any, Final

from core.errors import QuantityError
from core.kube.cel import ExpressionError, read_expression
from core.kube.patterns import PatternError, pattern_of
from core.quantity import quantity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from core.kube.cel import CelNode
    from core.quantity import Quantity

_LONGEST_VERSION: Final = 256
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
            raise ExpressionError(f"{text!r} is no semantic version")
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


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {"quantity": _amount, "semver": Version, "size": len}
_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": operator.contains,
    "matches": _matches,
    "lowerAscii": str.lower,
    "size": len,
    "compareTo": _compare,
    "isGreaterThan": operator.gt,
    "isLessThan": operator.lt,
}
_OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "in": _is_in,
}


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ExpressionError(f"{value!r} is neither true nor false")
    return value


def _same(left: object, right: object) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _decided(tree: CelNode, names: Mapping[str, Any], decisive: bool) -> bool:
    """&& and ||: one decisive side decides, whatever is wrong with the other."""
    errors: list[ExpressionError] = []
    for part in tree.parts:
        try:
            if _truth(evaluate(part, names)) is decisive:
                return decisive
        except ExpressionError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return not decisive


def _member(owner: Any, key: Any) -> Any:
    try:
        if not isinstance(owner, str) and not (isinstance(key, int) and key < 0):
            return owner[key]
    except (KeyError, IndexError, TypeError):
        pass
    raise ExpressionError(f"no such key: {key}")


def _has(tree: CelNode, names: Mapping[str, Any]) -> bool:
    owner = evaluate(tree.parts[0], names)
    return not isinstance(owner, str) and tree.value in owner


def _call(tree: CelNode, names: Mapping[str, Any]) -> Any:
    name, function = str(tree.value), tree.parts[0].value == "" and tree.parts[0].kind == "name"
    if function and name == "has":
        return _has(tree.parts[1], names)
    known = _FUNCTIONS.get(name) if function else _METHODS.get(name)
    if known is None:
        raise ExpressionError(f"unknown function {name!r}")
    return known(*(evaluate(part, names) for part in (tree.parts[1:] if function else tree.parts)))


def _operate(tree: CelNode, names: Mapping[str, Any]) -> Any:
    left, right = (evaluate(part, names) for part in tree.parts)
    if tree.kind == "==":
        return _same(left, right)
    if tree.kind == "!=":
        return not _same(left, right)
    if tree.kind == "index":
        return _member(left, right)
    return _OPERATIONS[tree.kind](left, right)


def evaluate(tree: CelNode, names: Mapping[str, Any]) -> Any:
    """The value of a tree, with these names known. Raises ExpressionError."""
    match tree.kind:
        case "literal":
            return tree.value
        case "name":
            return _member(dict(names), tree.value)
        case "list":
            return [evaluate(part, names) for part in tree.parts]
        case "member":
            return _member(evaluate(tree.parts[0], names), tree.value)
        case "not":
            return not _truth(evaluate(tree.parts[0], names))
        case "&&" | "||":
            return _decided(tree, names, tree.kind == "||")
        case "choice":
            return evaluate(tree.parts[1 if _truth(evaluate(tree.parts[0], names)) else 2], names)
        case _:
            try:
                if tree.kind == "minus":
                    return -evaluate(tree.parts[0], names)
                return _call(tree, names) if tree.kind == "call" else _operate(tree, names)
            except TypeError as error:
                raise ExpressionError(f"no such overload: {tree.value or tree.kind}") from error
            except (PatternError, QuantityError, ValueError) as error:
                raise ExpressionError(f"{tree.value or tree.kind}: {error}") from error


def is_true(expression: str, device: Mapping[str, Any]) -> bool:
    """Whether a selector takes a device ({"driver", "attributes", "capacity"}). Raises ExpressionError."""
    return _truth(evaluate(read_expression(expression), {"device": device}))
