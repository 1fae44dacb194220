"""Whatever is sent as a body: an answer below 500, and a Status when it is refused."""

import copy
from typing import Any, cast

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.test_recorded import story
from tests.kit.answers import object_of

VOLCANO = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}, "ports": [{"containerPort": 80}]}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "p-", "namespace": "default", "labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {"containers": [CONTAINER], "tolerations": [{"key": "k", "operator": "Exists"}], "schedulerName": "nobody"},
    "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]},
}
VALID: dict[str, dict[str, Any]] = {
    "/api/v1/namespaces/default/pods": POD,
    "/api/v1/nodes": {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"generateName": "n-"},
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "8", "memory": "1Gi", "pods": "1"}, "conditions": []},
    },
    "/api/v1/namespaces/default/configmaps": {"metadata": {"generateName": "c-"}, "data": {"a": "b"}},
    "/api/v1/namespaces/default/services": {
        "metadata": {"generateName": "s-"},
        "spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": {"a": "b"}},
    },
    "/api/v1/namespaces/default/events": {
        "metadata": {"generateName": "e-"},
        "involvedObject": {"kind": "Pod", "name": "p"},
        "count": 1,
        "series": {"count": 2},
    },
    "/apis/apps/v1/namespaces/default/deployments": {
        "metadata": {"generateName": "d-"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": POD},
    },
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": {
        "metadata": {"generateName": "b-"},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
    },
    "/apis/scheduling.volcano.sh/v1beta1/queues": {
        "metadata": {"generateName": "q-"},
        "spec": {"weight": 1, "parent": "root", "capability": {"cpu": "1"}, "reclaimable": True},
    },
    "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups": {
        "metadata": {"generateName": "g-"},
        "spec": {"minMember": 1, "queue": "default", "minResources": {"cpu": "1"}},
        "status": {"phase": "Pending"},
    },
    VOLCANO: {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"generateName": "j-"},
        "spec": {
            "minAvailable": 1,
            "queue": "default",
            "tasks": [{"name": "t", "replicas": 1, "policies": [{"event": "PodFailed", "action": "AbortJob"}]}],
            "plugins": {"env": []},
        },
    },
    "/apis/topology.volcano.sh/v1alpha1/hypernodes": {
        "metadata": {"generateName": "h-"},
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]},
    },
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {
        "metadata": {"name": "fuzzes.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "fuzzes", "kind": "Fuzz"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
                }
            ],
        },
    },
    "/api/v1/namespaces/default/limitranges": {
        "metadata": {"generateName": "l-"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "100"}}]},
    },
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": {
        "metadata": {"generateName": "o-"},
        "spec": {"holderIdentity": "a", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15},
    },
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": {
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    },
}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        -1,
        2**31,
        2**63,
        2**70,
        1e400,
        -0.5,
        "",
        "x" * 300,
        "é\x00",
        "1Ei",
        "-1",
        "50%",
        "a/b",
        [],
        {},
    ]
)
JSON = st.recursive(
    ODD | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
NAMES = "name namespace resourceVersion uid finalizers ownerReferences deletionTimestamp managedFields kind apiVersion"
KEYS = st.sampled_from(["spec", "status", "metadata", *NAMES.split()])
PROTOBUF = [step for step in story() if step.protobuf and step.method != "DELETE"]
FUZZ = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    keys: Any = ()
    if isinstance(value, dict):
        keys = sorted(cast("dict[str, Any]", value))
    elif isinstance(value, list):
        keys = range(len(cast("Any", value)))
    return [path, *(deeper for key in keys for deeper in places(value[key], (*path, key)))]


@st.composite
def mutated(draw: st.DrawFn, valid: dict[str, Any]) -> Any:
    """A document with one to three places replaced, removed or added to."""
    document: Any = copy.deepcopy(valid)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(document)))
        if not path:
            document[draw(KEYS)] = draw(JSON)
            continue
        holder: Any = document
        for key in path[:-1]:
            holder = holder[key]
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "remove":
                del holder[path[-1]]
            case "add" if isinstance(holder, dict):
                holder[draw(KEYS)] = draw(JSON)
            case _:
                holder[path[-1]] = draw(JSON)
    return document


def encoded(document: Any) -> bytes:
    """As JSON; what JSON cannot say (infinity) is left to Python's way of saying it."""
    try:
        return msgspec.json.encode(document)
    except (msgspec.MsgspecError, ValueError, OverflowError):
        return repr(document).encode()


