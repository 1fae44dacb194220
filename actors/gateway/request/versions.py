# SPDX-License-Identifier: Apache-2.0
"""Objects in a version whose fields differ from the stored ones: of autoscaling/v1 and events.k8s.io/v1.

Source: the conversions of Kubernetes' `pkg/apis`. Patches are turned as objects are, field by field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pumice.actors.gateway.request.autoscaling import to_first, to_stored
from pumice.core.objects.metadata import Object

Turn = Callable[[Object], Object]

_EVENT: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_EVENT_BACK: Final = {stored: shown for shown, stored in _EVENT.items()}


def stored(obj: Object, api_version: str) -> Object:
    """Return an object, or a merge patch for one, as it is stored."""
    turn = _STORED.get((api_version, _kind(obj)))
    return obj if turn is None else turn(obj)


def shown(obj: Object, api_version: str) -> Object:
    """Return a stored object in another version."""
    turn = _SHOWN.get((api_version, _kind(obj)))
    return {**(obj if turn is None else turn(obj)), "apiVersion": api_version}


def is_turned(api_version: str, kind: str) -> bool:
    """Return whether the fields of this version differ from the stored ones."""
    return (api_version, kind) in _STORED


def _kind(obj: Object) -> str:
    return str(obj.get("kind"))


def _renamed(names: dict[str, str]) -> Turn:
    return lambda obj: {names.get(name, name): value for name, value in obj.items()}


_STORED: Final[dict[tuple[str, str], Turn]] = {
    ("events.k8s.io/v1", "Event"): _renamed(_EVENT),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): to_stored,
}
_SHOWN: Final[dict[tuple[str, str], Turn]] = {
    ("events.k8s.io/v1", "Event"): _renamed(_EVENT_BACK),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): to_first,
}
