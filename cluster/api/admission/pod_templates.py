"""Pod specs settled and checked once for all pods of a template: those of a job have the same one, to the byte.

Nothing but the spec decides what comes out, and all of it is looked up by, so what is kept is never out of date. The
pods share the settled spec as it is: who writes into the spec of a pod takes a copy first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from pumice.cluster.api.admission.pod_spec import default_pod_spec, pod_spec_problems
from pumice.cluster.api.refusals import Cause
from pumice.cluster.kube.service_classes import qos_class
from pumice.storage.codec import repack, unpack

_KEPT: Final = 64


def settled(spec: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """A spec with its defaults, which nobody may change, and the class of service that it has with them."""
    return _settled(repack(spec))


def own_copy(spec: dict[str, Any]) -> dict[str, Any]:
    """A copy of the spec, to be changed."""
    copy: dict[str, Any] = unpack(repack(spec))
    return copy


def problems(spec: dict[str, Any]) -> list[Cause]:
    """Everything wrong with the spec of a pod."""
    return list(_problems(repack(spec)))


@lru_cache(maxsize=_KEPT)
def _settled(blob: bytes) -> tuple[dict[str, Any], str]:
    spec: dict[str, Any] = unpack(blob)
    default_pod_spec(spec)
    return spec, qos_class(spec)


@lru_cache(maxsize=_KEPT)
def _problems(blob: bytes) -> tuple[Cause, ...]:
    return tuple(pod_spec_problems(unpack(blob), "spec"))