def check(answer: httpx.Response) -> None:
    """Not our fault, and said as Kubernetes says it."""
    assert answer.status_code < 500, f"{answer.request.method} {answer.request.url}: {answer.text}"
    found = object_of(answer)
    if answer.status_code >= 400:
        assert (found["kind"], found["status"], found["code"]) == ("Status", "Failure", answer.status_code)
        assert found["message"]


@FUZZ
@given(st.data())
def test_no_object_breaks_a_create(http: httpx.Client, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(VALID)))
    body = encoded(data.draw(mutated(VALID[path])))
    query = data.draw(st.sampled_from(["", "?fieldValidation=Strict", "?fieldValidation=Warn&dryRun=All", "?dryRun=x"]))
    check(http.post(path + query, content=body, headers={"content-type": "application/json"}))


@FUZZ
@given(st.data())
def test_no_object_breaks_an_update(http: httpx.Client, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([path for path in sorted(VALID) if "review" not in path]))
    document = data.draw(mutated(VALID[path]))
    sub = data.draw(st.sampled_from(["", "/status"]))
    made = http.post(path, json=VALID[path])
    name = made.json()["metadata"]["name"] if made.status_code == 201 else "fuzzes.example.com"
    live = http.get(f"{path}/{name}")
    if live.status_code == 200 and isinstance(document.get("metadata"), dict):
        document["metadata"] = {**live.json()["metadata"], **document["metadata"]}
    check(http.put(f"{path}/{name}{sub}", content=encoded(document), headers={"content-type": "application/json"}))
    check(http.get(f"{path}/{name}", headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}))


PATCHES = ("merge-patch+json", "json-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
OPERATION = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "?"])},
    optional={
        "path": st.sampled_from(
            ["", "/", "/metadata/labels/a", "/spec", "/spec/containers/0", "/x/-", "/metadata", "a"]
        ),
        "from": st.sampled_from(["/spec", "/metadata/name", "/x"]),
        "value": JSON,
    },
)


@FUZZ
@given(st.data())
def test_no_patch_breaks_an_object(http: httpx.Client, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([path for path in sorted(VALID) if "review" not in path]))
    made = http.post(path, json=VALID[path])
    name = made.json()["metadata"]["name"] if made.status_code == 201 else "fuzzes.example.com"
    form = data.draw(st.sampled_from(PATCHES))
    body = data.draw(st.lists(OPERATION, max_size=4) if form == "json-patch+json" else mutated(VALID[path]) | JSON)
    query = "?fieldManager=fuzz&force=true" if form == "apply-patch+yaml" else ""
    headers = {"content-type": f"application/{form}"}
    check(http.patch(f"{path}/{name}{query}", content=encoded(body), headers=headers))
    http.delete(f"{path}/{name}")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@FUZZ
@given(data=st.data())
def test_no_bytes_break_a_request(http: httpx.Client, method: str, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(VALID)))
    content = data.draw(st.sampled_from(["application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
                                         "application/cbor", "", "text/plain; charset=x", *PATCHES]))  # fmt: skip
    body = data.draw(st.binary(max_size=60) | st.binary(max_size=40).map(lambda tail: b"k8s\x00" + tail))
    target = path if method == "POST" else f"{path}/nobody"
    check(http.request(method, target, content=body, headers={"content-type": content} if content else {}))


@FUZZ
@given(st.data())
def test_no_broken_protobuf_breaks_a_create(http: httpx.Client, data: st.DataObject) -> None:
    """Bodies as client-go sends them, with a few bytes cut out, put in or changed."""
    step = data.draw(st.sampled_from(PROTOBUF))
    body = bytearray(step.body)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(4, len(body) - 1))
        body[start : start + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    check(http.request(step.method, step.path, content=bytes(body), headers=step.headers))


@FUZZ
@given(st.sampled_from(sorted(VALID)), st.text(max_size=20), st.text(max_size=20), st.text(max_size=8))
def test_no_query_breaks_a_list(http: httpx.Client, path: str, labels: str, fields: str, token: str) -> None:
    for query in (
        {"labelSelector": labels, "fieldSelector": fields},
        {"limit": token},
        {"continue": token},
        {"resourceVersion": token},
    ):
        answer = http.get(path, params=query)
        assert answer.status_code < 500, answer.text
