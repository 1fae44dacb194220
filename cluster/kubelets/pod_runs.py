# SPDX-License-Identifier: Apache-2.0
"""Durations that a node agent reads from a pod: how long it runs, how it ends, how long it takes to stop.

The annotations of a pod come before what its containers say (`container_plans`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from pumice.cluster.api.kinds import KINDS
from pumice.cluster.kube.commands import containers
from pumice.cluster.kube.commands.plans import FOR_EVER
from pumice.cluster.kubelets.container_life import KILLED, SERVER_STOPS_S, ContainerRun, PodContainers
from pumice.cluster.kubelets.container_plans import foreseen, read_life, run_of
from pumice.cluster.kubelets.pod_life import ENDED_PHASES, POD_LIFE, PodState, PodTrigger, seen
from pumice.config.durations import duration_s
from pumice.core.objects.metadata import Object, alike, interned, parse_time, rows, section, text_map
from pumice.core.texts import remembers, whole_number

# --- Host ports
# Source: the kubelet's predicate NodePorts. Schedulers see to it that they do not clash; a pod that names its node
# has been seen by none.

PodKey = tuple[str, str]
HostPort = tuple[str, str, int]
"""Address, protocol, port."""

REASON: Final = "NodePorts"
REFUSED: Final = (
    "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
)
_ANY: Final = ("", "0.0.0.0", "::")


def host_ports(spec: Object) -> tuple[HostPort, ...]:
    """Return the host ports that the pod's containers request."""
    rows = [port for each in spec.get("containers") or () for port in each.get("ports") or () if port.get("hostPort")]
    return tuple([(row.get("hostIP") or "", row.get("protocol") or "TCP", row["hostPort"]) for row in rows])


class PortsOfNodes:
    """The ports of each node and the pods that use them."""

    def __init__(self) -> None:
        self._held: dict[PodKey, tuple[str, tuple[HostPort, ...]]] = {}
        self._on: dict[str, set[PodKey]] = {}

    def take(self, key: PodKey, node: str, wanted: tuple[HostPort, ...]) -> bool:
        """Reserve the ports for the pod, and return whether all were free."""
        # Without the pod itself, which may ask twice.
        others = self._on.get(node, set()) - {key}
        if any(_clash(used, port) for other in others for used in self._held[other][1] for port in wanted):
            return False
        self._held[key] = (node, wanted)
        self._on.setdefault(node, set()).add(key)
        return True

    def release(self, key: PodKey) -> None:
        """Release the ports of a pod that has ended, or is gone."""
        if (held := self._held.pop(key, None)) is not None:
            self._on[held[0]].discard(key)


def _clash(used: HostPort, wanted: HostPort) -> bool:
    # An address of all interfaces takes the port of each single one.
    return used[1:] == wanted[1:] and (used[0] == wanted[0] or used[0] in _ANY or wanted[0] in _ANY)


DURATION: Final = containers.DURATION
EXIT_CODE: Final = containers.EXIT_CODE
TERMINATION: Final = "pumice.dev/termination"

DEFAULT_DURATION_S: Final = 5.0
TERMINATED: Final = 143
"""The exit code of a program that ends because of SIGTERM: 128 + 15."""
_duration_s: Final = remembers(4096)(duration_s)
"""Of the pods of one template every one says the same."""
OWN_CONDITIONS: Final = ("PodScheduled", "Ready")
"""Conditions that the agent writes of a pod without commands; it keeps those of other writers."""
_KEPT_UP: Final = frozenset(key for key, kind in KINDS.items() if kind.keeps_pods)


class PodRun(Struct, gc=False):
    """One pod on a node. `duration_s` 0: it never ends. `started`, `delete_by` in seconds since the epoch, 0: not.

    `life`: of containers that say what they do; `conditions`: what was last written of them, else those of others.
    `address` is that of the pod, `shares` says that it is its node's; `ports` are those of the node that it asks for.

    `termination_s` and `stop_code`: how long a deleted pod takes to stop, and the exit code. `works_on`: the pod does
    not heed SIGTERM, so that it may end by itself before. `told`: when it was asked to stop, 0: not yet; `idle`: before
    anything of it had begun. `over`: the api has its last phase.

    `changed`: containers that have got another image, to be started again; `restarted`: those of a pod without commands
    that were.
    """

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
    life: PodContainers | None = None
    conditions: Sequence[Object] = ()
    address: str = ""
    shares: bool = False
    ports: tuple[HostPort, ...] = ()
    stop_code: int = KILLED
    works_on: bool = True
    told: float = 0.0
    idle: bool = False
    over: bool = False
    tolerations: Sequence[Object] = ()
    changed: tuple[str, ...] = ()
    restarted: dict[str, ContainerRun] | None = None

    def began(self) -> float:
        """Return when the running program of the pod began, 0.0 before."""
        return max([self.started, *[each.started for each in (self.restarted or {}).values()]])

    def killed_at(self, told: float) -> float:
        """Return when the containers that still run are killed, for a pod that was asked at that time to stop."""
        # a deletion time is cut to whole seconds, so the grace period may end up to one second later
        return min(told + self.termination_s, max(self.delete_by + 1, told))

    def stops_at(self, told: float) -> float:
        """Return when a pod without commands has stopped that was asked at that time to stop."""
        killed = self.killed_at(told)
        return max(told, min(killed, self.ends_at())) if self.works_on else killed

    def ends_at(self) -> float:
        """Return when the pod ends by itself; infinity for never. The run of a pod without a start time begins now."""
        return (self.began() or self.told) + self.duration_s if self.duration_s else FOR_EVER


