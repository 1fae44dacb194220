"""What is written under a path of its own below an object."""

import pytest

from tests.actors.gateway.rig import PODS, serving
from tests.kit.certificates import certificate_request

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}

pytestmark = pytest.mark.anyio


async def test_a_container_is_added_to_a_pod() -> None:
    async with serving() as web:
        await web.create_pods("a")
        path = f"{PODS}/a/ephemeralcontainers"
        body = {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "busybox"}]}}
        made = await web.send("PATCH", path, body, 200, **STRATEGIC)
        assert (made["kind"], made["spec"]["ephemeralContainers"][0]["name"]) == ("Pod", "dbg")
        assert await web.get(path) == made
        refused = await web.send("PUT", path, {**made, "spec": {**made["spec"], "ephemeralContainers": []}}, 422)
        assert "may not be removed" in refused["message"]
        await web.send("DELETE", path, code=405)
        refused = await web.send("POST", f"{PODS}/a/attach?container=dbg", code=405)
        assert refused["message"] == "containers are simulated: there is nothing to attach"
        await web.send("GET", "/api/v1/namespaces/default/services/a/ephemeralcontainers", code=404)


async def test_a_request_is_approved() -> None:
    async with serving() as web:
        made = await web.send("POST", REQUESTS, certificate_request(), 201)
        made["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "R"}]}
        done = await web.send("PUT", f"{REQUESTS}/r/approval", made)
        assert done["status"]["conditions"][0]["type"] == "Approved"
        assert (await web.get(f"{REQUESTS}?fieldSelector=spec.signerName=x.io/y"))["items"] == [done]
        assert (await web.get(f"{REQUESTS}?fieldSelector=spec.signerName=x.io/z"))["items"] == []
        listed = {each["name"] for each in (await web.get("/apis/certificates.k8s.io/v1"))["resources"]}
        assert listed == {"certificatesigningrequests"} | {
            f"certificatesigningrequests/{x}" for x in ("approval", "status")
        }


async def test_who_posts_under_a_name_owns_what_he_posts() -> None:
    async with serving() as web:
        path = "/api/v1/namespaces/default/configmaps"
        made = await web.send("POST", f"{path}?fieldManager=me", {"metadata": {"name": "c"}, "data": {"a": "b"}}, 201)
        (entry,) = made["metadata"]["managedFields"]
        assert (entry["manager"], entry["operation"]) == ("me", "Update")
        plain = await web.send("POST", path, {"metadata": {"name": "d"}, "data": {"a": "b"}}, 201)
        assert "managedFields" not in plain["metadata"]


async def test_no_other_server_is_asked() -> None:
    async with serving() as web:
        path = "/apis/apiregistration.k8s.io/v1/apiservices"
        spec = {"group": "x.io", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
        body = {"metadata": {"name": "v1.x.io"}, "spec": {**spec, "service": {"name": "s", "namespace": "default"}}}
        made = await web.send("POST", path, body, 201)
        (said,) = made["status"]["conditions"]
        assert (said["type"], said["status"], said["reason"]) == ("Available", "False", "FailedDiscoveryCheck")
        assert "not passed on to other API servers" in said["message"]
        local = await web.send("PUT", f"{path}/v1.x.io", {**made, "spec": spec})
        assert [each["status"] for each in local["status"]["conditions"]] == ["True"]
        await web.send("POST", path, {**body, "metadata": {"name": "v2.x.io"}}, 422)
