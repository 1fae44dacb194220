"""Parts of kinds: what is news to whom, and that nobody who follows a part ends up with another view of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.store import Store
from pumice.cluster.controllers.batch.rule import JobRule
from pumice.cluster.controllers.devices import DeviceMachine
from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.controllers.groups import PodGroupMachine
from pumice.cluster.controllers.jobs.rule import VolcanoJobRule
from pumice.cluster.controllers.queues import QueueMachine
from pumice.cluster.controllers.unserved import UnservedMachine
from pumice.cluster.controllers.volumes.drivers import DriversMachine
from pumice.cluster.controllers.volumes.machine import VolumeMachine
from pumice.cluster.controllers.volumes.pod_claims import PodClaimsMachine
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.messages.commands import ApiRequest, BindPod, Create, Delete, Patch, UpdateStatus
from pumice.core.messages.replies import Accepted
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import (
    EVERY,
    GROUP_MADE,
    GROUP_OF_JOB,
    GROUP_SPECS,
    JOB_OF_OTHERS,
    ORPHAN_POD,
    PARTS,
    POD_OF_JOB,
    POD_OF_WORKLOAD,
    POD_PLACED,
    POD_UNGROUPED,
    POD_WITH_CLAIMS,
    QUEUE_FAMILIES,
    QUEUE_NAMES,
    QUEUE_STATES,
    kind_of,
)
from pumice.storage.codec import pack, unpack
from pumice.storage.truth import Truth
from tests.actors.cluster import Cluster
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue

ALL = {name for parts in PARTS.values() for name in parts.names}


def told(cluster: Cluster, request: ApiRequest) -> set[str]:
    """The parts to which the change is news; it is news to who watches the kind."""
    before = cluster.store.revision
    reply = cluster.ask(request)
    assert isinstance(reply, Accepted), reply
    [event] = cluster.store.log.read(before).events
    assert cluster.store.log.read(before, (event.kind,)).events == (event,)
    found = {part for part in ALL - {ORPHAN_POD} if cluster.store.log.read(before, (part,)).events}
    assert all(kind_of(part) == event.kind for part in found)
    return found


def status(kind: str, user: str, name: str = "x", **what: Any) -> UpdateStatus:
    return UpdateStatus(kind, "" if kind == "Queue" else "default", name, pack(what), user=user)


def annotation(kind: str, name: str, value: str) -> Patch:
    namespace = "" if kind == "Queue" else "default"
    return Patch(kind, namespace, "x", pack({"metadata": {"annotations": {name: value}}}))


def owned(obj: Object, kind: str, version: str) -> Object:
    owner = {"apiVersion": version, "kind": kind, "name": "o", "uid": "o1", "controller": True}
    obj["metadata"]["ownerReferences"] = [owner]
    return obj


def of_job(obj: Object) -> Object:
    return owned(obj, "Job", "batch.volcano.sh/v1alpha1")


def with_device(obj: Object) -> Object:
    obj["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "c"}]
    return obj


def with_volume(obj: Object, **source: Any) -> Object:
    obj["spec"]["volumes"] = [{"name": "v", **source}]
    return obj


EPHEMERAL = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}


@pytest.mark.parametrize(
    ("obj", "part"),
    [
        (pod("x", group="g"), None),
        (of_job(pod("x", group="g")), POD_OF_JOB),
        (with_device(pod("x", group="g")), POD_WITH_CLAIMS),
        (with_volume(pod("x", group="g"), ephemeral=EPHEMERAL), POD_WITH_CLAIMS),
        (with_volume(pod("x", group="g"), persistentVolumeClaim={"claimName": "c"}), None),
        (pod("x"), POD_UNGROUPED),
        (owned(pod("x", group="g"), "ReplicaSet", "apps/v1"), POD_OF_WORKLOAD),
        (owned(pod("x", group="g"), "Job", "batch/v1"), POD_OF_WORKLOAD),
        (owned(pod("x", group="g"), "Job", "mine.example/v1"), POD_OF_WORKLOAD),
    ],
)
def test_who_hears_of_a_pod(obj: Object, part: str | None) -> None:
    cluster = Cluster()
    always = {part} - {None}
    assert told(cluster, Create(pack(obj))) == always
    assert told(cluster, status("Pod", "scheduler", reason="Unschedulable")) == always
    assert told(cluster, BindPod("default", "x", "", "n1")) == always | {POD_PLACED}
    assert told(cluster, status("Pod", "node-agents", phase="Running")) == always
    assert told(cluster, status("Pod", "somebody", phase="Pending")) == always | {POD_PLACED}
    assert told(cluster, Delete("Pod", "default", "x", None, 5)) == always | {POD_PLACED}
    assert told(cluster, Delete("Pod", "default", "x", None, 0, user="node-agents")) == always | {POD_PLACED}


def test_what_is_told_of_a_pod_of_nobody() -> None:
    cluster = Cluster()

    def is_told(request: ApiRequest) -> bool:
        before = cluster.store.revision
        assert isinstance(cluster.ask(request), Accepted)
        return bool(cluster.store.log.read(before, (ORPHAN_POD,)).events)

    assert is_told(Create(pack(pod("x", group="g"))))
    assert not is_told(BindPod("default", "x", "", "n1"))
    assert not is_told(status("Pod", "somebody", phase="Running"))
    assert is_told(Patch("Pod", "default", "x", pack({"metadata": {"labels": {"a": "b"}}})))
    assert is_told(Delete("Pod", "default", "x", None, 5))
    assert not is_told(Create(pack(of_job(pod("y", group="g")))))


def test_a_pod_is_ungrouped_until_it_was_given_a_group() -> None:
    cluster = Cluster()
    assert told(cluster, Create(pack(pod("x")))) == {POD_UNGROUPED}
    assert told(cluster, annotation("Pod", "scheduling.k8s.io/group-name", "podgroup-1")) == {POD_UNGROUPED}
    assert told(cluster, annotation("Pod", "other", "1")) == set()
    assert told(cluster, Delete("Pod", "default", "x", None, 0)) == {POD_UNGROUPED}


def test_who_hears_of_a_pod_group() -> None:
    cluster = Cluster()
    for obj, phases in ((pod_group("x"), set[str]()), (of_job(pod_group("x")), {GROUP_OF_JOB})):
        changes = phases | {GROUP_SPECS}
        assert told(cluster, Create(pack(obj))) == changes
        assert told(cluster, status("PodGroup", "scheduler", phase="Inqueue")) == phases
        assert told(cluster, status("PodGroup", "scheduler", running=1)) == set()
        assert told(cluster, annotation("PodGroup", "other", "1")) == set()
        assert told(cluster, Patch("PodGroup", "default", "x", pack({"spec": {"minMember": 7}}))) == changes
        assert told(cluster, Delete("PodGroup", "default", "x", None, 0)) == changes


def test_who_made_a_pod_group_hears_whether_it_is_there() -> None:
    cluster = Cluster()
    assert told(cluster, Create(pack(pod_group("podgroup-1")))) == {GROUP_MADE, GROUP_SPECS}
    assert told(cluster, status("PodGroup", "scheduler", "podgroup-1", phase="Inqueue")) == set()
    assert told(cluster, Delete("PodGroup", "default", "podgroup-1", None, 0)) == {GROUP_MADE, GROUP_SPECS}


def test_who_hears_of_a_queue() -> None:
    cluster = Cluster()
    assert told(cluster, Create(pack(queue("x")))) == {QUEUE_NAMES, QUEUE_STATES, QUEUE_FAMILIES}
    assert told(cluster, status("Queue", "scheduler", allocated={"cpu": "1"})) == set()
    assert told(cluster, status("Queue", "somebody", pending=2)) == set()
    assert told(cluster, status("Queue", "queue-controller", state="Closing")) == {QUEUE_STATES}
    assert told(cluster, status("Queue", "somebody", state="Closed")) == {QUEUE_STATES, QUEUE_FAMILIES}
    assert told(cluster, annotation("Queue", "volcano.sh/closed-by-parent", "true")) == {QUEUE_FAMILIES}
    assert told(cluster, Patch("Queue", "", "x", pack({"spec": {"weight": 7}}))) == {QUEUE_STATES, QUEUE_FAMILIES}


def test_who_hears_of_a_job() -> None:
    cluster = Cluster()
    assert told(cluster, Create(pack(vcjob("x", job_task())))) == {JOB_OF_OTHERS}
    assert told(cluster, status("Job", "job-controller", pending=1)) == set()
    assert told(cluster, status("Job", "somebody", pending=2)) == {JOB_OF_OTHERS}
    # it deletes a Job whose time to live is over: that is told, whoever did it
    assert told(cluster, Delete("Job", "default", "x", None, 0, user="job-controller")) == {JOB_OF_OTHERS}


@pytest.mark.parametrize("from_checkpoint", [False, True])
def test_a_restored_object_is_seen_as_its_bytes_tell(from_checkpoint: bool) -> None:
    cluster = Cluster()
    for obj in (pod("x", group="g"), of_job(pod("placed", group="g"))):
        cluster.create(obj)
    cluster.bind("placed", "n1")
    cluster.store = _again(cluster, from_checkpoint=from_checkpoint)
    assert told(cluster, status("Pod", "scheduler", reason="Unschedulable")) == set()
    assert told(cluster, status("Pod", "scheduler", "placed", reason="Evict")) == {POD_OF_JOB, POD_PLACED}
    assert told(cluster, Delete("Pod", "default", "x", None, 0)) == set()
    assert told(cluster, Delete("Pod", "default", "placed", None, 0)) == {POD_OF_JOB, POD_PLACED}


def _again(cluster: Cluster, *, from_checkpoint: bool) -> Store:
    store = Store()
    if from_checkpoint:
        truth = Truth()
        for mutation in cluster.journal:
            truth.apply(mutation)
        store.load(truth)
    else:
        for mutation in cluster.journal:
            store.restore(mutation)
    return store


def test_machines_watch_what_there_is() -> None:
    machines = (
        NodeAgentsMachine,
        FamilyMachine(VolcanoJobRule()),
        QueueMachine,
        PodGroupMachine,
        VolumeMachine,
        DriversMachine,
        PodClaimsMachine,
        DeviceMachine,
        UnservedMachine(),
        FamilyMachine(JobRule()),
    )
    watched = {kind for machine in machines for kind in machine.kinds if ":" in kind}
    assert watched == ALL


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["create", "create-of-job", "create-loose", "group", "status", "phase", "bind", "delete"]),
        st.integers(0, 2),
    ),
    max_size=30,
)


def carry_out(cluster: Cluster, what: str, name: str, count: int) -> None:
    match what:
        case "create":
            cluster.ask(Create(pack(pod(name, group="g"))))
        case "create-of-job":
            cluster.ask(Create(pack(of_job(pod(name, group="g")))))
        case "create-loose":
            cluster.ask(Create(pack(pod(name))))
        case "group":
            annotations = {"scheduling.k8s.io/group-name": f"podgroup-{count}"}
            cluster.patch("Pod", name, {"metadata": {"annotations": annotations}})
        case "status":
            cluster.ask(status("Pod", "scheduler", name, reason=str(count)))
        case "phase":
            cluster.ask(status("Pod", "node-agents", name, phase="Running", message=str(count)))
        case "bind":
            cluster.bind(name, "n1")
        case _:
            cluster.delete("Pod", name, grace_s=0)


@given(OPERATIONS, st.integers(0, 30))
def test_who_follows_a_part_sees_of_it_what_is_there(steps: list[tuple[str, int]], at: int) -> None:
    cluster = Cluster()
    cluster.create(node("n1"))
    for count, (what, number) in enumerate(steps[:at]):
        carry_out(cluster, what, f"p{number}", count)
    since = cluster.store.revision
    listed = {obj["metadata"]["name"]: obj for obj in cluster.all("Pod")}
    for count, (what, number) in enumerate(steps[at:], at):
        carry_out(cluster, what, f"p{number}", count)
    now = {obj["metadata"]["name"]: _views(obj) for obj in cluster.all("Pod")}
    for index, part in enumerate(PARTS["Pod"].names):
        known = dict(listed)
        for event in cluster.store.log.read(since, (part,)).events:
            if event.type == "DELETED":
                known.pop(event.name, None)
            else:
                known[event.name] = unpack(event.blob)
        seen = {name: _views(obj)[index] for name, obj in known.items()}
        assert _in_part(seen, part) == _in_part({name: views[index] for name, views in now.items()}, part)


def _views(obj: Object) -> list[object]:
    """What each part sees; who sees all of an object has to have this very version of it."""
    return [obj["metadata"]["resourceVersion"] if view is EVERY else view for view in PARTS["Pod"].views(obj)]


def _in_part(views: dict[str, object], part: str) -> dict[str, object]:
    """Those that are in it; what the node agents have written of placed pods is theirs to know."""
    return {name: part != POD_PLACED and view for name, view in views.items() if view is not None}
