"""A cluster without actors: a store, some machines, a clock moved by hand. What the shell does, in plain calls."""

from collections.abc import Sequence
from typing import cast

from pumice.cluster.api.bootstrap import system_queues
from pumice.cluster.api.store import Store
from pumice.cluster.machine import Machine
from pumice.core.messages.commands import (
    ApiRequest,
    BindPod,
    Create,
    Delete,
    EvictPod,
    Patch,
    Pull,
    ReadFaults,
    StatusCondition,
    UpdateStatus,
)
from pumice.core.messages.events import Mutation
from pumice.core.messages.replies import Accepted, ApiReply, Listing, Refused
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import kind_of
from pumice.storage.codec import pack, unpack
from pumice.storage.shared_objects import SharedObjects

START = 1_700_000_000.0
ROUNDS = 200


class Cluster:
    """`machines` see every change; `settle` lets them work until nothing is left to do at this moment."""

    def __init__(self, *machines: Machine, seed: int = 0, log_capacity: int = 32_768) -> None:
        self.objects = SharedObjects()
        self.store = Store(seed=seed, log_capacity=log_capacity, written=self.objects)
        self.machines = list(machines)
        self.now = START
        self.journal: list[Mutation] = []
        self.requests: list[tuple[ApiRequest, ApiReply]] = []
        self._seen: dict[Machine, int] = {}
        for queue in system_queues():
            self.create(queue)

    @classmethod
    def served(cls) -> "Cluster":
        """One as clients find it: strict, with a namespace."""
        found = cls()
        found.store.registry.served = True
        found.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        return found

    # --- asking

    def ask(self, request: ApiRequest) -> ApiReply:
        assert not isinstance(request, Pull | ReadFaults)
        reply = self.store.apply(request, self.now)
        self.journal += self.store.drain()
        self.store.publish()
        return reply

    def create(self, obj: Object) -> Object:
        reply = self.ask(Create(pack(obj)))
        assert isinstance(reply, Accepted), reply
        return cast("Object", unpack(reply.blob))

    def refused(self, obj: Object) -> Refused:
        reply = self.ask(Create(pack(obj)))
        assert isinstance(reply, Refused), "it was accepted"
        return reply

    def get(self, kind: str, name: str, namespace: str = "default") -> Object:
        reply = self.store.get(kind, namespace, name)
        assert isinstance(reply, Accepted), reply
        return cast("Object", unpack(reply.blob))

    def exists(self, kind: str, name: str, namespace: str = "default") -> bool:
        return isinstance(self.store.get(kind, namespace, name), Accepted)

    def all(self, kind: str, selector: str | None = None) -> list[Object]:
        reply = self.store.list(kind, None, selector)
        assert isinstance(reply, Listing), reply
        return [cast("Object", unpack(blob)) for blob in reply.blobs]

    def patch(self, kind: str, name: str, patch: Object, namespace: str = "default") -> ApiReply:
        return self.ask(Patch(kind, namespace, name, pack(patch)))

    def status(self, kind: str, name: str, patch: Object, namespace: str = "default") -> ApiReply:
        return self.ask(UpdateStatus(kind, namespace, name, pack(patch)))

    def delete(self, kind: str, name: str, namespace: str = "default", grace_s: int | None = None) -> ApiReply:
        return self.ask(Delete(kind, namespace, name, None, grace_s))

    def bind(self, name: str, node: str, namespace: str = "default", uid: str = "") -> ApiReply:
        return self.ask(BindPod(namespace, name, uid, node))

    def evict(self, name: str, namespace: str = "default") -> ApiReply:
        conditions = (StatusCondition("DisruptionTarget", "True", "PreemptionByScheduler", "make room"),)
        return self.ask(EvictPod(namespace, name, "", conditions))

    # --- letting time and machines work

    def settle(self) -> None:
        for _ in range(ROUNDS):
            turns = [self._turn(machine) for machine in self.machines]
            if not any(turns):
                return
        raise AssertionError("the machines talk to themselves")

    def advance(self, seconds: float) -> None:
        """Let so much time pass, timer by timer."""
        end = self.now + seconds
        self.settle()
        while (due := self._next_due()) is not None and due <= end:
            self.now = max(due, self.now)
            self.settle()
        self.now = end
        self.settle()

    def restart(self, *machines: Machine, seed: int = 0) -> None:
        """A new store from the journal, new machines that know nothing."""
        self.store = Store(seed=seed)
        for mutation in self.journal:
            self.store.restore(mutation)
        self.machines = list(machines)
        self._seen = {}

    def timers(self) -> int:
        return sum(machine.running_timers() for machine in self.machines)

    def _next_due(self) -> float | None:
        return min((due for machine in self.machines if (due := machine.next_due()) is not None), default=None)

    def _turn(self, machine: Machine) -> bool:
        heard = self._tell(machine)
        requests: Sequence[ApiRequest] = machine.step(self.now)
        replies = [self.ask(request) for request in requests]
        for request, reply in zip(requests, replies, strict=True):
            self.requests.append((request, reply))
            machine.answered(request, reply, self.now)
        return heard or bool(requests)

    def _tell(self, machine: Machine) -> bool:
        since = self._seen.get(machine, -1)
        events = self.store.log.read(since, machine.kinds, 100_000)
        self._seen[machine] = events.revision
        if events.gone:
            for kind in map(kind_of, machine.kinds):
                for obj in self.all(kind):
                    machine.observe(kind, obj, int(obj["metadata"]["resourceVersion"]))
            return True
        for event in events.events:
            deleted = event.type == "DELETED"
            obj = unpack(event.blob)
            revision = event.revision if deleted else int(obj["metadata"]["resourceVersion"])
            machine.observe(event.kind, obj, revision, deleted=deleted)
        return events.more or bool(events.events)


def bind_all(cluster: Cluster, node: str = "n1") -> list[str]:
    """Put every pod that has no node on one; returns their names."""
    waiting = [pod for pod in cluster.all("Pod") if not pod["spec"].get("nodeName")]
    for pod in waiting:
        cluster.bind(pod["metadata"]["name"], node, pod["metadata"]["namespace"])
    return [pod["metadata"]["name"] for pod in waiting]


def enqueue_all(cluster: Cluster) -> None:
    """Every PodGroup that is Pending becomes Inqueue, as the scheduler's action would have it."""
    for group in cluster.all("PodGroup"):
        if group["status"]["phase"] == "Pending":
            cluster.status("PodGroup", group["metadata"]["name"], {"phase": "Inqueue"}, group["metadata"]["namespace"])


def fields(reply: object) -> list[str]:
    """Those that an answer of 422 names."""
    assert isinstance(reply, Refused), reply
    assert (reply.code, reply.reason) == (422, "Invalid")
    return [cause["field"] for cause in reply.details["causes"]]
