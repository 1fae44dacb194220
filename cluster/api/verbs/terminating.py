# SPDX-License-Identifier: Apache-2.0
"""Conditions of a namespace that is being deleted, about the objects still in it (source: Kubernetes' namespace
controller).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from pumice.cluster.api.kinds import KINDS
from pumice.cluster.api.object_tables import Key, ObjectTables
from pumice.cluster.kube.statuses import merge_condition
from pumice.core.objects.metadata import Object, section

NAMESPACE: Final = "Namespace"
OWN_FINALIZER: Final = "kubernetes"
"""The server's own, which is as good as gone once nothing is left in a namespace."""
_DEFINITION: Final = "CustomResourceDefinition"
_ALWAYS_WELL: Final = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)
_CONTENT: Final = ("NamespaceContentRemaining", "SomeResourcesRemain", "ContentRemoved")
_FINALIZERS: Final = ("NamespaceFinalizersRemaining", "SomeFinalizersRemain", "ContentHasNoFinalizers")


def with_conditions(tables: ObjectTables, namespace: Object, held: Iterable[Key], at: str) -> Object | None:
    """Return the namespace with the conditions of its remaining objects, as of a time; None without a difference.
    `held`: all objects in it.
    """
    keys = list(held)
    of_kind = Counter(key[0] for key in keys)
    objects = [obj for key in keys if (obj := tables.shared(key)) is not None]
    finalizers = Counter(name for obj in objects for name in obj["metadata"].get("finalizers") or ())
    left = sorted(f"{_resource(tables, kind)} has {number} resource instances" for kind, number in of_kind.items())
    waiting = sorted(f"{name} in {number} resource instances" for name, number in finalizers.items())
    wanted = [_condition(type_, reason, message) for type_, reason, message in _ALWAYS_WELL]
    wanted.append(_remaining(_CONTENT, "Some resources are remaining", left, "All content successfully removed"))
    why = "Some content in the namespace has finalizers remaining"
    wanted.append(_remaining(_FINALIZERS, why, waiting, "All content-preserving finalizers finished"))
    status = section(namespace, "status")
    conditions: list[Object] = list(status.get("conditions") or ())
    changed = False
    for each in wanted:
        merged = merge_condition(conditions, each, at)
        changed = changed or merged is not None
        conditions = conditions if merged is None else merged
    return {**namespace, "status": {**status, "conditions": conditions}} if changed else None


def waits_for_others(key: Key, obj: Object) -> bool:
    """Return whether another client still has to release a namespace (`spec.finalizers`, by its subresource
    `finalize`).
    """
    return key[0] == NAMESPACE and any(name != OWN_FINALIZER for name in section(obj, "spec").get("finalizers") or ())


def _condition(type_: str, reason: str, message: str, status: str = "False") -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def _remaining(names: tuple[str, str, str], why: str, found: list[str], well: str) -> Object:
    type_, some, none = names
    return _condition(type_, some, f"{why}: {', '.join(found)}", "True") if found else _condition(type_, none, well)


def _resource(tables: ObjectTables, key: str) -> str:
    """Return the resource and group of a kind, like `pods.`, `jobs.batch`."""
    if (row := KINDS.get(key)) is not None:
        return f"{row.plural}.{row.group}"
    for place in tables.names(_DEFINITION):
        spec = section(tables.shared((_DEFINITION, *place)) or {}, "spec")
        names = section(spec, "names")
        if f"{names.get('kind')}.{spec.get('group')}" == key:
            return f"{names['plural']}.{spec['group']}"
    return key
