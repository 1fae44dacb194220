"""POST, PUT, PATCH, DELETE, and what hangs below a pod."""

from typing import Any

import pytest
import yaml

from pumice.core.messages.events import Mutation
from pumice.storage.memory import MemoryJournal
from tests.actors.gateway.rig import PODS, QUEUES, Web, pod_of, serving
from tests.actors.rig import journaled
from tests.kit.nodes import node

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"

pytestmark = pytest.mark.anyio


async def patched(web: Web, path: str, body: Any, code: int = 200, media: str = MERGE) -> dict[str, Any]:
    return await web.send("PATCH", path, body, code, **{"content-type": media})


async def test_create_fills_in_what_the_path_says() -> None:
    async with serving() as web:
        made = await web.send("POST", QUEUES, {"metadata": {"name": "q"}, "spec": {"weight": 2}}, 201)
        assert (made["kind"], made["apiVersion"]) == ("Queue", "scheduling.volcano.sh/v1beta1")
        again = await web.send("POST", QUEUES, {"metadata": {"name": "q"}}, 409)
        assert again["reason"] == "AlreadyExists"
        named = await web.send("POST", PODS, {**pod_of(""), "metadata": {"generateName": "x-"}}, 201)
        assert named["metadata"]["name"].startswith("x-")
        assert named["metadata"]["namespace"] == "default"


