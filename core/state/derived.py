# SPDX-License-Identifier: Apache-2.0
"""Columns derived from parts of a snapshot, kept from session to session.

A column is a pure function of its source (and of arguments, by value), which may read nothing else. Every part of the
view has a version, which rises when that part changes. There is one rule: a column is as good as new while no part that
its source reads has another version. It is applied in one place, where the keeper hands the columns to a session. The
session has them to itself, adds what it works out, and gives them back at its close; until then, and after a session
that never closed, the keeper has none, and the next session starts without.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar

from pumice.core.errors import DerivedError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from pumice.core.objects.metadata import Object
    from pumice.core.objects.queue import Queue
    from pumice.core.state.dimensions import Dimensions
    from pumice.core.state.snapshot import NodeColumns

Given = TypeVar("Given")
P = ParamSpec("P")
T = TypeVar("T")

BOUND: Final = 1024  # values kept of a column with arguments: at 50,000 nodes a mask is 50 kB
MISSING: Final = object()

Versions = dict[str, int]
"""By part of the view: rises with every change of it. A part that is not named has version 0."""


class Holder(Protocol):
    """An object that can be asked for a column: a session, its nodes, or the input of a builder."""

    @property
    def derived(self) -> DerivedColumns:
        """Return what has been worked out."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Source(Generic[T]):
    """The input of a builder, and the parts of the view that it is read from; read at most once a session, for all
    builders. No builder changes it.
    """

    parts: frozenset[str]
    read: Callable[[DerivedColumns], T]


@dataclass(frozen=True, slots=True)
class Like(Generic[T]):
    """An argument that counts by its `content`: any subject of equal content gives the same value."""

    content: Hashable
    subject: T = field(compare=False)


def itself(subject: T) -> Like[T]:
    """Return an argument that counts by identity."""
    return Like(id(subject), subject)


class Column(Generic[Given, P, T]):
    """One derived column, or one for each of several arguments. `memory`: see :func:`memory`."""

    def __init__(
        self, source: Source[Given], build: Callable[Concatenate[Given, P], T], bound: int, *, memory: bool
    ) -> None:
        self.source, self.build, self.bound, self.memory = source, build, bound, memory
        self.__doc__ = build.__doc__
        self.__name__ = build.__name__

    def __call__(self, holder: Holder, /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the value, built on first use. Arguments are given by position."""
        assert not kwargs
        columns = holder.derived
        table = columns.tables.get(self)
        found: T = MISSING if table is None else table.get(args, MISSING)  # type: ignore[assignment]
        return columns.make(self, args) if found is MISSING else found


def derived(
    source: Source[Given], *, bound: int = BOUND
) -> Callable[[Callable[Concatenate[Given, P], T]], Column[Given, P, T]]:
    """Make a column of a pure function. Never change its value. `bound`: it starts afresh with so many values."""
    return lambda build: Column(source, build, bound, memory=False)


def memory(
    source: Source[Given],
) -> Callable[[Callable[Concatenate[Given, P], T]], Column[Given, P, T]]:
    """Make a column of a cache that compares every asked item with what it has seen, so that no answer is out of date.
    The source says when the whole cache becomes worthless.
    """
    return lambda build: Column(source, build, BOUND, memory=True)


@dataclass(slots=True)
class Material:
    """The material from which columns are derived, as it is in one snapshot."""

    nodes: NodeColumns
    queues: list[Queue]
    dimensions: Dimensions
    objects: Mapping[str, Mapping[str, Object]]


Tables = dict[Column[Any, Any, Any], dict[tuple[Any, ...], Any]]


class Loan:
    """The columns that a session was given; they are `returned` at its close; `versions` are those of its snapshot."""

    __slots__ = ("returned", "versions")

    def __init__(self, versions: Versions) -> None:
        self.versions = versions
        self.returned: Tables | None = None


class DerivedColumns:
    """The columns while one session has them. `tables`: column -> arguments -> value."""

    __slots__ = ("_building", "_loan", "_material", "_read", "tables")

    def __init__(self, loan: Loan, tables: Tables, material: Material) -> None:
        self._loan, self.tables = loan, tables
        self._material: Material | None = material
        self._read: dict[Source[Any], Any] = {}
        self._building: list[frozenset[str]] = []

    @property
    def derived(self) -> DerivedColumns:
        """Return itself, as a holder."""
        return self

    @property
    def versions(self) -> Versions:
        """Return the versions of the snapshot."""
        return self._loan.versions

    @property
    def material(self) -> Material:
        """Return the material for sources. Raises DerivedError after the session."""
        if self._material is None:
            raise DerivedError("a column is asked for after its session was closed")
        return self._material

    def make(self, column: Column[Given, P, T], args: tuple[Any, ...]) -> T:
        """Build a value and keep it. Raises DerivedError for a column requested by the builder of one that is derived
        from less: it would outlive its sources.
        """
        source, building = column.source, self._building
        if building and not source.parts <= building[-1]:
            more = ", ".join(sorted(source.parts - building[-1]))
            raise DerivedError(f"{column.__name__} is derived from {more}, which the column made of it does not name")
        building.append(source.parts)
        try:
            given: Given = self._read.get(source, MISSING)
            if given is MISSING:
                given = self._read[source] = source.read(self)
            value = column.build(given, *args)  # type: ignore[call-arg]
        finally:
            building.pop()
        table = self.tables.setdefault(column, {})
        # Whatever is dropped and still needed is built again.
        if len(table) >= column.bound:
            table.clear()
        table[args] = value
        return value

    def values(self) -> Iterator[tuple[Column[Any, Any, Any], tuple[Any, ...], Any]]:
        """Yield all values: (column, arguments, value)."""
        for column, table in self.tables.items():
            yield from ((column, args, value) for args, value in table.items())

    def afresh(self) -> DerivedColumns:
        """Return empty columns for another session on the same material; they are not given back."""
        return DerivedColumns(Loan(self._loan.versions), {}, self.material)

    def give_back(self) -> None:
        """Give the columns back at the end of the session."""
        if self._material is not None:
            self._loan.returned, self.tables, self._material = self.tables, {}, None
            self._read.clear()


class Keeper:
    """Keeps the derived columns of one view, and lends them to one session at a time.

    A column cannot be out of date unseen: it may read only the parts that its source names, and counts only while all
    of these have the version that it was made at.
    """

    def __init__(self) -> None:
        self._loan = Loan({})

    def lend(self, material: Material, versions: Versions) -> DerivedColumns:
        """Return columns for a session on a snapshot: those that the last session gave back, without those that have
        changed since.
        """
        # A session that never gave its columns back leaves none: this one then starts without.
        before, self._loan = self._loan, Loan(versions)
        returned = before.returned or {}
        # The symmetric difference holds every part whose version is another, or that is in one of the two alone.
        changed = {part for part, _ in before.versions.items() ^ versions.items()}
        if changed:
            returned = {column: table for column, table in returned.items() if changed.isdisjoint(column.source.parts)}
        return DerivedColumns(self._loan, returned, material)
