# SPDX-License-Identifier: Apache-2.0
"""The cost of evaluating an expression, counted before each step, so that no expression blocks the event loop.

A step is an eighth of a microsecond or so. What grows with the expression alone is bounded by its length; counted is
what grows with the values: each time round a macro, what an operation looks at in lists, maps and texts, and what it
makes of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.core.kube.cel.reading import ExpressionError, is_collection, is_list, is_map
from pumice.core.kube.patterns import PatternError, pattern_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Sized


SPEND: Final = ""
"""Under this name, which no expression can say, may stand a counter that is called for each step, and may stop it."""
MOST: Final = 100_000
"""Steps of one expression, where no limit is given."""
_LETTERS: Final = 32
"""Length of a text that is a step; a value of a list or map is one too."""
_WORK_OF_PATTERN: Final = 25
_BAD_PATTERN: Final = 20_000
"""A pattern costs a step for each of its instructions, to read it, and one for so many instructions times letters, to
search with it; so many to find that it is none.
"""
_PATTERNED: Final = frozenset({"matches", "find", "findAll"})
_COMPARING: Final = frozenset({"indexOf", "lastIndexOf", "format"})
_ORDERING: Final = frozenset({"==", "!=", "in", "min", "max", "sum", "isSorted", "flatten"})
_OF_COMPARING: Final = 4
_OF_READING: Final = 40
_READING: Final = frozenset({
    "timestamp", "duration", "quantity", "isQuantity", "semver", "isSemver", "url", "isURL", "ip", "isIP",
    "ip.isCanonical", "cidr", "isCIDR", "containsIP", "containsCIDR", "masked", "validate", "string", "double",
    "strings.quote", "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear",
    "getHours", "getMinutes", "getSeconds", "getMilliseconds", "getQuery", "getEscapedPath",
})  # fmt: skip
"""Functions that read or write a text letter by letter."""
_AT_ONCE: Final = frozenset({
    "size", "dyn", "type", "has", "hasValue", "or", "orValue", "value", "optional.of",
    "optional.ofNonZeroValue", "first", "last", "index", "minus", "not",
})  # fmt: skip
"""Operations that take as long over much as over little."""


_OF_NUMBERS: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"})
_NUMBERS: Final = frozenset({int, float, bool, type(None)})


class StepsLeft:
    """Counts steps down. Raises ExpressionError at the end."""

    def __init__(self, left: int = MOST) -> None:
        self.left = left

    def __call__(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise ExpressionError("the expression looks at too many values")


def pay_round(size: int, names: Mapping[str, Any]) -> None:
    """Pay for an operation on each value of a list or map. Raises what stops it."""
    spend = names.get(SPEND)
    if spend is not None:
        spend(2 + 2 * size)


def pay(operation: str, values: Sequence[Any], names: Mapping[str, Any]) -> None:
    """Pay for an operation on values. Raises what stops it."""
    spend = names.get(SPEND)
    if spend is None or operation in _AT_ONCE:
        return
    if operation in _OF_NUMBERS and values[0].__class__ in _NUMBERS:  # most operations, and they cost their round alone
        return
    if operation in _PATTERNED:
        _pay_pattern(operation, values, spend)
    elif operation in _READING:
        spend(_OF_READING + sum(len(each) for each in values if isinstance(each, str | bytes)))
    elif operation in _PAIRED:
        _pay_pairs(operation, values, spend)
    elif operation == "lists.range" and values and isinstance(values[0], int):
        spend(max(values[0], 0))
    elif operation in ("split", "format") and isinstance(values[0], str):
        spend(len(values[0]))
    for value in values:
        # A look-up takes as long in a large map as in a small one.
        if not (operation == "in" and is_map(value)):
            _pay_value(value, spend, _times(operation, value))


def _times(operation: str, value: object) -> int:
    """Return how many steps each value of a list costs: Python compares most texts and whole numbers itself."""
    if operation in _COMPARING or (operation in _ORDERING and is_list(value) and value and _is_slow(value[0])):
        return _OF_COMPARING
    return 1


def _is_slow(value: object) -> bool:
    return isinstance(value, float | list | dict)


def pay_result(value: Sized, names: Mapping[str, Any]) -> None:
    """Pay for a text or list that an operation has made. Raises what stops it."""
    spend = names.get(SPEND)
    if spend is not None:
        spend(len(value) // _LETTERS)


def _pay_value(value: object, spend: Callable[[int], None], times: int = 1) -> None:
    """Pay for looking at all parts of a value, and at a shared part each time that it occurs."""
    if isinstance(value, str | bytes):
        spend(len(value) // _LETTERS)
    elif is_collection(value):
        inside: Iterable[Any] = value.values() if is_map(value) else value
        spend(1 + times * len(value))
        for each in inside:
            # Short texts and numbers are in the sum above: only long texts and collections cost a call.
            if is_collection(each) or (isinstance(each, str) and len(each) >= _LETTERS):
                _pay_value(each, spend, times)


class _Measure:
    """Counts the steps of looking at a value."""

    def __init__(self, spend: Callable[[int], None]) -> None:
        self._spend, self.steps = spend, 0

    def __call__(self, steps: int) -> None:
        self._spend(steps)
        self.steps += steps


_PAIRED: Final = frozenset({"distinct", "sort", "sortBy", "sets.contains", "sets.equivalent", "sets.intersects"})


def _pay_pairs(operation: str, values: Sequence[Any], spend: Callable[[int], None]) -> None:
    """Pay for comparing elements with one another."""
    sizes: list[int] = []
    for value in values:
        measure = _Measure(spend)
        _pay_value(value, measure)
        sizes.append(measure.steps)
    most = max(sizes, default=0)
    if operation.startswith("sort"):
        spend(_OF_COMPARING * most * most.bit_length())
    else:
        spend(_OF_COMPARING * most * (sizes[1] if len(sizes) > 1 else most))


def _pay_pattern(operation: str, values: Sequence[Any], spend: Callable[[int], None]) -> None:
    text, pattern = (*values, None, None)[:2]
    if not isinstance(text, str) or not isinstance(pattern, str):
        return
    try:
        steps = pattern_of(pattern).steps
    except PatternError:
        spend(_BAD_PATTERN)
        raise
    # A match may end at every letter, and each search looks at what is left: half the text on average.
    searches = 1 + len(text) // 2 if operation == "findAll" else 1
    spend(steps + steps * len(text) * searches // _WORK_OF_PATTERN)