@pytest.mark.parametrize(
    ("body", "code", "told"),
    [
        ({"kind": "Queue"}, 400, "does not match the expected kind (Pod)"),
        ({"apiVersion": "v2"}, 400, "does not match the expected API version (v1)"),
        ({"metadata": {"name": "a", "namespace": "other"}}, 400, "the namespace of the provided object"),
        ({"metadata": 3}, 400, "metadata"),
        ([], 400, "expected an object"),
        (b"{", 400, "not JSON"),
        (
            b'{"metadata": {"name": "a", "generation": 99999999999999999999999}}',
            422,
            "metadata.generation: Invalid",
        ),
        (b"[" * 5000, 400, ""),
        ({"metadata": {"name": "A"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, 422, "metadata.name"),
    ],
)
async def test_bad_bodies(body: Any, code: int, told: str) -> None:
    async with serving() as web:
        refused = await web.send("POST", PODS, body, code)
        assert told in refused["message"]
        assert (refused["kind"], refused["status"], refused["code"]) == ("Status", "Failure", code)


async def test_bodies_of_other_types() -> None:
    async with serving() as web:
        text = yaml.safe_dump(pod_of("z")).encode()
        made = await web.send("POST", PODS, text, 201, **{"content-type": "application/yaml"})
        assert made["metadata"]["name"] == "z"
        await web.send("POST", PODS, b"a: [", 400, **{"content-type": "application/yaml"})
        await web.send("POST", PODS, b"a: 1\n---\nb: 2\n", 400, **{"content-type": "application/yaml"})
        refused = await web.send("POST", PODS, b"<xml/>", 415, **{"content-type": "text/xml"})
        assert refused["reason"] == "UnsupportedMediaType"


async def test_a_body_that_is_too_large() -> None:
    async with serving(body_limit=1000) as web:
        for headers in ({}, {"transfer-encoding": "chunked"}):
            refused = await web.send("POST", PODS, b" " * 2000, 413, **headers)
            assert refused["reason"] == "RequestEntityTooLarge"
        assert (await web.get(PODS))["items"] == []


async def test_dry_run() -> None:
    async with serving() as web:
        made = await web.send("POST", f"{PODS}?dryRun=All", pod_of("a"), 201)
        assert made["metadata"]["uid"]
        await web.send("GET", f"{PODS}/a", code=404)
        await web.send("POST", f"{PODS}?dryRun=Some", pod_of("a"), 422)
        await web.create_pods("b")
        assert (await patched(web, f"{PODS}/b?dryRun=All", {"metadata": {"labels": {"x": "y"}}}))["metadata"]["labels"]
        await web.send("DELETE", f"{PODS}/b?dryRun=All")
        assert (await web.get(f"{PODS}/b"))["metadata"]["labels"] == {}


async def test_replace_and_conflicts() -> None:
    async with serving() as web:
        await web.send("POST", QUEUES, {"metadata": {"name": "q"}, "spec": {"weight": 1}}, 201)
        first = await web.get(f"{QUEUES}/q")
        second = await web.send("PUT", f"{QUEUES}/q", {**first, "spec": {**first["spec"], "weight": 5}})
        assert second["spec"]["weight"] == 5
        stale = await web.send("PUT", f"{QUEUES}/q", {**first, "spec": {**first["spec"], "weight": 6}}, 409)
        assert stale["reason"] == "Conflict"
        same = await web.send("PUT", f"{QUEUES}/q", second)
        assert same["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
        await web.send("PUT", f"{QUEUES}/other", first, 400)
        bodies: list[dict[str, Any]] = [{}, {"metadata": {}}, {"metadata": {"name": None}}, {"spec": {"weight": 7}}]
        for nameless in bodies:
            refused = await web.send("PUT", f"{QUEUES}/q", nameless, 400)
            assert refused["message"].endswith("name must be provided")
        assert (await web.get(f"{QUEUES}/q"))["spec"]["weight"] == 5


async def test_patches() -> None:
    async with serving() as web:
        await web.create_pods("a")
        merged = await patched(web, f"{PODS}/a", {"metadata": {"labels": {"x": "1", "y": "2"}}})
        assert merged["metadata"]["labels"] == {"x": "1", "y": "2"}
        operations = [{"op": "remove", "path": "/metadata/labels/x"}]
        assert (await patched(web, f"{PODS}/a", operations, media=JSON_PATCH))["metadata"]["labels"] == {"y": "2"}
        await patched(web, f"{PODS}/a", {}, 400, JSON_PATCH)
        await patched(web, f"{PODS}/a", [], 400)
        await patched(web, f"{PODS}/a", {}, 415, "application/json")
        await patched(web, f"{PODS}/a?force=true", {}, 422)
        await patched(web, f"{PODS}/a", {}, 422, "application/apply-patch+yaml")
        await patched(web, f"{PODS}/x", {}, 404)
        refused = await patched(web, f"{QUEUES}/default", {}, 415, "application/strategic-merge-patch+json")
        assert refused["reason"] == "UnsupportedMediaType"


async def test_status_is_apart() -> None:
    async with serving() as web:
        await web.create_pods("a")
        status = {"status": {"phase": "Running"}}
        assert (await patched(web, f"{PODS}/a", status))["status"]["phase"] == "Pending"
        assert (await patched(web, f"{PODS}/a/status", status))["status"]["phase"] == "Running"
        whole = await web.get(f"{PODS}/a/status")
        put = await web.send("PUT", f"{PODS}/a/status", {**whole, "status": {"phase": "Failed"}})
        assert put["status"]["phase"] == "Failed"
        await web.send("DELETE", f"{PODS}/a/status", code=405)


async def test_delete() -> None:
    async with serving() as web:
        (made,) = await web.create_pods("a")
        other = {"preconditions": {"uid": "other"}}
        assert (await web.send("DELETE", f"{PODS}/a", other, 409))["reason"] == "Conflict"
        await web.send("DELETE", f"{PODS}/a", {"propagationPolicy": "Sideways"}, 422)
        await web.send("DELETE", f"{PODS}/a?gracePeriodSeconds=x", code=400)
        await web.send("DELETE", f"{PODS}/a", {"preconditions": {"uid": made["metadata"]["uid"]}})
        await web.send("DELETE", f"{PODS}/a", code=404)
        await web.send("POST", QUEUES, {"metadata": {"name": "q"}}, 201)


async def test_a_finalizer_keeps_an_object() -> None:
    async with serving() as web:
        await web.send("POST", PODS, {**pod_of("a"), "metadata": {"name": "a", "finalizers": ["x.io/y"]}}, 201)
        gone = await web.send("DELETE", f"{PODS}/a")
        assert gone["metadata"]["deletionTimestamp"]
        await patched(web, f"{PODS}/a", {"metadata": {"finalizers": None}})
        await web.send("GET", f"{PODS}/a", code=404)


async def test_delete_many() -> None:
    async with serving() as web:
        await web.create_pods("a", "b", app="x")
        await web.create_pods("c")
        assert (await web.send("DELETE", f"{PODS}?labelSelector=app"))["status"] == "Success"
        assert [item["metadata"]["name"] for item in (await web.get(PODS))["items"]] == ["c"]


async def test_binding_and_eviction() -> None:
    async with serving() as web:
        await web.send("POST", "/api/v1/nodes", node("n0"), 201)
        (made,) = await web.create_pods("a")
        metadata = {"name": "a", "namespace": "default", "uid": made["metadata"]["uid"], "annotations": {"k": "v"}}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"kind": "Node", "name": "n0"},
        }
        done = await web.send("POST", f"{PODS}/a/binding", binding, 201)
        assert (done["kind"], done["status"]) == ("Status", "Success")
        bound = await web.get(f"{PODS}/a")
        assert bound["spec"]["nodeName"] == "n0"
        assert bound["metadata"]["annotations"]["k"] == "v"
        elsewhere = {**binding, "target": {"name": "n1"}}
        assert (await web.send("POST", f"{PODS}/a/binding", elsewhere, 409))["reason"] == "Conflict"
        await web.send("POST", f"{PODS}/a/binding", {"metadata": {}}, 400)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": "default"}}
        await web.send("POST", f"{PODS}/a/eviction", {**eviction, "metadata": {"name": "b"}}, 400)
        await web.send("POST", f"{PODS}/a/eviction", eviction, 201)
        await web.send("GET", f"{PODS}/a/eviction", code=405)


async def test_a_budget_forbids_an_eviction() -> None:
    async with serving() as web:
        await web.create_pods("a", app="x")
        await patched(web, f"{PODS}/a/status", {"status": {"phase": "Running", "conditions": [READY]}})
        budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
        await web.send("POST", budgets, {"metadata": {"name": "b"}, "spec": spec}, 201)
        refused = await web.send("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, 429)
        assert refused["details"]["causes"][0]["reason"] == "DisruptionBudget"


READY = {"type": "Ready", "status": "True"}


async def test_scale() -> None:
    async with serving() as web:
        base = "/apis/apps/v1/namespaces/default/deployments"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod_of("x")["spec"]}
        spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        await web.send("POST", base, {"metadata": {"name": "d"}, "spec": spec}, 201)
        scale = await web.get(f"{base}/d/scale")
        assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 2}, "a=b")
        assert (await patched(web, f"{base}/d/scale", {"spec": {"replicas": 5}}))["spec"]["replicas"] == 5
        assert (await web.get(f"{base}/d"))["spec"]["replicas"] == 5
        assert (await web.send("PUT", f"{base}/d/scale", {**scale, "spec": {"replicas": 1}}, 409))[
            "reason"
        ] == "Conflict"
        await patched(web, f"{base}/d/scale", {"spec": {"replicas": -1}}, 422)
        await patched(web, f"{base}/d/scale", {"spec": {"replicas": "5"}}, 400)
        await web.send("GET", f"{QUEUES}/default/scale", code=404)


