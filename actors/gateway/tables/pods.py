"""Pods as kubectl prints them: what their containers say decides the STATUS column, not the phase alone."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from pumice.actors.gateway.tables.ages import age, human_duration
from pumice.actors.gateway.tables.column import AGE, NAME, NONE, Printer, text
from pumice.actors.gateway.tables.words import count, deleted, name_of, or_none, spec_of, status_of
from pumice.cluster.api.fields import rows
from pumice.core.objects.metadata import Object, parse_time, section

_ENDED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


class _Tally(Struct):
    """What was counted so far; `last_restart` in seconds since the epoch, 0 for never."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: float = 0.0

    def add_restarts(self, container: Object) -> None:
        self.restarts += count(container, "restartCount")
        ended = section(section(container, "lastState"), "terminated").get("finishedAt")
        self.last_restart = max(self.last_restart, parse_time(ended))


def _pod_cells(pod: Object, now: float) -> list[Any]:
    spec, status = spec_of(pod), status_of(pod)
    sidecars = {one["name"] for one in rows(spec, "initContainers") if one.get("restartPolicy") == "Always"}
    tally = _tally(spec, status, sidecars)
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart:
        restarts += f" ({human_duration(now - tally.last_restart)} ago)"
    total = len(rows(spec, "containers")) + len(sidecars)
    addresses = rows(status, "podIPs")
    return [
        name_of(pod),
        f"{tally.ready}/{total}",
        _leaving(pod, status) or tally.reason,
        restarts,
        age(pod, now),
        or_none(addresses[0].get("ip") if addresses else ""),
        or_none(spec.get("nodeName")),
        or_none(status.get("nominatedNodeName")),
        _readiness_gates(spec, status),
    ]


def _leaving(pod: Object, status: Object) -> str:
    if not deleted(pod):
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in _ENDED else "Terminating"


def _tally(spec: Object, status: Object, sidecars: set[str]) -> _Tally:
    reason = status.get("reason") or status.get("phase") or ""
    for condition in rows(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    starting, of_sidecars, waits = _init_containers(spec, status, sidecars, reason)
    if waits and not _true(status, "Initialized"):
        return starting
    of_sidecars.reason = starting.reason
    return _main_containers(status, of_sidecars)


def _init_containers(spec: Object, status: Object, sidecars: set[str], reason: str) -> tuple[_Tally, _Tally, bool]:
    """Counts of all init containers, of sidecars alone, and whether the pod still initialises."""
    every, alone = _Tally(reason), _Tally(reason)
    total = len(rows(spec, "initContainers"))
    for place, container in enumerate(rows(status, "initContainerStatuses")):
        every.add_restarts(container)
        sidecar = container.get("name") in sidecars
        if sidecar:
            alone.add_restarts(container)
        ended = section(container, "state").get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            for tally in (every, alone):
                tally.ready += bool(container.get("ready"))
            continue
        every.reason = f"Init:{_why_not_done(container, f'{place}/{total}')}"
        return every, alone, True
    return every, alone, False


def _why_not_done(container: Object, progress: str) -> str:
    state = section(container, "state")
    if state.get("terminated") is not None:
        return _ending(state["terminated"])
    waiting = section(state, "waiting").get("reason") or ""
    return waiting if waiting not in ("", "PodInitializing") else progress


def _ending(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode') or 0}"


def _main_containers(status: Object, tally: _Tally) -> _Tally:
    running, failed = False, ""
    for container in reversed(rows(status, "containerStatuses")):
        tally.add_restarts(container)
        state = section(container, "state")
        ended, waiting = state.get("terminated"), section(state, "waiting").get("reason")
        if waiting:
            tally.reason = waiting
        elif ended is not None:
            tally.reason = _ending(ended)
            failed = tally.reason if ended.get("exitCode") else failed
        elif container.get("ready") and state.get("running") is not None:
            running = True
            tally.ready += 1
    if tally.reason == "Completed":
        tally.reason = _completed(status, running=running, failed=failed)
    return tally


def _completed(status: Object, *, running: bool, failed: str) -> str:
    """A pod with one container done is still Running while another runs and the pod is ready."""
    if running and _true(status, "Ready"):
        return "Running"
    return failed or ("NotReady" if running else "Completed")


def _true(status: Object, condition_type: str) -> bool:
    return any(one.get("type") == condition_type and one.get("status") == "True" for one in rows(status, "conditions"))


def _readiness_gates(spec: Object, status: Object) -> str:
    gates = rows(spec, "readinessGates")
    if not gates:
        return NONE
    return f"{sum(_true(status, str(gate.get('conditionType'))) for gate in gates)}/{len(gates)}"


def _conditions(pod: Object) -> list[dict[str, str]]:
    phase = status_of(pod).get("phase", "")
    message = _ENDED.get(phase)
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}] if message else []


PODS: Final = Printer(
    (
        NAME,
        text("Ready", "Containers that are ready, of all."),
        text("Status", "What the containers say, in one word."),
        text("Restarts", "How often containers were restarted, and when last."),
        AGE,
        text("IP", "The pod's address.", wide=True),
        text("Node", "The node that the pod is bound to.", wide=True),
        text("Nominated Node", "The node on which room is being made for the pod.", wide=True),
        text("Readiness Gates", "Readiness gates that hold, of all.", wide=True),
    ),
    _pod_cells,
    _conditions,
)
