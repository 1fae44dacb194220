"""What working out an expression costs, counted before it is done: whoever sends one may not hold up everybody else.

A step is an eighth of a microsecond or so. What grows with the expression alone is bounded by its length; counted is
what grows with the values: each time round a macro, and what an operation looks at in lists, maps and texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from core.kube.cel.reading import ExpressionError
from core.kube.patterns import PatternError, pattern_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Sized

SPEND: Final = ""
"""Under this name, which no expression can say, may stand who is told of the steps, and may stop it."""
MOST: Final = 100_000
"""Steps of one expression, where nobody says how many."""
_LETTERS: Final = 32
"""So much of a text is a step; so is a value of a list or map."""
_WORK_OF_PATTERN: Final = 25
_BAD_PATTERN: Final = 20_000
"""A pattern costs a step for each of its instructions, to read it, and one for so many instructions times letters, to
search with it; so many to find that it is none.
"""
_AT_ONCE: Final = frozenset({"size", "dyn", "has", "hasValue", "or", "orValue", "value", "index"})
"""Operations that take as long over much as over little."""


class StepsLeft:
    """Counts down. Raises ExpressionError at the end."""

    def __init__(self, left: int = MOST) -> None:
        self.left = left

    def __call__(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise ExpressionError("the expression looks at too many values")


def pay_round(size: int, names: Mapping[str, Any]) -> None:
    """For asking something of so many operations of one value of a list or map. Raises what stops it."""
    spend = names.get(SPEND)
    if spend is not None:
        spend(2 + 2 * size)


def pay(operation: str, values: Sequence[Any], names: Mapping[str, Any]) -> None:
    """For an operation on values. Raises what stops it."""
    spend = names.get(SPEND)
    if spend is None or operation in _AT_ONCE:
        return
    if operation == "matches":
        _pay_pattern(values, spend)
    for value in values:
        if not (operation == "in" and isinstance(value, dict)):
            _pay_value(value, spend)


def _pay_value(value: Any, spend: Callable[[int], None]) -> None:
    """For looking at all that is in a value, again wherever it is in it again."""
    if isinstance(value, str):
        spend(len(value) // _LETTERS)
    elif isinstance(value, list | dict):
        inside: Iterable[Any] = cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)
        spend(1 + len(cast("Sized", value)))
        for each in inside:
            if isinstance(each, list | dict) or (isinstance(each, str) and len(each) >= _LETTERS):
                _pay_value(each, spend)


def _pay_pattern(values: Sequence[Any], spend: Callable[[int], None]) -> None:
    text, pattern = (*values, None, None)[:2]
    if not isinstance(text, str) or not isinstance(pattern, str):
        return
    try:
        steps = pattern_of(pattern).steps
    except PatternError:
        spend(_BAD_PATTERN)
        raise
    spend(steps + steps * len(text) // _WORK_OF_PATTERN)
