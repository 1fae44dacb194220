# SPDX-License-Identifier: Apache-2.0
"""Values of CEL that JSON does not have, equality of values, and their order."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pumice.core.kube.cel.network import IpAddress, IpNetwork, Url
from pumice.core.kube.cel.numbers import NumberError, Uint
from pumice.core.kube.cel.quantities import Amount, Domains, Version
from pumice.core.kube.cel.reading import ExpressionError, is_list, is_map, shown
from pumice.core.kube.cel.times import Duration, Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type, as `type(x)` and the name `string` have it."""

    name: str


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """An optional value."""

    value: Any = None
    there: bool = True


NONE: Final = OptionalValue(there=False)


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """One of Kubernetes' formats of strings. `problems` returns what is wrong with a text."""

    name: str
    problems: Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Authority:
    """`authorizer`, and the steps of a check. `asked`: what the steps have said, by part of a request; `request`: the
    parts of the present one; `judge`: says whether such parts are allowed, and why; without one all are.
    """

    step: str
    asked: Mapping[str, str] = field(default_factory=dict[str, str])
    request: Mapping[str, str] = field(default_factory=dict[str, str])
    judge: Callable[[Mapping[str, str]], tuple[bool, str]] | None = None

    def then(self, step: str, asked: Mapping[str, str]) -> Authority:
        """Return the next step of a check."""
        return replace(self, step=step, asked={**self.asked, **asked})

    def decision(self) -> tuple[bool, str]:
        """Return whether it is allowed, and why."""
        return (True, "") if self.judge is None else self.judge(self.asked)


class ListSet(list[Any]):
    """A list of a definition with `x-kubernetes-list-type: set`: the order of its elements means nothing."""


class ListMap(list[Any]):
    """A list with `x-kubernetes-list-type: map`: its elements are known by their keys."""

    keys: tuple[str, ...] = ()

    def key_of(self, element: object) -> tuple[Any, ...]:
        """Return what an element is known by."""
        # By repr, since keys may be of any type, and 1, True and "1" are different keys.
        return tuple(repr(element.get(key)) for key in self.keys) if is_map(element) else (repr(element),)


KINDS: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    ListSet: "list",
    ListMap: "list",
    dict: "map",
    Domains: "map",
    Duration: "duration",
    Timestamp: "timestamp",
    TypeValue: "type",
    OptionalValue: "optional_type",
    Amount: "kubernetes.Quantity",
    Version: "kubernetes.Semver",
    Url: "kubernetes.URL",
    IpAddress: "net.IP",
    IpNetwork: "net.CIDR",
    NamedFormat: "kubernetes.NamedFormat",
}
"""The CEL type of each Python class."""
_FULL_NAMES: Final = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
TYPE_NAMES: Final = {
    **{name: name for name in ("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint")},
    **{name: name for name in KINDS.values() if "." in name},
    **{full: full for full in _FULL_NAMES.values()},
}
"""Names in an expression that stand for a type."""


def kind_of(value: object) -> str:
    """Return the CEL type of a value."""
    if isinstance(value, Authority):
        return f"kubernetes.authorization.{value.step}"
    # The class itself is found at once; the search below is for subclasses.
    kind = KINDS.get(value.__class__)
    if kind is None:
        kind = next((kind for each, kind in KINDS.items() if isinstance(value, each)), "dyn")
    return kind


def type_of(value: object) -> TypeValue:
    """Return the type as `type(value)` has it."""
    return named_type(kind_of(value))


@cache
def named_type(kind: str) -> TypeValue:
    """Return a type by its name."""
    return TypeValue(_FULL_NAMES.get(kind, kind))


_NUMBERS: Final = frozenset({int, Uint, float})
_PLAIN: Final = frozenset({str, bool, bytes, type(None)})
QUICK: Final = frozenset({str, int, Uint, bool})
"""Classes whose values, among themselves, are compared by Python as CEL does."""


