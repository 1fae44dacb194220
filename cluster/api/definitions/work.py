# SPDX-License-Identifier: Apache-2.0
"""Limit on the work that a definition's schema may cause for one object: a short schema and a short object can be
costly.
"""

from __future__ import annotations

from typing import Any, Final

from pumice.config.errors import RequestError
from pumice.core.objects.metadata import COMPOUND

STEPS: Final = 40_000
EACH: Final = 3
"""An object has so many steps, and so many for each of its values: looks at a schema, at a value, at a default."""

_SIZED: Final = COMPOUND | {str}


class TooDearError(RequestError):
    """The schema asks for more work than an object may cause."""

    code = 422
    reason = "Invalid"


class Work:
    """Remaining steps for one object."""

    __slots__ = ("left",)

    def __init__(self, obj: object) -> None:
        self.left = STEPS + EACH * size_of(obj)

    def spend(self, steps: int) -> None:
        """Spend steps. Raises TooDearError when too few are left."""
        self.left -= steps
        if self.left < 0:
            raise TooDearError("its definition's schema asks for too much work: give it less to compare, or less data")


def size_of(value: object) -> int:
    """Return the steps of copying or writing a value: one for each value in it, one for 64 letters."""
    total, waiting = 1, [value]
    while waiting:
        each: Any = waiting.pop()
        if each.__class__ is str:
            total += len(each) // 64
        elif each.__class__ in COMPOUND:
            total += len(each)
            inside = each.values() if each.__class__ is dict else each
            waiting += [inner for inner in inside if inner and inner.__class__ in _SIZED]
    return total
