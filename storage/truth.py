# SPDX-License-Identifier: Apache-2.0
"""The api's objects as a checkpoint keeps them: in the order in which they came, and the uids deleted lately."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.core.messages.events import Mutation

REMEMBERED = 10_000
"""Uids of deleted objects that are remembered, as the api server does."""


class StoredObject(NamedTuple):
    """One object: its bytes, the revision that wrote them, its uid and its owners' uids."""

    blob: bytes
    revision: int
    uid: str
    owners: tuple[str, ...]


@dataclass
class Truth:
    """The objects. `kinds`: kind -> (namespace, name) -> object; `removed`: uids of the latest deleted objects, oldest
    first.
    """

    revision: int = 0
    kinds: dict[str, dict[tuple[str, str], StoredObject]] = field(
        default_factory=dict[str, "dict[tuple[str, str], StoredObject]"]
    )
    revisions: dict[str, int] = field(default_factory=dict[str, int])
    removed: dict[str, None] = field(default_factory=dict[str, None])

    def apply(self, mutation: Mutation) -> None:
        """Apply the next change; a repeated one changes nothing."""
        # Written twice after a lost acknowledgement.
        if mutation.revision <= self.revision:
            return
        name, of_kind = (mutation.namespace, mutation.name), self.kinds.setdefault(mutation.kind, {})
        if mutation.type == "DELETED":
            self._remove(of_kind.pop(name, None))
        else:
            known = of_kind.get(name)
            of_kind[name] = _held(mutation, known)
        self.revision = self.revisions[mutation.kind] = mutation.revision

    def _remove(self, gone: StoredObject | None) -> None:
        if gone is not None:
            self.removed[gone.uid] = None
            if len(self.removed) > REMEMBERED:
                # The oldest: garbage collection asks only about owners that went lately.
                del self.removed[next(iter(self.removed))]

    def rows(self) -> Iterator[tuple[str, tuple[str, str], StoredObject]]:
        """Yield all objects, kind by kind, in the order of arrival."""
        for kind, objects in self.kinds.items():
            for name, held in objects.items():
                yield kind, name, held


class _Owner(msgspec.Struct, gc=False):
    uid: Any


class _Metadata(msgspec.Struct, gc=False):
    uid: Any = None
    owners: tuple[_Owner, ...] | None = msgspec.field(default=None, name="ownerReferences")


class _Identity(msgspec.Struct, gc=False):
    """Identity fields of an object. The rest is skipped, not decoded, which takes a third of the time."""

    metadata: _Metadata | None = None


_identity = codec.decoder(_Identity)


def _held(mutation: Mutation, known: StoredObject | None) -> StoredObject:
    metadata: _Metadata = _identity(mutation.blob).metadata or _Metadata()
    owners = tuple(sorted([str(owner.uid) for owner in metadata.owners or ()]))
    if known is not None and known.owners == owners:
        # The same tuple for all versions of an object: most changes are of statuses.
        owners = known.owners
    return StoredObject(mutation.blob, mutation.revision, str(metadata.uid or ""), owners)
