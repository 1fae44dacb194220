"""Patches of statuses that do for any object of a kind: decoded and checked once, however many get the same one."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pumice.cluster.api.admission.shapes.kind_shapes import status_problems
from pumice.cluster.api.fields import is_mapping
from pumice.cluster.api.verbs.decoding import decoded, may_hold_null
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object

_KEPT: Final = 256


@lru_cache(maxsize=_KEPT)
def sound_patch(kind: str, blob: bytes) -> Object | None:
    """The patch, which nobody may change, when it leaves a sound status wherever it is laid over one.

    So does one that takes nothing away and replaces each field that it names, by a value of that field's type. None:
    what comes of it depends on the object.
    """
    if may_hold_null(blob):
        return None
    patch = decoded(blob)
    if isinstance(patch, Refused) or any(map(is_mapping, patch.values())) or status_problems(kind, patch):
        return None
    return patch
