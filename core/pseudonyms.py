# SPDX-License-Identifier: Apache-2.0
"""Names that stand for others in the same order, assigned in order of arrival.

Each is a row of numbers that lies between those of its neighbours. A name that comes after the newest takes the next
number, so names that come in order stay short; where no number is left, the row grows.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Final

Place = tuple[int, ...]

MOST: Final = 1 << 31
MIDDLE: Final = MOST >> 1
DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
WIDTH: Final = 6
"""Digits of a number: 36**6 is a little more than MOST."""
KEPT: Final = (
    "default", "kube-node-lease", "kube-public", "kube-system", "root", "system-cluster-critical",
    "system-node-critical", "volcano-system",
)  # fmt: skip
"""Names that mean something to schedulers, in order."""
BETWEEN: Final = ("a", "e", "kube-o", "kube-r", "l", "s", "system-d", "t", "w")
"""What names begin with that come before the first of them, between the first and the second, and so on."""


def between(before: Place, after: Place | None, step: int) -> Place:
    """Return a place after `before` (() for the beginning) and before `after` (None: the end), `step` (1 at least)
    further if there is room.
    """
    for further in (step, 1) if before else ():
        found = (*before[:-1], before[-1] + further)
        if found[-1] < MOST and (after is None or found < after):
            return found
    if after is None or after[: len(before)] != before:
        return (*before, MIDDLE)
    at = len(before)
    while after[at] == 0:
        at += 1
    return (*after[:at], max(after[at] - step, 1)) if after[at] > 1 else (*after[:at], 0, MIDDLE)


def written(place: Place) -> str:
    """Return the text of a place; texts are ordered as places are."""
    return "".join(_digits(number) for number in place)


def _digits(number: int) -> str:
    found = ""
    # All numbers are equally wide, so that texts sort as their numbers do.
    for _ in range(WIDTH):
        number, digit = divmod(number, len(DIGITS))
        found = DIGITS[digit] + found
    return found


class Pseudonyms:
    """Pseudonyms of names. `step` gives the distance to the next one, from 1 on; `given` is called with each
    new one.
    """

    def __init__(self, step: Callable[[], int], given: Callable[[str, Place], None]) -> None:
        self._step, self._given = step, given
        self._ordered: list[list[str]] = [[] for _ in BETWEEN]
        self._places: dict[str, Place] = {}
        self._written: dict[str, str] = {name: name for name in ("", *KEPT)}

    def known(self, name: str) -> str | None:
        """Return the pseudonym, if one exists already."""
        return self._written.get(name)

    def of(self, name: str) -> str:
        """Return the pseudonym, from now on always the same."""
        found = self._written.get(name)
        if found is not None:
            return found
        ordered = self._ordered[bisect_left(KEPT, name)]
        at = bisect_left(ordered, name)
        before = self._places[ordered[at - 1]] if at else ()
        after = self._places[ordered[at]] if at < len(ordered) else None
        place = between(before, after, self._step())
        self._given(name, place)
        return self.restore(name, place)

    def restore(self, name: str, place: Place) -> str:
        """Restore the pseudonym of a name at this place, and return it."""
        section = bisect_left(KEPT, name)
        insort(self._ordered[section], name)
        self._places[name] = place
        found = self._written[name] = BETWEEN[section] + written(place)
        return found
