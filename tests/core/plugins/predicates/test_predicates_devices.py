"""Claims for devices: what a node must offer, and what placed pods have reserved."""

import re
from typing import TYPE_CHECKING, Any

import pytest

from pumice.core.cycle import run_action
from pumice.core.kube.devices import DeviceId, constraints_of, requests_of
from pumice.core.life.task import TaskStatus
from pumice.core.objects.metadata import Object
from pumice.core.plugins.predicates.dynamic_resources import DynamicResources
from pumice.core.session.reasons import FitFailure
from tests.core.kube.sessions import opened, task_named, texts
from tests.core.plugins.world import configuration, job_of, open_world, task_of
from tests.kit import gang, node, pod_group, queue

if TYPE_CHECKING:
    from pumice.core.session.session import Session

DRA = ("dra-switch",)
GROUP = {"scheduling.k8s.io/group-name": "j"}
DRIVER = "gpu.example.com"
SHORT, ELSEWHERE = "cannot allocate all claims", "resourceclaim not available on the node"
CLASS: Object = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}


def offer(name: str, where: Object, *devices: Object, pool: str = "", generation: int = 1, slices: int = 1) -> Object:
    """A ResourceSlice; `where` says for which nodes it is."""
    known = {"name": pool or name, "generation": generation, "resourceSliceCount": slices}
    spec = {"driver": DRIVER, "pool": known, "devices": list(devices)} | where
    return {"kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def device(name: str, **attributes: Any) -> Object:
    kinds = {bool: "bool", int: "int", str: "string"}
    return {"name": name, "attributes": {key: {kinds[type(v)]: v} for key, v in attributes.items()}}


def asks(name: str = "r", **more: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": "gpu"} | more}


def claim(
    name: str, *requests: Object, constraints: list[Object] | None = None, status: Object | None = None
) -> Object:
    devices = {"requests": list(requests), "constraints": constraints or []}
    meta = {"name": name, "namespace": "a"}
    return {"kind": "ResourceClaim", "metadata": meta, "spec": {"devices": devices}, "status": status or {}}


def pod_with(name: str, *claims: str) -> Object:
    listed = [{"name": c, "resourceClaimName": c} for c in claims]
    spec = {"containers": [{"name": "c"}], "resourceClaims": listed}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "a"}, "spec": spec, "status": {"phase": "Pending"}}


def selects(expression: str) -> list[Object]:
    return [{"cel": {"expression": expression}}]


def answers(resources: DynamicResources, session: "Session", name: str = "p") -> list[str]:
    return texts(session, resources.prepare(session, task_named(session, f"a/{name}")))


def judged(*objects: Object, nodes: int = 2) -> list[str]:
    """What each node says to pod p with claim c."""
    session = opened(*(node(f"n{i}") for i in range(nodes)), CLASS, *objects, pod_with("p", "c"))
    return answers(DynamicResources(session), session)


ON_N0: Object = {"nodeName": "n0"}


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        ([], [SHORT, SHORT]),
        ([offer("s", ON_N0, device("d"))], ["", SHORT]),
        ([offer("s", {"allNodes": True}, device("d"))], ["", ""]),
        ([offer("s", ON_N0, device("d"), slices=2)], [SHORT, SHORT]),  # half a pool is none
        (
            [offer("s", ON_N0, device("d")), offer("t", {"nodeName": "n1"}, device("d"), pool="s", generation=2)],
            [SHORT, ""],
        ),
        ([offer("s", {"perDeviceNodeSelection": True}, device("d") | {"nodeName": "n1"})], [SHORT, ""]),
    ],
)
def test_which_nodes_a_slice_is_for(slices: list[Object], expected: list[str]) -> None:
    assert judged(*slices, claim("c", asks())) == expected


def test_a_slice_may_select_its_nodes() -> None:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}
    where = {"nodeSelector": {"nodeSelectorTerms": [term]}}
    assert judged(offer("s", where, device("d")), claim("c", asks())) == [SHORT, ""]


HEALTHY = f"device.attributes['{DRIVER}'].healthy"
SAME = {"matchAttribute": f"{DRIVER}/numa"}


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (asks(count=2), ""),
        (asks(count=3), SHORT),
        (asks(allocationMode="All"), ""),
        (asks(selectors=selects(HEALTHY)), ""),
        (asks(count=2, selectors=selects(HEALTHY)), SHORT),
        (asks(selectors=selects("device.attributes['x'].y")), "no such key: y"),
        ({"name": "r", "firstAvailable": [{"name": "many", "deviceClassName": "gpu", "count": 9}]}, SHORT),
        (
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "many", "deviceClassName": "gpu", "count": 9},
                    {"name": "one", "deviceClassName": "gpu"},
                ],
            },
            "",
        ),
    ],
)
def test_what_a_request_needs(request_: Object, expected: str) -> None:
    two = offer("s", ON_N0, device("d0", healthy=True), device("d1", healthy=False))
    assert judged(two, claim("c", request_), nodes=1) == [expected]


