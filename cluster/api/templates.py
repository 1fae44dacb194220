# SPDX-License-Identifier: Apache-2.0
"""Admission once for all objects of a template: the pods of a task have one spec, and so have the PodGroups of Jobs
that are alike.

What the checks of a new object make of its spec is remembered with the spec, and with the revisions of the kinds that
they read. The next object with that spec gets the same result, and only its metadata, its place and its quota are
looked at. Whatever is not certain to follow from these goes through all checks (`pumice.cluster.api.checks`): an object
that is refused, of a served cluster, with a status, or with affinity terms, which take over labels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from pumice.cluster.api.admission.pods import JUDGED, budget_problems
from pumice.cluster.api.admission.rules import run_problems
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.object_tables import ObjectTables
from pumice.cluster.api.schema.field_types import type_problems
from pumice.core.objects.metadata import Object, is_mapping, mapping, section
from pumice.storage.codec import repack

READ: Final = {
    "Pod": ("PriorityClass", "LimitRange"),
    "PodGroup": ("Namespace", "Queue", "CustomResourceDefinition"),
}
"""The kinds whose admission follows from the spec, and the kinds of the objects that it reads. A Job is not among them:
its name decides whether its pods can have theirs, and its duration makes its spec its own.
"""
_PARTS: Final = {"apiVersion", "kind", "metadata", "spec"}
_MOST: Final = 256
_MOST_BYTES: Final = 16 * 1024
"""Size of the largest remembered spec."""


class Template(NamedTuple):
    """What is the same in all objects of a template. `revisions`: of the kinds that were read."""

    key: tuple[object, ...]
    revisions: tuple[int, ...]


class Admitted(Struct, frozen=True):
    """Spec and status as admission leaves them. Both are shared, and must not be changed."""

    revisions: tuple[int, ...]
    spec: Object
    status: Object


class Templates:
    """The remembered specs of a store."""

    def __init__(self, tables: ObjectTables) -> None:
        self._tables = tables
        self._admitted: dict[tuple[object, ...], Admitted] = {}

    def __len__(self) -> int:
        return len(self._admitted)

    def of(self, kind: Kind, obj: Object) -> Template | None:
        """Return the template of a new object, as it came; None when all of it must be checked."""
        if kind.key not in READ or obj.keys() != _PARTS:
            return None
        spec, meta = obj["spec"], mapping(obj["metadata"])
        if not is_mapping(spec) or spec.get("affinity") or self._tables.count("LimitRange"):
            return None
        # A field of a wrong type is refused by the checks, with their words.
        if type_problems(kind.group, kind.version, kind.kind, {**obj, "spec": {}}):
            return None
        blob = repack(spec)
        if len(blob) > _MOST_BYTES:
            return None
        annotations = section(meta, "annotations")
        if annotations and kind.key == "Pod":
            # Apart from the spec: each job of a trace has its own duration.
            judged = tuple([(name, annotations[name]) for name in JUDGED if name in annotations])
            if judged and not _is_sound(judged):
                return None
        revisions = self._tables.kind_revisions
        read = tuple([revisions.get(each, 0) for each in READ[kind.key]])
        # by namespace, since that may name the queue of its PodGroups
        return Template((kind.key, blob, meta.get("namespace")), read)

    def find(self, template: Template) -> Admitted | None:
        """Return what is remembered of it, unless something has changed that admission reads."""
        found = self._admitted.get(template.key)
        return found if found is not None and found.revisions == template.revisions else None

    def remember(self, template: Template, admitted: Object) -> None:
        """Remember what the checks have made of an object of this template."""
        if len(self._admitted) >= _MOST:
            # all at once: a template in use is back with its next object
            self._admitted.clear()
        self._admitted[template.key] = Admitted(template.revisions, admitted["spec"], admitted["status"])


@lru_cache(maxsize=_MOST)
def _is_sound(annotations: tuple[tuple[str, str], ...]) -> bool:
    """Return whether no pod with these annotations is refused for them."""
    said = dict(annotations)
    return not run_problems(said, "metadata") and not budget_problems(said)
