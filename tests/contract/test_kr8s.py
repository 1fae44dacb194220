"""kr8s, an independent client in Python, does its work."""

from collections.abc import Iterator
from contextlib import aclosing
from importlib import import_module
from typing import Any, Final

import anyio
import httpx
import pytest

from tests.kit.serving import Served

kr8s: Final[Any] = import_module("kr8s")  # only some of it has types
ConfigMap: Final[Any] = import_module("kr8s.objects").ConfigMap
Node: Final[Any] = import_module("kr8s.objects").Node
Pod: Final[Any] = import_module("kr8s.objects").Pod
as_sync_func: Final[Any] = import_module("kr8s._async_utils").as_sync_func

QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "from-kr8s"},
    "spec": {"weight": 3},
}


pytestmark = pytest.mark.filterwarnings("default")  # it leaves its connections open


@pytest.fixture
def api(passive: Served) -> Iterator[Any]:
    made = kr8s.api(url=passive.url, kubeconfig=str(passive.kubeconfig()))
    yield made
    # It has no word for closing its connections, and a collector would speak of them in a test of somebody else's.
    as_sync_func(made._session.aclose)()


def test_objects_come_and_go(api: Any, namespace: str) -> None:
    made = ConfigMap({"metadata": {"name": "c", "namespace": namespace}, "data": {"a": "1"}}, api=api)
    made.create()
    assert made.exists()
    made.patch({"data": {"b": "2"}})
    made.label({"team": "x"})
    made.annotate({"note": "y"})
    made.refresh()
    assert made.raw["data"].to_dict() == {"a": "1", "b": "2"}
    assert [one.name for one in api.get("configmaps", namespace=namespace, label_selector="team=x")] == ["c"]
    made.delete()
    made.wait("delete", timeout=10)
    assert not made.exists()
    assert [each.name for each in api.get("configmaps", namespace=namespace)] == ["kube-root-ca.crt"]


def test_a_custom_kind_is_found_by_discovery(api: Any, http: httpx.Client) -> None:
    queue = import_module("kr8s.objects").new_class("Queue", "scheduling.volcano.sh/v1beta1", namespaced=False)
    made = queue(QUEUE, api=api)
    made.create()
    (found,) = (one for one in api.get("queues.scheduling.volcano.sh") if one.name == "from-kr8s")
    assert found.raw["spec"]["weight"] == 3
    found.delete()


def test_a_node_is_cordoned(api: Any, http: httpx.Client) -> None:
    http.post("/api/v1/nodes", json={"metadata": {"name": "kr8s-node"}}).raise_for_status()
    node = Node.get("kr8s-node", api=api)
    node.cordon()
    assert http.get("/api/v1/nodes/kr8s-node").json()["spec"]["unschedulable"] is True
    node.uncordon()
    assert not http.get("/api/v1/nodes/kr8s-node").json()["spec"].get("unschedulable")


@pytest.mark.anyio
async def test_a_watch_tells_what_happens(passive: Served, namespace: str) -> None:
    api = await kr8s.asyncio.api(url=passive.url, kubeconfig=str(passive.kubeconfig()))
    seen: list[tuple[str, str]] = []
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    merge = {"content-type": "application/merge-patch+json"}
    client = httpx.AsyncClient(**passive.options())
    with anyio.fail_after(60):
        async with client, aclosing(api.watch("configmaps", namespace=namespace)) as events:
            await client.post(path, json={"metadata": {"name": "w"}})
            async for event, one in events:
                if one.name != "w":  # every namespace has a ConfigMap of its own
                    continue
                seen.append((event, one.name))
                if event == "ADDED":
                    await client.patch(f"{path}/w", json={"data": {"a": "1"}}, headers=merge)
                elif event == "MODIFIED":
                    await client.delete(f"{path}/w")
                else:
                    break
        await api._session.aclose()
    assert seen == [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")]


def test_a_pod_has_a_log(api: Any, namespace: str) -> None:
    spec = {"nodeName": "node-0", "containers": [{"name": "c", "image": "i"}]}
    pod = Pod({"metadata": {"name": "p", "namespace": namespace}, "spec": spec}, api=api)
    pod.create()
    pod.wait("condition=Ready", timeout=20)
    assert "simulates" in "".join(pod.logs())
    pod.delete()