def test_devices_of_one_claim_may_have_to_agree() -> None:
    devices = [device("d0", numa=0), device("d1", numa=1), device("d2", numa=1), device("d3")]
    offered = offer("s", ON_N0, *devices)
    assert judged(offered, claim("c", asks("x"), asks("y"), constraints=[SAME]), nodes=1) == [""]
    assert judged(offered, claim("c", asks(count=3), constraints=[SAME]), nodes=1) == [SHORT]
    only = claim("c", asks("x"), asks("y", count=3), constraints=[SAME | {"requests": ["x"]}])
    assert judged(offered, only, nodes=1) == [""]


def test_choices_are_taken_back_when_a_later_request_needs_them() -> None:
    devices = [device("d0", kind="fast"), device("d1", kind="slow")]
    fast = asks("fast", selectors=selects(f"device.attributes['{DRIVER}'].kind == 'fast'"))
    session = opened(node("n0"), CLASS, offer("s", ON_N0, *devices), claim("c", asks("any"), fast), pod_with("p", "c"))
    resources = DynamicResources(session)
    assert resources.reserve(task_named(session, "a/p"), 0) is None
    devices_of = {claim: [given.device for given in chosen] for claim, chosen in resources.reserved.items()}
    assert devices_of == {"a/c": [DeviceId(DRIVER, "s", "d1"), DeviceId(DRIVER, "s", "d0")]}


def test_devices_in_use_are_not_to_be_had() -> None:
    results = [{"driver": DRIVER, "pool": "s", "device": "d"}]
    used = claim("used", asks(), status={"allocation": {"devices": {"results": results}}})
    assert judged(offer("s", ON_N0, device("d")), used, claim("c", asks()), nodes=1) == [SHORT]


def test_an_allocated_claim_is_where_its_devices_are() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    status = {"allocation": {"nodeSelector": {"nodeSelectorTerms": [term]}}}
    assert judged(claim("c", asks(), status=status)) == [ELSEWHERE, ""]


def test_placed_pods_reserve_devices_until_they_are_taken_off() -> None:
    objects = [offer("s", ON_N0, device("d")), claim("c", asks()), claim("e", asks())]
    session = opened(node("n0"), CLASS, *objects, pod_with("p", "c"), pod_with("q", "e"), pod_with("same", "c"))
    resources, first = DynamicResources(session), task_named(session, "a/p")
    assert resources.reserve(first, 0) is None
    assert answers(resources, session, "q") == [SHORT]
    assert resources.reserve(task_named(session, "a/q"), 0) == "claim allocation not found for node"
    promised = "plugin DynamicResources pre-predicates failed resource claim a/c is in the process of being allocated"
    with pytest.raises(FitFailure, match=re.escape(promised)):
        answers(resources, session, "same")
    resources.refuses_by_node = True
    assert answers(resources, session, "same") == [promised]
    resources.unreserve(first)
    assert answers(resources, session, "q") == [""]


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([], 'resourceclaim.resource.k8s.io "c" not found'),
        (
            [claim("c", {"name": "r", "exactly": {"deviceClassName": "tpu"}})],
            "request r: device class tpu does not exist",
        ),
        (
            [claim("c", status={"allocation": {}, "reservedFor": [{"uid": str(i)} for i in range(256)]})],
            "resourceclaim in use",
        ),
    ],
)
def test_what_fails_before_any_node_is_asked(objects: list[Object], text: str) -> None:
    with pytest.raises(FitFailure) as failure:
        judged(*objects)
    assert failure.value.reason.text == f"plugin DynamicResources pre-predicates failed {text}"


def test_a_pod_without_claims_is_not_asked() -> None:
    session = opened(node("n0"), pod_with("p"))
    resources = DynamicResources(session)
    assert resources.prepare(session, task_named(session, "a/p")) is None
    assert resources.reserve(task_named(session, "a/p"), 0) is None
    assert resources.version == 0


@pytest.mark.parametrize(("fix", "switch", "refused"), [((), False, True), (DRA, True, True), (DRA, False, False)])
def test_the_switch_of_claims(fix: tuple[str, ...], switch: bool, refused: bool) -> None:
    arguments = {"predicate.DynamicResourceAllocationEnable": switch}
    config = configuration([{"name": "predicates", "arguments": arguments}], fix=fix)
    wanting = {**pod_with("p", "c"), "metadata": {"name": "p", "namespace": "a", "annotations": GROUP}}
    session = open_world(config, node("n"), queue("q"), pod_group("j", queue="q", namespace="a"), wanting)
    if refused:
        with pytest.raises(FitFailure, match="c"):
            session.search_for(task_of(session, "p", "a"))
    else:
        assert session.search_for(task_of(session, "p", "a"), room=False).codes.tolist() == [0]


