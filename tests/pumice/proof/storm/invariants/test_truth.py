"""The monitor's sums say what a walk over all pods says."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object
from pumice.proof.storm.invariants.monitor import partial_gang
from pumice.proof.storm.invariants.pod_book import PodBook
from pumice.proof.storm.invariants.truth import StormTruth
from pumice.storage import codec
from tests.actors.cluster import Cluster
from tests.kit import queues
from tests.kit.pod_groups import pod_group

GROUP = "scheduling.k8s.io/group-name"
JOBS, QUEUES, NODES = ("a", "b"), ("q", "r"), ("n", "m")


def pod(
    number: int, job: str, node: str, phase: str, *, cpu: int, port: Object | None = None, deleting: bool = False
) -> Object:
    container: Object = {"resources": {"requests": {"cpu": str(cpu)}}, "ports": [port] if port else []}
    meta: Object = {"namespace": "d", "name": f"p{number}", "uid": f"u{number}", "annotations": {GROUP: job}}
    if deleting:
        meta["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    return {
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], **({"nodeName": node} if node else {})},
        "status": {"phase": phase},
    }


def node(name: str, cpu: int, pods: int) -> Object:
    return {
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": str(cpu), "pods": str(pods)}},
    }


def group(job: str, queue: str) -> Object:
    return {"kind": "PodGroup", "metadata": {"namespace": "d", "name": job}, "spec": {"minMember": 2, "queue": queue}}


def queue(name: str, cpu: int) -> Object:
    return {"kind": "Queue", "metadata": {"name": name}, "spec": {"capability": {"cpu": str(cpu)}}}


HOST_PORTS = (
    {"hostPort": 80},
    {"hostPort": 80, "protocol": "UDP"},
    {"hostPort": 80, "hostIP": "10.0.0.1"},
    {"hostPort": 80, "hostIP": "10.0.0.2"},
    {"hostPort": 81},
)
PODS = st.builds(
    pod,
    st.integers(0, 3),
    st.sampled_from(JOBS),
    st.sampled_from(("", *NODES, *NODES)),
    st.sampled_from(("Pending", "Running", "Running", "Failed")),
    cpu=st.integers(0, 3),
    port=st.sampled_from((None, *HOST_PORTS)),
    deleting=st.booleans(),
)
OTHERS = st.one_of(
    st.builds(node, st.sampled_from(NODES), st.integers(1, 6), st.integers(1, 4)),
    st.builds(group, st.sampled_from(JOBS), st.sampled_from(QUEUES)),
    st.builds(queue, st.sampled_from(QUEUES), st.integers(1, 6)),
)
FIRST = [node("n", 5, 3), node("m", 5, 3), group("a", "q"), group("b", "r"), queue("q", 3), queue("r", 4)]
CHANGES = st.lists(st.tuples(st.one_of(PODS, PODS, OTHERS), st.integers(0, 4)), min_size=4, max_size=25)


def excesses(truth: StormTruth, placed: PodBook, leaving: frozenset[str]) -> set[tuple[str, str]]:
    """Invariant and resource, by walking over everything; as of the newest revision."""
    found: set[tuple[str, str]] = set()
    there = [each for each in truth.pods.values() if each.on_node and each.node == placed.node]
    allowed = truth.nodes[placed.node].last if placed.node in truth.nodes else None
    if allowed is not None:
        asked = {name: most for name, most in allowed.items() if placed.requests.get(name)}
        found |= {("within-allocatable", name) for name in beyond(there, asked)}
    if any(each is not placed and clash(each, placed) for each in there):
        found.add(("within-allocatable", "port"))

    def in_queue(each: PodBook) -> str:
        history = truth.groups.get(each.job)
        return history.last[1] if history is not None and history.last is not None else ""

    limits = truth.queues[in_queue(placed)].last if in_queue(placed) in truth.queues else None
    staying = [each for each in truth.pods.values() if each.on_node and not each.deleting and each.uid not in leaving]
    members = [each for each in staying if in_queue(each) == in_queue(placed)]
    return found | {("within-capability", name) for name in beyond(members, limits or {})}


def clash(one: PodBook, other: PodBook) -> bool:
    """Of pods with one port at most."""
    (address, *port), (elsewhere, *another) = [*one.ports, ("", "")][0], [*other.ports, ("", 0)][0]
    return port == another and (address == elsewhere or "0.0.0.0" in (address, elsewhere))


def beyond(pods: list[PodBook], limits: dict[str, int]) -> set[str]:
    return {name for name, limit in limits.items() if sum(each.requests.get(name, 0) for each in pods) > limit}


@settings(max_examples=300, deadline=None)
@given(CHANGES, st.frozensets(st.sampled_from(("u0", "u1", "u2", "u3"))))
def test_the_judge_finds_what_a_walk_over_all_pods_finds(
    changes: list[tuple[Object, int]], leaving: frozenset[str]
) -> None:
    truth = StormTruth()
    for revision, (obj, dice) in enumerate([*((each, 1) for each in FIRST), *changes], 1):
        meta = obj["metadata"]
        type_ = "DELETED" if dice == 0 else "MODIFIED"
        name = (meta.get("namespace", ""), meta["name"])
        truth.apply(Mutation(revision, type_, obj["kind"], *name, codec.pack(obj)))
        for placed in truth.pods.values():
            if placed.on_node:
                judged = {
                    (invariant, "port" if "port" in words else words.split(": ")[1].split()[0])
                    for invariant, words in truth.judge(placed, revision, leaving)
                }
                assert judged == excesses(truth, placed, leaving)


def test_a_gang_counts_its_own_members() -> None:
    truth = StormTruth()
    mine, other = pod(1, "a", "n", "Running", cpu=1), pod(2, "b", "n", "Running", cpu=1)
    for revision, obj in enumerate((group("a", "q"), mine, other), 1):
        meta = obj["metadata"]
        truth.apply(Mutation(revision, "ADDED", obj["kind"], meta["namespace"], meta["name"], codec.pack(obj)))
    assert partial_gang(truth, "d/a", set(), 3) == "gang d/a needs 2, 1 are placed or on their way"
    moved = {**other, "metadata": {**other["metadata"], "annotations": {GROUP: "a"}}}
    truth.apply(Mutation(4, "MODIFIED", "Pod", "d", "p2", codec.pack(moved)))
    assert partial_gang(truth, "d/a", set(), 4) == ""


def test_a_group_or_queue_is_read_again_when_its_spec_has_changed_between_statuses() -> None:
    cluster, truth = Cluster(), StormTruth()
    cluster.create(pod_group("g", min_member=2))
    cluster.create(queues.queue("q", capability={"cpu": "4"}))
    cluster.status("PodGroup", "g", {"phase": "Running"})
    cluster.status("Queue", "q", {"running": 1}, "")
    cluster.patch("PodGroup", "g", {"spec": {"minMember": 3}})
    cluster.patch("Queue", "q", {"spec": {"capability": {"cpu": "8"}}}, "")
    cluster.status("PodGroup", "g", {"phase": "Unknown"})
    cluster.status("Queue", "q", {"running": 0}, "")
    cluster.delete("PodGroup", "g")
    for mutation in cluster.journal:
        truth.apply(mutation)
    assert [value and value[0] for value in truth.groups["default/g"].since(0)] == [2, 3, None]
    assert truth.queues["q"].since(0) == [{"cpu": 4000}, {"cpu": 8000}]


def test_a_pod_that_ends_before_it_has_a_node_is_noted_as_gone() -> None:
    truth = StormTruth()
    for revision, phase in enumerate(("Pending", "Failed"), 1):
        obj = pod(1, "a", "", phase, cpu=1)
        truth.apply(Mutation(revision, "ADDED" if revision == 1 else "MODIFIED", "Pod", "d", "p1", codec.pack(obj)))
    assert [(revision, gone.phase) for revision, gone in truth.went] == [(2, "Pending")]