async def test_what_comes_in_is_journaled_with_its_sender() -> None:
    journal = MemoryJournal()
    async with serving(journal) as web:
        await web.send("POST", PODS, pod_of("a"), 201, **{"user-agent": "kubectl/v1.32.4 (linux/amd64)"})
    mutations = await journaled(journal, "api", Mutation)
    assert [(one.type, one.user) for one in mutations if one.kind == "Pod"] == [("ADDED", "kubectl")]


async def test_revisions_never_go_back() -> None:
    journal = MemoryJournal()
    async with serving(journal) as web:
        await web.create_pods("a")
        first = int((await web.get(PODS))["metadata"]["resourceVersion"])
    journal.reopen()
    async with serving(journal) as web:
        again = await web.get(PODS)
        assert int(again["metadata"]["resourceVersion"]) > first
        assert [item["metadata"]["name"] for item in again["items"]] == ["a"]
    async with serving() as web:
        assert int((await web.get(PODS))["metadata"]["resourceVersion"]) > first


@pytest.mark.anyio
async def test_a_collection_is_deleted_in_one_namespace_only() -> None:
    async with serving() as web:
        await web.create_pods("a")
        refused = await web.send("DELETE", "/api/v1/pods", code=405)
        assert refused["reason"] == "MethodNotAllowed"
        assert len((await web.get(PODS))["items"]) == 1
        assert (await web.send("DELETE", "/api/v1/nodes"))["status"] == "Success"  # of no namespace at all
        assert (await web.send("DELETE", PODS))["status"] == "Success"


@pytest.mark.anyio
async def test_namespaces_are_deleted_one_by_one() -> None:
    async with serving() as web:
        await web.send("POST", "/api/v1/namespaces", {"metadata": {"name": "aaa"}}, code=201)
        refused = await web.send("DELETE", "/api/v1/namespaces", code=405)
        assert refused["reason"] == "MethodNotAllowed"
        assert (await web.get("/api/v1/namespaces/aaa"))["status"]["phase"] == "Active"
        verbs = {each["name"]: each["verbs"] for each in (await web.get("/api/v1"))["resources"]}
        assert "deletecollection" not in verbs["namespaces"]
        assert "deletecollection" in verbs["pods"]
