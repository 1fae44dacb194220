"""The objects of one kind by namespace and name, in order of arrival and in order of name.

The sorted order is kept in short runs, so that neither a change nor a list ever sorts or shifts all of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain
from typing import Final, TypeVar

from msgspec import Struct

Name = tuple[str, str]
"""Namespace ("" for cluster-wide objects) and name."""

T = TypeVar("T")

_RUN: Final = 1024
"""Names in a run at most; twice as many are split."""


class ObjectRecord(Struct, gc=False):
    """One object: its bytes, the revision that wrote them, its uid, and its labels (None: nobody has looked yet).

    `views`: what the watchers of each part of its kind see of it (`core.objects.parts`); None: as the bytes tell.
    """

    blob: bytes
    revision: int
    uid: str
    labels: dict[str, str] | None = None
    views: tuple[object, ...] | None = None


class Ordered:
    """Names and records. Iterators are not to be held over a change. `records` are for reading only."""

    def __init__(self) -> None:
        self.records: dict[Name, ObjectRecord] = {}
        self._firsts: list[Name] = []
        self._names: list[list[Name]] = []
        self._runs: list[list[ObjectRecord]] = []

    def __len__(self) -> int:
        return len(self.records)

    def names(self) -> Iterator[Name]:
        """Every name, in order of arrival, as it is now."""
        return iter(tuple(self.records))

    def items(self) -> Iterator[tuple[Name, ObjectRecord]]:
        """Names and records, in order of arrival."""
        return iter(tuple(self.records.items()))

    def add(self, name: Name, record: ObjectRecord) -> bool:
        """Put a record under a name; one that is there keeps its place. Whether the name is new."""
        known = name in self.records
        self.records[name] = record
        if not self._firsts:
            self._firsts, self._names, self._runs = [name], [[name]], [[record]]
            return True
        run, at = self._place(name)
        if known:
            self._runs[run][at] = record
            return False
        self._names[run].insert(at, name)
        self._runs[run].insert(at, record)
        self._firsts[run] = self._names[run][0]
        if len(self._names[run]) >= 2 * _RUN:
            self._split(run)
        return True

    def pop(self, name: Name) -> ObjectRecord:
        """Take a record away; KeyError when it is not there."""
        record = self.records.pop(name)
        run, at = self._place(name)
        del self._names[run][at], self._runs[run][at]
        if self._names[run]:
            self._firsts[run] = self._names[run][0]
        else:
            del self._firsts[run], self._names[run], self._runs[run]
        return record

    def sorted_names(self, namespace: str | None = None) -> Iterator[Name]:
        """Names by namespace and name: all of them, or those of a namespace."""
        return chain.from_iterable(self._names[run][part] for run, part in self._parts(namespace))

    def sorted_records(self, namespace: str | None = None) -> Iterator[ObjectRecord]:
        """The records of these names, in the same order."""
        return chain.from_iterable(self._runs[run][part] for run, part in self._parts(namespace))

    def _place(self, name: Name) -> tuple[int, int]:
        """The run that a name belongs into, and where in it."""
        run = max(bisect_right(self._firsts, name) - 1, 0)
        return run, bisect_left(self._names[run], name)

    def _split(self, run: int) -> None:
        _halve(self._names, run)
        _halve(self._runs, run)
        self._firsts.insert(run + 1, self._names[run + 1][0])

    def _parts(self, namespace: str | None) -> Iterator[tuple[int, slice]]:
        """Where the objects of a namespace stand: runs, and what of them."""
        if namespace is None or not self._firsts:
            yield from ((run, slice(None)) for run in range(len(self._firsts)))
            return
        first, last = self._place((namespace, "")), self._place((namespace + "\0", ""))
        for run in range(first[0], last[0] + 1):
            yield run, slice(first[1] if run == first[0] else 0, last[1] if run == last[0] else None)


def _halve(runs: list[list[T]], run: int) -> None:
    runs.insert(run + 1, runs[run][_RUN:])
    del runs[run][_RUN:]
