# SPDX-License-Identifier: Apache-2.0
"""The kinds of object that the api server knows: group, version, plural, scope, short names, columns, one row each.

Messages name a kind by its key: the bare kind, or `Kind.group` where two groups share a kind (batch/v1 `Job` is
`Job.batch`; plain `Job` is Volcano's) and for kinds that a user defines. The rows stand in the schema's data file; but
for admission, nothing else in the store knows a kind's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from pumice.cluster.api.schema.table import resources

if TYPE_CHECKING:
    from collections.abc import Mapping


class PrinterColumn(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A column, of a JSON type, with the value at a path; `priority` 1: only with `-o wide`."""

    name: str
    type: str
    json_path: str
    priority: int = 0


class Kind(Struct, frozen=True, gc=False):
    """The row of a kind.

    `status` says whether the kind has a status subresource: then a status given on create or on the main path is
    dropped, unless `keeps_status` (nothing else here would fill it in). `also` are older group/versions whose objects
    are stored under `version` (their fields are the same); `versions` are those of them, of the same group, that are
    served beside it. `scale`: it has a scale subresource. `defined`: by a user.
    `selectable`: fields of a defined kind by which its objects can be selected. `columns`: the
    additionalPrinterColumns of its definition.
    `elsewhere`: group/versions of other groups in which it is served, where the fields may have other names
    (`actors/gateway/request/versions.py`).
    `makes`: the key of the kind that its controller makes of it: pods, or a kind that makes pods. `keeps_pods`: its
    controller replaces every pod that ends.
    """

    key: str
    kind: str
    group: str
    version: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    status: bool = False
    also: tuple[str, ...] = ()
    keeps_status: bool = False
    versions: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    scale: bool = False
    singular_name: str = ""
    list_kind: str = ""
    defined: bool = False
    elsewhere: tuple[str, ...] = ()
    selectable: tuple[str, ...] = ()
    columns: tuple[PrinterColumn, ...] = ()
    makes: str = ""
    keeps_pods: bool = False

    @property
    def api_version(self) -> str:
        """Return `group/version`, or the bare version in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """Return `plural.group`, as error messages name the kind."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        """Return `Kind.group`, as Invalid errors name the kind."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def singular(self) -> str:
        """Return the singular name, as in `kubectl get pod`."""
        return self.singular_name or self.kind.lower()

    @property
    def is_custom(self) -> bool:
        """Return whether a real cluster has the kind from a CustomResourceDefinition: a user's own kind, or one of
        Volcano's.
        """
        return self.defined or self.group.endswith(".volcano.sh")

    @property
    def drops_status(self) -> bool:
        """Return whether only the status subresource writes the status."""
        return self.status and not self.keeps_status

    @property
    def served_versions(self) -> tuple[str, ...]:
        """Return the versions of its group under which the kind is served, the stored one first."""
        return (self.version, *self.versions)


_ROWS: Final = msgspec.json.decode(resources(), type=tuple[Kind, ...])

KINDS: Final[Mapping[str, Kind]] = {row.key: row for row in _ROWS}
"""Every known kind by its key."""

VOLCANOS: Final[Mapping[str, str]] = {row.resource: row.key for row in _ROWS if row.is_custom}
"""The keys of Volcano's kinds, by the names of their CustomResourceDefinitions."""

MAKERS: Final = frozenset(row.key for row in _ROWS if row.makes)
"""Keys of the kinds from which controllers make pods, or makers of pods."""

_BY_TYPE: Final[dict[tuple[object, object], Kind]] = {
    (api_version, row.kind): row for row in _ROWS for api_version in (row.api_version, *row.also, *row.elsewhere)
}


def kind_of(api_version: object, kind: object) -> Kind | None:
    """Return the row for an object's `apiVersion` and `kind`, older versions included; None without one."""
    return _BY_TYPE.get((api_version, kind)) if isinstance(api_version, str) and isinstance(kind, str) else None


def known_types() -> list[tuple[str, str]]:
    """Return every (apiVersion, kind) that is stored as it is, for "did you mean" hints."""
    return [(row.api_version, row.kind) for row in _ROWS]