def brought(name: str, told: list[Object], owner: str = "a/p") -> list[str]:
    """What nodes say to a pod with a claim from a template, as its status tells of it."""
    owners = [{"kind": "Pod", "name": "p", "uid": owner, "controller": True}]
    made = claim(name, asks())
    made["metadata"]["ownerReferences"] = owners
    wanting = pod_with("p")
    wanting["spec"]["resourceClaims"] = [{"name": "own", "resourceClaimTemplateName": "t"}]
    wanting["status"]["resourceClaimStatuses"] = told
    session = opened(node("n0"), node("n1"), CLASS, offer("s", {"nodeName": "n1"}, device("d")), made, wanting)
    return answers(DynamicResources(session), session)


def test_a_claim_from_a_template_has_the_name_that_the_status_tells() -> None:
    told = [{"name": "own", "resourceClaimName": "p-own-x"}]
    assert brought("p-own-x", told) == [SHORT, ""]
    assert brought("p-own-x", [{"name": "own"}]) == ["", ""], "it needs none after all"
    for statuses, owner, words in (
        ([], "a/p", "pod a/p: ResourceClaim not created yet"),
        ([{"name": "other", "resourceClaimName": "p-own-x"}], "a/p", "pod a/p: ResourceClaim not created yet"),
        (told, "u-9", "ResourceClaim a/p-own-x was not created for pod a/p (pod is not owner)"),
    ):
        with pytest.raises(FitFailure, match=re.escape(words)):
            brought("p-own-x", statuses, owner)


def shared_claim_world(fix: tuple[str, ...] = ()) -> "Session":
    """A gang of two whose pods share a claim, with room and a device for it on n0, and another node without one."""
    pods = gang("j", queue="q", pods=2, phase="Inqueue")
    for each in pods[1:]:
        each["spec"]["resourceClaims"] = [{"name": "r", "resourceClaimName": "c"}]
    wanted = claim("c", asks()) | {"metadata": {"name": "c", "namespace": "default"}}
    config = configuration(["gang"], ["predicates"], fix=fix)
    return open_world(config, node("n0"), node("n1"), CLASS, offer("s", ON_N0, device("d")), wanted, queue("q"), pods)


@pytest.mark.parametrize(
    ("fix", "promised", "told"),
    [
        ((), ["j-0"], "2 plugin DynamicResources pre-predicates failed resource claim default/c is in the process of"),
        (("claims-in-flight-refuse-by-node",), [], "1 cannot allocate all claims, 1 plugin DynamicResources"),
    ],
)
def test_claim_in_flight_refuses_the_pod_before_any_node(fix: tuple[str, ...], promised: list[str], told: str) -> None:
    """So the cache of errors learns nothing, and preempt tries the first pod again for itself alone."""
    session = shared_claim_world(fix)
    run_action(session, "allocate")
    run_action(session, "preempt")
    tasks = [task_of(session, f"j-{i}") for i in range(2)]
    assert [t.name for t in tasks if session.jobs.status[t.row] == TaskStatus.PIPELINED] == promised
    assert told in session.fit.task_reason(job_of(session, "j"), tasks[1])[1]


def test_answers_to_claims_that_ask_alike_follow_every_reservation() -> None:
    """One GPU on each of four nodes, two on the last: answers are kept, and equal fresh ones after each change."""
    slices = [offer(f"s{i}", {"nodeName": f"n{i}"}, device("d")) for i in range(4)]
    wide = offer("wide", {"nodeName": "n3"}, device("e"), pool="wide")
    claims = [claim(f"c{i}", asks()) for i in range(5)]
    pods = [pod_with(f"p{i}", f"c{i}") for i in range(5)]
    session = opened(*(node(f"n{i}") for i in range(4)), CLASS, *slices, wide, *claims, *pods)
    resources = DynamicResources(session)

    def agree(pod: int) -> list[bool]:
        found = [text == "" for text in answers(resources, session, f"p{pod}")]
        asked = [(requests_of(claims[pod], {"gpu": CLASS}), constraints_of(claims[pod]))]
        assert found == [resources.choose(row, asked) is not None for row in range(4)]
        return found

    assert agree(4) == [True, True, True, True]
    for pod, row in enumerate((0, 3, 3)):
        assert resources.reserve(task_named(session, f"a/p{pod}"), row) is None
    assert agree(4) == [False, True, True, False]
    resources.unreserve(task_named(session, "a/p1"))
    assert agree(4) == [False, True, True, True]
    assert agree(3) == [False, True, True, True]
