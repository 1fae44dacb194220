"""Cached values: made when they are first asked for, and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

if TYPE_CHECKING:
    cached = property
else:

    class cached:  # noqa: N801 - a decorator
        """`functools.cached_property` without the lock that it takes in Python 3.11: of what a session makes once, that
        is mostly more than the making. For type checkers it is a property, which is all that a protocol can ask for.
        """

        def __init__(self, make: Callable[[Any], Any]) -> None:
            self._make, self._name, self.__doc__ = make, make.__name__, make.__doc__

        def __get__(self, holder: Any, owner: type) -> Any:
            if holder is None:
                return self
            made = holder.__dict__[self._name] = self._make(holder)
            return made
