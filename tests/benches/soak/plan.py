"""What a soak is made of: how much of what, and the objects that are sent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import msgspec

from pumice.core.objects.metadata import Object

HEARTBEAT_S: Final = 10.0
"""The kubelet's `--node-status-update-frequency`."""
JOB_PODS: Final = 4
JOB_SHARE: Final = 0.2
"""So many of the units that writers make are Volcano Jobs, of `JOB_PODS` pods each; the others are single pods."""
PODS_A_UNIT: Final = JOB_SHARE * JOB_PODS + 1.0 - JOB_SHARE
SCHEDULERS: Final = ("volcano", "default-scheduler")
DURATIONS: Final = ("3s", "0")
"""Half of the pods end by themselves before they are deleted, the others are deleted while they run."""
LONGEST_LIFE_S: Final = 30.0
MOST_WARM_S: Final = 600.0
CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)


@dataclass(frozen=True, slots=True)
class SoakPlan:
    """`seconds` of load in which `pods` are made and deleted; `namespaces` with a watch of the pods of each, and
    `node_watches` more of all nodes. `sample_s` lies between two samples. `users`: so many share the namespaces under
    rbac, each with a token of its own; 0: no roles are enforced. `segments`, `keep_bytes`: as in `pumice run`, or "".
    """

    seconds: float = 7200.0
    pods: int = 100_000
    seed: int = 0
    nodes: int = 5_000
    namespaces: int = 190
    node_watches: int = 10
    writers: int = 50
    keep_cycles: int = 500
    keep_records: int = 100_000
    event_ttl: str = "5m"
    sample_s: float = 5.0
    users: int = 0
    segments: str = ""
    keep_bytes: str = ""

    @property
    def warm_s(self) -> float:
        """So long from the start nothing is judged: a sixth of the time, ten minutes at most."""
        return min(MOST_WARM_S, self.seconds / 6)

    @property
    def life_s(self) -> float:
        """What was made is deleted after half of this to all of it."""
        return min(LONGEST_LIFE_S, self.seconds / 6)

    @property
    def pace_s(self) -> float:
        """Seconds from one unit of a writer to its next."""
        return self.seconds * self.writers * PODS_A_UNIT / max(1, self.pods)

    def names(self) -> list[str]:
        """The namespaces."""
        return [f"soak-{number:03d}" for number in range(self.namespaces)]

    def names_of(self, number: int) -> list[str]:
        """Return the namespaces of a writer: those of its user, or all without users."""
        return self.names()[number % self.users :: self.users] if self.users else self.names()


@dataclass(frozen=True, slots=True)
class Unit:
    """What a writer makes and deletes at a time. `resource`: the path of its collection."""

    namespace: str
    name: str
    job: bool
    body: bytes

    @property
    def resource(self) -> str:
        """The path of its collection."""
        group = "apis/batch.volcano.sh/v1alpha1" if self.job else "api/v1"
        return f"/{group}/namespaces/{self.namespace}/{'jobs' if self.job else 'pods'}"

    @property
    def path(self) -> str:
        """Its own path."""
        return f"{self.resource}/{self.name}"


def node_name(number: int) -> str:
    """Of the node of that number."""
    return f"node-{number:05d}"


def cluster(plan: SoakPlan) -> Iterator[Object]:
    """Nodes with conditions, as kubelets report them, and the namespaces."""
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    at = _timestamp()
    said = [
        {"type": name, "status": status, "reason": why, "lastHeartbeatTime": at, "lastTransitionTime": at}
        for name, status, why in CONDITIONS
    ]
    for name in plan.names():
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for number in range(plan.nodes):
        name = node_name(number)
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": said}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def heartbeat() -> bytes:
    """A kubelet's patch of its node's status when nothing but the time has changed (strategic merge)."""
    at = _timestamp()
    order = [{"type": name} for name, _, _ in CONDITIONS]
    beaten = [{"lastHeartbeatTime": at, "type": name} for name, _, _ in CONDITIONS]
    return msgspec.json.encode({"status": {"$setElementOrder/conditions": order, "conditions": beaten}})


def units(plan: SoakPlan, writer: int) -> Iterator[Unit]:
    """What a writer makes, one after the other, without end; the seed says what and where."""
    chance, names, made = Random(f"{plan.seed}/{writer}"), plan.names_of(writer), 0
    while True:
        made += 1
        yield _unit(chance, chance.choice(names), f"w{writer:02d}-{made:06d}")


def _unit(chance: Random, namespace: str, name: str) -> Unit:
    job, scheduler = chance.random() < JOB_SHARE, chance.choice(SCHEDULERS)
    template = _template(chance.choice(DURATIONS))
    meta = {"name": name, "namespace": namespace}
    if job:
        tasks = [{"name": "worker", "replicas": JOB_PODS, "template": template}]
        spec = {"schedulerName": "volcano", "minAvailable": JOB_PODS, "queue": "default", "tasks": tasks}
        obj: Object = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": spec}
    else:
        spec = {**template["spec"], "schedulerName": scheduler}
        obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, **template["metadata"]}, "spec": spec}
    return Unit(namespace, name, job, msgspec.json.encode(obj))


def _template(duration: str) -> Object:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"metadata": {"annotations": {"pumice.dev/duration": duration}, "labels": {"app": "soak"}}, "spec": spec}


def command(plan: SoakPlan, folder: str, port: int) -> Sequence[str]:
    """The arguments of the `pumice run` that is soaked; its journal and its manifest lie in the folder."""
    serve = ["run", "-f", f"{folder}/cluster.json", "--http", f"127.0.0.1:{port}", "--db", f"{folder}/soak.db"]
    kept = ["--keep", str(plan.keep_cycles), "--keep-events", str(plan.keep_records), "--event-ttl", plan.event_ttl]
    segments = ["--segments", plan.segments] if plan.segments else []
    most = ["--keep-bytes", plan.keep_bytes] if plan.keep_bytes else []
    return [*serve, *kept, *segments, *most, "-o", "json"]


def _timestamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
