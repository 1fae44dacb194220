"""Optional values of CEL: what stands behind `.?` and `[?…]` may be absent, and so may all that is looked up in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from core.kube.cel.reading import ExpressionError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """A value that is there, or none."""

    value: Any = None
    there: bool = True


NONE: Final = OptionalValue(there=False)


def looked_up(owner: Any, key: Any, look_up: Callable[[Any, Any], Any]) -> OptionalValue:
    """A key of what may be absent."""
    if isinstance(owner, OptionalValue):
        if not owner.there:
            return NONE
        owner = owner.value
    try:
        return OptionalValue(look_up(owner, key))
    except ExpressionError:
        return NONE


def _of(owner: object) -> OptionalValue:
    if not isinstance(owner, OptionalValue):
        raise TypeError
    return owner


def _value(owner: object) -> Any:
    found = _of(owner)
    if not found.there:
        raise ExpressionError("optional.none() dereference")
    return found.value


def _or_value(owner: object, otherwise: Any) -> Any:
    found = _of(owner)
    return found.value if found.there else otherwise


def _or(owner: object, otherwise: object) -> OptionalValue:
    found = _of(owner)
    return found if found.there else _of(otherwise)


def _has_value(owner: object) -> bool:
    return _of(owner).there


OF_OPTIONALS: Final[dict[str, Callable[..., Any]]] = {
    "hasValue": _has_value,
    "or": _or,
    "orValue": _or_value,
    "value": _value,
}