def equal(left: object, right: object) -> bool:
    """Return whether two values are equal: numbers of different types may be, other values may not."""
    one, other = left.__class__, right.__class__
    if one in _NUMBERS:
        return other in _NUMBERS and compare_numbers(left, right) == 0
    if one in _PLAIN or other in _PLAIN:
        return one is other and left == right
    if isinstance(left, OptionalValue) and isinstance(right, OptionalValue):
        return left.there == right.there and (not left.there or equal(left.value, right.value))
    if is_list(left) and is_list(right):
        return _equal_lists(left, right)
    if is_map(left) and is_map(right):
        return _equal_maps(left, right)
    # Times, amounts and types of libraries: those of one class are compared by their own rule.
    return left is right or (one is other and bool(left == right))


def one_class(values: list[Any]) -> type | None:
    """Return the class of all values of a list, None where they are of several: Python compares those faster."""
    classes = set(map(type, values))
    return classes.pop() if len(classes) == 1 else None


def unequal(left: object, right: object) -> bool:
    """Return whether two values are not equal."""
    return not equal(left, right)


def _equal_lists(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    if left.__class__ is list and left != right:  # which Python sees sooner: it takes more values for equal
        return False
    if one_class(left) in QUICK and one_class(right) is one_class(left) and left.__class__ is list:
        return True
    if isinstance(left, ListSet) or isinstance(right, ListSet):
        # Both have as many elements and a set repeats none, so one direction suffices.
        return all(contains(right, each) for each in left)
    if isinstance(left, ListMap) and isinstance(right, ListMap):
        known = {left.key_of(each): each for each in left}
        return all((key := left.key_of(each)) in known and equal(known[key], each) for each in right)
    return all(map(equal, left, right))


def _equal_maps(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    return len(left) == len(right) and all(has_key(right, key) and equal(left[key], right[key]) for key in left)


def contains(values: list[Any], wanted: object) -> bool:
    """Return whether one of the values is equal to it."""
    if wanted.__class__ in QUICK:  # Python looks faster, and takes more values for equal
        try:
            found = values.index(wanted)
        except ValueError:
            return False
        if equal(values[found], wanted):
            return True
    return any(equal(each, wanted) for each in values)


def has_key(owner: dict[Any, Any], key: object) -> bool:
    """Return whether a map has a key. Python takes True for 1, CEL does not."""
    try:
        if key not in owner:
            return False
    except TypeError:
        return False
    return key.__class__ is str or (key.__class__ is bool) == (next(iter(owner)).__class__ is bool)


def compare_numbers(left: Any, right: Any) -> int | None:
    """Return -1, 0 or 1; None where one value is not a number. An int beside a double counts as a double, as in Go."""
    if left.__class__ is float or right.__class__ is float:
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            return None
    return int(left > right) - int(left < right)


_ORDERED: Final = (str, bool, bytes, Duration, Timestamp)


def compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1. Raises TypeError for values without an order, and NumberError for NaN."""
    one, other = left.__class__, right.__class__
    if one in _NUMBERS and other in _NUMBERS:
        found = compare_numbers(left, right)
        if found is None:
            # A sort with NaN would depend on which pairs it happens to compare, so it fails.
            raise NumberError("NaN values cannot be ordered")
        return found
    if one is other and one in _ORDERED:
        return int(left > right) - int(left < right)
    raise TypeError


def truth(value: object) -> bool:
    """Return a value as the answer to a question. Raises ExpressionError."""
    if not isinstance(value, bool):
        raise ExpressionError(f"{shown(value)} is neither true nor false")
    return value


def is_zero(value: object) -> bool:
    """Return whether a value is the zero of its type: empty, 0, false or null."""
    if isinstance(value, OptionalValue):
        return not value.there or is_zero(value.value)
    if isinstance(value, Duration):
        return value.nanoseconds == 0
    return value is None or (isinstance(value, bool | int | float | str | bytes | list | dict) and not value)
