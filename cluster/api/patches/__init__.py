# SPDX-License-Identifier: Apache-2.0
"""Patches: an object and a patch of some form give the changed object, or the refusal with its reason."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api import refusals
from pumice.cluster.api.patches.operations import apply_operations, decoded_operations
from pumice.cluster.api.patches.strategic import strategic_merge
from pumice.cluster.api.registry import FoundObject
from pumice.cluster.api.schema import of_kind
from pumice.cluster.kube.merge_patch import merge_patch
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object

__all__ = ["decoded_operations", "patched"]

_MEDIA: Final = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")


def patched(form: str, found: FoundObject, patch: Any) -> Object | Refused:
    """Return the object after the patch; fields that only the server writes are settled later."""
    match form:
        case "merge":
            merged: Object = merge_patch(found.obj, patch)
            return merged
        case "json":
            return apply_operations(found.obj, patch)
        case "strategic":
            kind = found.kind
            described = None if kind.is_custom else of_kind(kind.group, kind.version, kind.kind)
            if described is None:
                return refusals.unsupported_media(_MEDIA)
            return strategic_merge(found.obj, patch, described)
        case _:
            return refusals.unsupported_media(_MEDIA)
