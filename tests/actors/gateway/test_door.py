"""Who is let in, and what the server says about itself."""

from dataclasses import replace

import pytest
from anyio import fail_after, sleep

from pumice.actors.errors import ListenError
from pumice.actors.gateway.identity.authenticator import is_loopback
from pumice.actors.gateway.settings import listen
from tests.actors.gateway.rig import PASSIVE, PODS, Web, serving

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
WATCHED_BY_THE_SCHEDULER = [
    "v1/nodes",
    "v1/pods",
    "v1/namespaces",
    "v1/services",
    "v1/replicationcontrollers",
    "v1/resourcequotas",
    "v1/persistentvolumeclaims",
    "v1/persistentvolumes",
    "apps/v1/replicasets",
    "apps/v1/statefulsets",
    "policy/v1/poddisruptionbudgets",
    "scheduling.k8s.io/v1/priorityclasses",
    "storage.k8s.io/v1/storageclasses",
    "storage.k8s.io/v1/csinodes",
    "storage.k8s.io/v1/volumeattachments",
    "resource.k8s.io/v1/resourceclaims",
    "resource.k8s.io/v1/resourceslices",
    "resource.k8s.io/v1/deviceclasses",
    "scheduling.volcano.sh/v1beta1/podgroups",
    "scheduling.volcano.sh/v1beta1/queues",
    "nodeinfo.volcano.sh/v1alpha1/numatopologies",
    "topology.volcano.sh/v1alpha1/hypernodes",
]

anyio = pytest.mark.anyio


async def refused(web: Web, code: int, **headers: str) -> str:
    return str((await web.send("GET", PODS, code=code, **headers))["reason"])


@anyio
async def test_a_token() -> None:
    async with serving(token="secret") as web:
        assert await refused(web, 401) == "Unauthorized"
        assert await refused(web, 401, authorization="Bearer wrong") == "Unauthorized"
        assert await refused(web, 401, authorization="Basic secret") == "Unauthorized"
        assert (await web.get(PODS, authorization="Bearer secret"))["items"] == []
        assert (await web.http.get("/livez")).status_code == 200
        assert (await web.http.get("/metrics")).status_code == 401
        assert (await web.http.get("/healthzz")).status_code == 401


@anyio
async def test_web_pages_are_not_served() -> None:
    async with serving() as web:
        assert await refused(web, 403, origin="https://evil.example") == "Forbidden"
        assert await refused(web, 403, host="evil.example:8080") == "Forbidden"
        for host in ("localhost:1", "127.0.0.1", "[::1]:80", "LocalHost:8080", "LOCALHOST"):
            assert (await web.get(PODS, host=host))["items"] == []


@anyio
async def test_an_origin_is_compared_with_the_host_without_case() -> None:
    async with serving() as web:
        for origin, host in (("http://LOCALHOST:8080", "localhost:8080"), ("HTTP://localhost", "LocalHost:80")):
            assert (await web.get(PODS, host=host, origin=origin))["items"] == []
        assert await refused(web, 403, origin="http://localhost:8081", host="localhost:8080") == "Forbidden"
        assert await refused(web, 403, origin="https://localhost", host="localhost:80") == "Forbidden"


@anyio
async def test_health() -> None:
    async with serving() as web:
        while (await web.http.get("/readyz")).status_code == 503:  # noqa: ASYNC110
            await sleep(0.01)
        for path in ("/healthz", "/livez", "/readyz", "/readyz/ping"):
            answer = await web.http.get(path)
            assert (answer.status_code, answer.text) == (200, "ok")
        assert "[+]api ok" in (await web.http.get("/readyz?verbose")).text
        assert (await web.http.get("/readyz/nonsense")).status_code == 404
        assert (await web.http.post("/readyz")).status_code == 405


@anyio
async def test_version_and_metrics() -> None:
    async with serving(settings=replace(PASSIVE, scheduler=True, controllers=True)) as web:
        version = await web.get("/version")
        assert (version["major"], version["minor"], version["gitVersion"]) == ("1", "35", "v1.35.3")
        answer = await web.http.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert "volcano_e2e_scheduling_latency_milliseconds" in answer.text
        with fail_after(5):  # a queue has gauges once a session has seen it
            while "volcano_queue_allocated_milli_cpu{" not in (await web.http.get("/metrics")).text:  # noqa: ASYNC110
                await sleep(0.01)


@anyio
async def test_metrics_say_how_many_objects_there_are() -> None:
    said = 'apiserver_resource_objects{group="",resource="pods"} 2.0'
    async with serving() as web:
        await web.create_pods("a", "b")
        with fail_after(5):
            while said not in (await web.http.get("/metrics")).text:  # noqa: ASYNC110
                await sleep(0.01)


@anyio
async def test_there_are_metrics_where_nobody_schedules() -> None:
    async with serving(settings=PASSIVE) as web:
        answer = await web.http.get("/metrics")
        assert answer.status_code == 200
        assert "pumice_mailbox_received" in answer.text
        assert "volcano_queue_allocated_milli_cpu{" not in answer.text


