"""The objects of one kind by namespace and name: in order of arrival, and sorted once somebody asks for a list."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from msgspec import Struct

Name = tuple[str, str]
"""Namespace ("" for cluster-wide objects) and name."""


class Record(Struct):
    """One object: its bytes, the revision that wrote them, its uid."""

    blob: bytes
    revision: int
    uid: str


class Ordered:
    """The sorted order is kept up from the first list on: a change costs a search and a shift, a list no sorting."""

    def __init__(self) -> None:
        self._records: dict[Name, Record] = {}
        self._sorted: tuple[list[Name], list[Record]] | None = None

    def get(self, name: Name) -> Record | None:
        """The record, or None."""
        return self._records.get(name)

    def __len__(self) -> int:
        return len(self._records)

    def names(self) -> Iterator[Name]:
        """Every name, in order of arrival, as it is now."""
        return iter(tuple(self._records))

    def items(self) -> Iterator[tuple[Name, Record]]:
        """Names and records, in order of arrival."""
        return iter(tuple(self._records.items()))

    def add(self, name: Name, record: Record) -> None:
        """Put a record under a name; one that is there keeps its place."""
        known = name in self._records
        self._records[name] = record
        if self._sorted is not None:
            names, records = self._sorted
            at = bisect_left(names, name)
            if known:
                records[at] = record
            else:
                names.insert(at, name)
                records.insert(at, record)

    def pop(self, name: Name) -> Record:
        """Take a record away; KeyError when it is not there."""
        if self._sorted is not None:
            names, records = self._sorted
            at = bisect_left(names, name)
            if at < len(names) and names[at] == name:
                del names[at], records[at]
        return self._records.pop(name)

    def rows(self, namespace: str | None = None) -> tuple[list[Name], list[Record]]:
        """Names and records, sorted by namespace and name: all of them (not to be changed), or those of a namespace."""
        if self._sorted is None:
            names = sorted(self._records)
            self._sorted = names, [self._records[name] for name in names]
        if namespace is None:
            return self._sorted
        names, records = self._sorted
        first, last = bisect_left(names, (namespace,)), bisect_left(names, (namespace + "\0",))
        return names[first:last], records[first:last]
