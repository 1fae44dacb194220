"""What an object tells of the time before its first server-side apply: kubectl's annotation of what it last applied."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from pumice.cluster.api.apply.comparing import compare
from pumice.cluster.api.apply.field_sets import NOTHING, FieldSet, field_set
from pumice.cluster.api.apply.owners import UPDATE, Manager, Managers, Owned, ownable
from pumice.cluster.api.apply.paths import field
from pumice.cluster.api.apply.walks import fields_of
from pumice.cluster.api.schema.plain import is_map
from pumice.cluster.api.schema.shapes import Shape
from pumice.core.objects.metadata import Object, section

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE: Final = "before-first-apply"
_CLIENT_SIDE: Final = "kubectl-client-side-apply"
_ANNOTATION: Final = field_set([(field("metadata"), field("annotations"), field(LAST_APPLIED))])


def first_owners(live: Object, api_version: str, now: str, shape: Shape) -> Managers:
    """The owners of an object that nobody has applied server-side yet.

    Writes are recorded from the first apply on only. What kubectl's annotation says to be applied, and still is so,
    belongs to `kubectl-client-side-apply`; the rest to `before-first-apply`, as in Kubernetes.
    """
    if not live:
        return {}
    change = compare({}, live, shape)
    everything = ownable(change.added, ())
    kubectl = Manager(_CLIENT_SIDE, UPDATE, api_version)
    applied = ownable(allowed_by_last_applied(live, api_version, shape), ()) & everything
    if applied:
        applied |= _ANNOTATION & everything  # by it kubectl knows whose fields are its own when it goes over to apply
    owners = {
        kubectl: Owned(applied, api_version, now),
        Manager(_BEFORE, UPDATE, api_version): Owned(everything - applied, api_version, now),
    }
    return {who: owned for who, owned in owners.items() if owned.paths}


def allowed_by_last_applied(live: Object, api_version: str, shape: Shape) -> FieldSet:
    """The fields that kubectl applied client-side last and that have not changed since."""
    text: Any = section(section(live, "metadata"), "annotations").get(LAST_APPLIED)
    try:
        last: Any = msgspec.json.decode(text) if isinstance(text, str) and text else None
    except (msgspec.DecodeError, RecursionError):
        return NOTHING
    if not is_map(last) or last.get("apiVersion") != api_version:
        return NOTHING
    change = compare(last, live, shape)
    return fields_of(last, shape) - change.modified - change.added - change.removed


def with_last_applied(obj: Object, config: Object) -> Object:
    """The object, its annotation brought up to what was applied now, where it has one."""
    meta = section(obj, "metadata")
    annotations = section(meta, "annotations")
    if not annotations.get(LAST_APPLIED):
        return obj
    told = dict(section(section(config, "metadata"), "annotations"))
    told.pop(LAST_APPLIED, None)
    stripped = {**config, "metadata": {**section(config, "metadata"), "annotations": told}}
    if not told:
        del stripped["metadata"]["annotations"]
    text = json.dumps(stripped, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    return {**obj, "metadata": {**meta, "annotations": {**annotations, LAST_APPLIED: text}}}
