# SPDX-License-Identifier: Apache-2.0
"""Handles: numbers that stand in messages for objects that a message cannot carry."""

from __future__ import annotations

from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


class HandleTable(Generic[T]):
    """Objects of one type (snapshots, sessions) by handle: messages carry only the handle."""

    def __init__(self, kind: type[T]) -> None:
        self.kind = kind
        self._things: dict[int, T] = {}
        self._numbers = count(1)

    def put(self, thing: T) -> int:
        """Keep an object, and return its handle."""
        number = next(self._numbers)
        self._things[number] = thing
        return number

    def get(self, number: int) -> T:
        """Return the object without removing it. Raises KeyError when it was never put there, or was taken."""
        return self._things[number]

    def take(self, number: int) -> T:
        """Take it away."""
        return self._things.pop(number)

    def drop(self, number: int) -> None:
        """Drop the object, if it exists."""
        self._things.pop(number, None)

    def __contains__(self, number: int) -> bool:
        return number in self._things

    def __len__(self) -> int:
        return len(self._things)
