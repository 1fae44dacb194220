"""What a node agent reads from a pod: how long it runs, how it ends, how long it takes to stop."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from actors.agents.pod_life import PodState
from config.durations import duration_s
from core.objects.metadata import parse_time, section, text_map
from core.whole_numbers import whole_number

Object = dict[str, Any]

DURATION: Final = "pumice.dev/duration"
EXIT_CODE: Final = "pumice.dev/exit-code"
TERMINATION: Final = "pumice.dev/termination"

DEFAULT_DURATION_S: Final = 5.0
DEFAULT_TERMINATION_S: Final = 1.0
_ENDED: Final = ("Succeeded", "Failed")
_KEPT_UP: Final = ("ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet")


class PodRun(Struct):
    """One pod on a node. `duration_s` 0: it never ends. `started`, `delete_by` in seconds since the epoch, 0: not."""

    namespace: str
    name: str
    uid: str
    node: str
    state: PodState
    duration_s: float
    exit_code: int
    termination_s: float
    containers: tuple[tuple[str, str], ...]
    scheduled: str
    started: float
    delete_by: float
    revision: int


def read_run(pod: Object, revision: int, default_duration_s: float = DEFAULT_DURATION_S) -> PodRun | None:
    """A pod that has a node; None for one that has not. Annotations that make no sense count as absent."""
    spec = section(pod, "spec")
    node = spec.get("nodeName")
    if not node:
        return None
    meta: Object = pod["metadata"]
    status, annotations = section(pod, "status"), text_map(meta.get("annotations"))
    phase = status.get("phase") or "Pending"
    state = PodState.ENDED if phase in _ENDED else PodState.RUNNING if phase == "Running" else PodState.STARTING
    grace = float(meta.get("deletionGracePeriodSeconds") or 0)
    termination = duration_s(annotations.get(TERMINATION, ""))
    return PodRun(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        node=node,
        state=state,
        duration_s=_duration(meta, annotations, default_duration_s),
        exit_code=_exit_code(annotations),
        termination_s=min(DEFAULT_TERMINATION_S if termination is None else max(termination, 0.0), grace),
        containers=tuple([(each.get("name", ""), each.get("image", "")) for each in spec.get("containers") or ()]),
        scheduled=_scheduled(status),
        started=parse_time(status.get("startTime")),
        delete_by=parse_time(meta.get("deletionTimestamp")),
        revision=revision,
    )


def _duration(meta: Object, annotations: dict[str, str], default_s: float) -> float:
    given = duration_s(annotations.get(DURATION, ""))
    if given is not None and given >= 0:
        return given
    owners: list[Object] = meta.get("ownerReferences") or []
    # what a workload keeps up has no end of its own: it would be replaced at once, for ever
    return 0.0 if any(owner["kind"] in _KEPT_UP for owner in owners) else default_s


def _exit_code(annotations: dict[str, str]) -> int:
    return whole_number(annotations.get(EXIT_CODE, "")) or 0


def _scheduled(status: Object) -> str:
    conditions: list[Object] = status.get("conditions") or []
    for each in conditions:
        if each.get("type") == "PodScheduled":
            return str(each.get("lastTransitionTime", ""))
    return ""