def read_run(
    pod: Object, revision: int, default_duration_s: float = DEFAULT_DURATION_S, known: PodRun | None = None
) -> PodRun | None:
    """Return the run of a pod with a node; None without one. Malformed annotations count as absent. `known`: the known
    run of this name, which the same pod continues, since the api may not show it yet.
    """
    spec = section(pod, "spec")
    node = spec.get("nodeName")
    if not node:
        return None
    meta: Object = pod["metadata"]
    status, annotations = section(pod, "status"), text_map(meta.get("annotations"))
    before = PodState.STARTING if known is None or known.uid != meta["uid"] else known.state
    phase = status.get("phase")
    run = PodRun(
        namespace=interned(meta["namespace"]),
        name=meta["name"],
        uid=meta["uid"],
        node=interned(node),
        state=seen(before, phase),
        # Annotations first; commands may say otherwise below, where there is no annotation.
        duration_s=_duration(meta, annotations, default_duration_s),
        exit_code=_exit_code(annotations),
        termination_s=float(meta.get("deletionGracePeriodSeconds") or 0),
        containers=alike(
            tuple([(each.get("name", ""), each.get("image", "")) for each in spec.get("containers") or ()])
        ),
        scheduled=_scheduled(status),
        started=parse_time(status.get("startTime")),
        delete_by=parse_time(meta.get("deletionTimestamp")),
        revision=revision,
        address=status.get("podIP") or "",
        shares=bool(spec.get("hostNetwork")),
        ports=host_ports(spec),
        over=phase in ENDED_PHASES,
        tolerations=spec.get("tolerations") or (),
    )
    run.conditions = _of_others(status)
    _read_stop(run, spec, annotations)
    if not containers.annotated(pod):
        _read_commands(run, pod)
    if run.life is None:
        # What was restarted before these agents began keeps its count.
        said: Sequence[Object] = status.get("containerStatuses") or ()
        run.restarted = {each.get("name", ""): run_of(each) for each in said if each.get("restartCount")} or None
    return run


def _of_others(status: Object) -> Sequence[Object]:
    return [each for each in status.get("conditions") or () if each.get("type") not in OWN_CONDITIONS] or ()


def _read_stop(run: PodRun, spec: Object, annotations: dict[str, str]) -> None:
    """Read how long the pod takes to stop. A pod that ignores SIGTERM is killed after its grace period, as the first
    process of a container is that installs no handler: a shell, `sleep`. Servers heed SIGTERM, and so does work without
    a command: only its annotation says how long it runs.
    """
    grace, asked = run.termination_s, _duration_s(annotations.get(TERMINATION, ""))
    heeds = all(containers.heeds(each) for each in spec.get("containers") or ())
    if asked is not None:
        run.termination_s, run.works_on = min(max(asked, 0.0), grace), False
        if asked < grace:
            run.stop_code = run.exit_code if EXIT_CODE in annotations else 0 if heeds else TERMINATED
    elif heeds:
        run.termination_s, run.stop_code = min(SERVER_STOPS_S, grace), 0
    elif not containers.names_commands(spec):
        run.termination_s, run.stop_code = min(SERVER_STOPS_S, grace), TERMINATED


def _read_commands(run: PodRun, pod: Object) -> None:
    """Read from containers with commands how long the pod runs and how it ends."""
    life = run.life = read_life(pod, run.duration_s)
    if life is not None:
        run.duration_s, run.exit_code = foreseen(life)
        run.conditions = section(pod, "status").get("conditions") or []
        if life.begun:
            run.state = POD_LIFE.after(run.state, PodTrigger.STARTED)
    elif run.duration_s and _serves(section(pod, "spec")):
        run.duration_s = 0.0


def _serves(spec: Object) -> bool:
    """Return whether the pod serves, and so does not end by itself."""
    return any(containers.serves(each) for each in spec.get("containers") or ())


def _duration(meta: Object, annotations: dict[str, str], default_s: float) -> float:
    given = _duration_s(annotations.get(DURATION, ""))
    if given is not None and given >= 0:
        return given
    owners: list[Object] = meta.get("ownerReferences") or []
    # what a workload keeps up has no end of its own: it would be replaced immediately, for ever
    return 0.0 if any(owner["kind"] in _KEPT_UP for owner in owners) else default_s


def _exit_code(annotations: dict[str, str]) -> int:
    return whole_number(annotations.get(EXIT_CODE, "")) or 0


def _scheduled(status: Object) -> str:
    for each in rows(status, "conditions"):
        if each.get("type") == "PodScheduled":
            return str(each.get("lastTransitionTime", ""))
    return ""
