# SPDX-License-Identifier: Apache-2.0
"""Kinds that exist now: the built-in rows, and those of the accepted CustomResourceDefinitions.

Volcano's kinds are built in. A served cluster begins with a definition of each, as Volcano's installer makes them. From
then on (`installed`) these kinds are offered to clients while their definition exists. By their keys, as the parts of
this process name them, they are known all the time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pumice.cluster.api.definitions.naming import is_accepted, kind_row
from pumice.cluster.api.definitions.pruning import as_read, has_defaults
from pumice.cluster.api.kinds import KINDS, VOLCANOS, Kind
from pumice.core.objects.metadata import Object, rows, section


class KindTable:
    """Kinds by key, by type (apiVersion and kind) and by resource (group, version, plural).

    `installable`: Volcano's kinds go with their definitions. `installed`: there was one already.
    """

    def __init__(self, *, installable: bool = False, installed: bool = False) -> None:
        self.installed = installed
        self._installable = installable
        self._withheld: set[str] = set(VOLCANOS.values()) if installed else set()
        self._by_key: dict[str, Kind] = {}
        self._by_type: dict[tuple[str, str], Kind] = {}
        self._by_resource: dict[tuple[str, str, str], Kind] = {}
        self._definitions: dict[str, Object] = {}
        self._defining: dict[str, Object] = {}
        self._defaults: dict[str, Object] = {}
        # the dictionary's own method, without another call around it: it is asked at every request
        self.by_key: Callable[[str], Kind | None] = self._by_key.get
        """The row of a key, as messages name it; None when there is none."""
        for row in KINDS.values():
            self._add(row)

    def by_type(self, api_version: object, kind: object) -> Kind | None:
        """Return the row for an object's `apiVersion` and `kind`, other versions of it included."""
        if not isinstance(api_version, str) or not isinstance(kind, str):
            return None
        return self._offered(self._by_type.get((api_version, kind)))

    def by_resource(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the row behind a path, in any version in which it is served."""
        return self._offered(self._by_resource.get((group, version, plural)))

    def _offered(self, row: Kind | None) -> Kind | None:
        return None if row is None or row.key in self._withheld else row

    def rows(self) -> list[Kind]:
        """Return all kinds: the built-in ones in their order, then the defined ones by name."""
        return [row for row in self._by_key.values() if row.key not in self._withheld]

    def definition(self, key: str) -> Object | None:
        """Return the CustomResourceDefinition behind a kind; None for a built-in one."""
        return self._defining.get(key)

    def schema(self, key: str) -> Object | None:
        """Return the schema of a defined kind, in the version in which it is stored; None for a built-in kind."""
        definition = self._defining.get(key)
        if definition is None:
            return None
        versions, stored = rows(definition["spec"], "versions"), self._by_key[key].version
        schemas = [section(each, "schema") for each in versions if each["name"] == stored]
        return section(schemas[0], "openAPIV3Schema") if schemas else {}

    def reading(self, key: str) -> Callable[[Object], Object] | None:
        """Return the function that adds later defaults to an object of a defined kind; None without any."""
        schema = self._defaults.get(key)
        return None if schema is None else partial(as_read, schema)

    def add_definition(self, definition: Object) -> Kind | None:
        """Serve the kind of a definition, in place of its earlier one.

        None, and nothing served, when its names were not accepted or the kind is a built-in one.
        """
        name = definition["metadata"]["name"]
        if name in VOLCANOS and self._installable:
            if not self.installed:
                self.installed, self._withheld = True, set(VOLCANOS.values())
            self._withheld.discard(VOLCANOS[name])
        # first: a definition that has lost its names serves nothing, and a changed one would find its own names taken
        self.remove_definition(name)
        if not is_accepted(definition):
            return None
        row = kind_row(definition["spec"])
        # a built-in kind stays: no definition can hide it
        taken = (row.api_version, row.kind) in self._by_type or self.is_built_in(row.group, row.plural)
        if taken or row.key in self._by_key:
            return None
        self._add(row)
        self._definitions[row.resource] = self._defining[row.key] = definition
        if (schema := self.schema(row.key)) and has_defaults(schema):
            self._defaults[row.key] = schema
        return row

    def remove_definition(self, name: str) -> Kind | None:
        """Stop serving the kind of the definition of this name (`plural.group`), and return its row, if it had one."""
        definition = self._definitions.pop(name, None)
        if definition is None:
            return None
        row = self._by_key.pop(kind_row(definition["spec"]).key)
        del self._defining[row.key]
        self._defaults.pop(row.key, None)
        for held in (self._by_type, self._by_resource):
            _drop(held, row)
        return row

    def withhold(self, name: str) -> None:
        """Stop offering the Volcano kind whose definition of this name has gone."""
        if name in VOLCANOS and self._installable:
            self._withheld.add(VOLCANOS[name])

    def is_built_in(self, group: str, plural: str) -> bool:
        """Return whether a resource is served without any definition."""
        return (group, plural) in _BUILT_IN

    def _add(self, row: Kind) -> None:
        self._by_key[row.key] = row
        for api_version in (row.api_version, *row.also, *row.elsewhere):
            self._by_type[api_version, row.kind] = row
        for version in row.served_versions:
            self._by_resource[row.group, version, row.plural] = row
        for other in row.elsewhere:
            group, _, version = other.partition("/")
            self._by_resource[group, version, row.plural] = row


_BUILT_IN = frozenset((row.group, row.plural) for row in KINDS.values())


def _drop(held: dict[Any, Kind], row: Kind) -> None:
    for key in [key for key, other in held.items() if other.key == row.key]:
        del held[key]