@anyio
async def test_aggregated_discovery() -> None:
    async with serving() as web:
        answer = await web.http.get("/api", headers={"accept": AGGREGATED})
        assert answer.headers["content-type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        (core,) = answer.json()["items"]
        pods = next(each for each in core["versions"][0]["resources"] if each["resource"] == "pods")
        assert (pods["scope"], pods["shortNames"]) == ("Namespaced", ["po"])
        assert {each["subresource"] for each in pods["subresources"]} >= {"status", "eviction", "binding", "log"}
        groups = (await web.get("/apis", accept=AGGREGATED))["items"]
        names = [group["metadata"]["name"] for group in groups]
        assert names.index("batch") < names.index("batch.volcano.sh")
        assert {"metrics.k8s.io", "authorization.k8s.io"} <= set(names)
        volcano = {
            each["resource"]
            for group in groups
            for version in group["versions"]
            for each in version["resources"]
            if group["metadata"]["name"].endswith(".volcano.sh")
        }
        assert len(volcano) == 11


@anyio
async def test_plain_discovery() -> None:
    async with serving() as web:
        assert (await web.get("/api"))["versions"] == ["v1"]
        core = await web.get("/api/v1")
        assert {"pods", "pods/eviction", "pods/status"} <= {each["name"] for each in core["resources"]}
        for group in (await web.get("/apis"))["groups"]:
            assert await web.get(f"/apis/{group['name']}")
            for version in group["versions"]:
                listed = await web.get(f"/apis/{version['groupVersion']}")
                assert all(each["kind"] and each["verbs"] for each in listed["resources"])
        await web.send("GET", "/apis/nonsense", code=404)
        await web.send("GET", "/apis/apps/v9", code=404)


@anyio
async def test_every_kind_that_the_real_scheduler_waits_for() -> None:
    async with serving() as web:
        for resource in WATCHED_BY_THE_SCHEDULER:
            prefix = "/api" if resource.startswith("v1/") else "/apis"
            assert (await web.get(f"{prefix}/{resource}"))["kind"].endswith("List")


@anyio
async def test_reviews_say_yes() -> None:
    async with serving() as web:
        base = "/apis/authorization.k8s.io/v1"
        asked = {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}}
        answer = await web.send("POST", f"{base}/selfsubjectaccessreviews", asked, 201)
        assert (answer["status"]["allowed"], answer["spec"]) == (True, asked["spec"])
        rules = await web.send("POST", f"{base}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}, 201)
        assert rules["status"]["resourceRules"][0]["verbs"] == ["*"]
        who = await web.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, 201)
        assert who["status"]["userInfo"]["username"]
        await web.send("GET", f"{base}/selfsubjectaccessreviews", code=405)
        await web.send("POST", f"{base}/selfsubjectaccessreviews", {"kind": "Pod"}, 400)
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        await web.send("POST", f"{base}/selfsubjectaccessreviews", asked, 406, accept=table)
        await web.send("POST", f"{base}/selfsubjectaccessreviews", asked, 201, accept=f"{table},application/json")


@anyio
async def test_a_review_whose_parts_are_no_objects_is_refused() -> None:
    async with serving() as web:
        for review in ("authorization.k8s.io/v1/selfsubjectaccessreviews", "authentication.k8s.io/v1/tokenreviews"):
            for spec in (True, 1, "x", [1]):
                answer = await web.send("POST", f"/apis/{review}", {"spec": spec}, 400)
                assert answer["message"] == "spec: expected an object"
        path = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews"
        for name in ("resourceAttributes", "nonResourceAttributes"):
            await web.send("POST", path, {"spec": {"user": "a", name: 1}}, 400)


@anyio
async def test_logs_say_that_the_container_is_simulated() -> None:
    async with serving() as web:
        await web.create_pods("a")
        waiting = await web.send("GET", f"{PODS}/a/log", code=400)
        assert "is waiting to start" in waiting["message"]
        merge = {"content-type": "application/merge-patch+json"}
        await web.send("PATCH", f"{PODS}/a/status", {"status": {"phase": "Running"}}, 200, **merge)
        assert "simulates this container" in (await web.http.get(f"{PODS}/a/log")).text
        await web.send("GET", f"{PODS}/a/log?container=nonsense", code=400)
        async with web.http.stream("GET", f"{PODS}/a/log?follow=true") as answer:
            lines = answer.aiter_lines()
            assert "is running" in await anext(lines)
            await web.send("PATCH", f"{PODS}/a/status", {"status": {"phase": "Succeeded"}}, 200, **merge)
            assert [line async for line in lines] == []
        assert (await web.send("POST", f"{PODS}/a/exec?command=ls", code=405))["reason"] == "MethodNotAllowed"


def test_addresses() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.com", "")))


def test_a_taken_port() -> None:
    with listen("127.0.0.1", 0) as listener, pytest.raises(ListenError, match="in use"):
        listen("127.0.0.1", listener.getsockname()[1])


@anyio
@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "http://evil.example", "null", "//[", "http://a]"])
async def test_an_origin_that_is_no_address_is_a_web_page_too(origin: str) -> None:
    async with serving() as web:
        assert await refused(web, 403, origin=origin) == "Forbidden"
