# SPDX-License-Identifier: Apache-2.0
"""Identities of objects that were handed in: by them objects are found, kept and distinguished."""

from __future__ import annotations

from functools import lru_cache

from pumice.cluster.api.kinds import kind_of
from pumice.core.objects.metadata import Object, section

Identity = tuple[str, str, str]
"""Kind, namespace and name; the kind as objects are stored by."""


def stored_as(obj: Object) -> str:
    """Return the kind under which an object is stored: a Job of Kubernetes is another one than Volcano's."""
    kind, version = obj["kind"], obj.get("apiVersion")
    return _key(version, kind) if version.__class__ is str and kind.__class__ is str else str(kind)


@lru_cache(maxsize=256)
def _key(version: str, kind: str) -> str:
    found = kind_of(version, kind)
    return found.key if found is not None else kind


def identity(obj: Object) -> Identity:
    """Return the identity of an object."""
    metadata = section(obj, "metadata")
    return stored_as(obj), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
