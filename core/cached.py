# SPDX-License-Identifier: Apache-2.0
"""Values that are computed on first access and then cached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

if TYPE_CHECKING:
    cached = property
else:

    class cached:  # noqa: N801 - a decorator
        """`functools.cached_property` without the lock of Python 3.11, which costs more than most of a session's
        values. To type checkers it is a property, the most that a protocol can ask for.
        """

        def __init__(self, make: Callable[[Any], Any]) -> None:
            self._make, self._name, self.__doc__ = make, make.__name__, make.__doc__

        def __get__(self, holder: object, owner: type) -> Any:
            if holder is None:
                return self
            made = holder.__dict__[self._name] = self._make(holder)
            return made
