"""What a test leaves behind is gone before the next one."""

from collections.abc import Iterator
from typing import Any, Final

import httpx
import msgspec
import pytest

import pumice
from pumice.cluster.api.object_tables import ObjectTables
from pumice.core.messages.commands import Reflect
from pumice.core.objects.metadata import Object
from pumice.storage.codec import unpack
from pumice.testing import ServedCluster, served_cluster
from pumice.testing.baseline import Baseline
from pumice.testing.hosting import UnrestfulError
from tests.actors.cluster import Cluster
from tests.pumice.testing.test_cluster import CRD, LAMP, POD

DEPLOYMENT: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 1}}}]}
"""
NAMESPACE: Final = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
QUEUE: Final = pumice.queue("research", weight=3)


@pytest.fixture
def cluster() -> Iterator[ServedCluster]:
    with served_cluster(manifests=[QUEUE, NAMESPACE]) as cluster:
        yield cluster


def config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def contents(cluster: ServedCluster) -> dict[Any, Any]:
    """Every object but for its revision."""
    tables: ObjectTables = cluster.host.system.store.tables
    found = dict[Any, Any]()
    for kind in tables.kinds():
        for name, record in tables.of_kind(kind):
            obj = found[kind, *name] = unpack(record.blob)
            del obj["metadata"]["resourceVersion"]
            if kind == "Lease":
                obj["spec"].pop("renewTime", None)
    return found


def disturb(cluster: ServedCluster) -> None:
    """Make, change and delete objects of all sorts, and leave work under way."""
    cluster.apply(CRD)
    cluster.apply(LAMP, POD, DEPLOYMENT, pumice.gang("train", pods=4), pumice.gang("huge", pods=40, queue="research"))
    cluster.wait_for("pod", "web", "condition=Ready")
    cluster.apply({**QUEUE, "spec": {**QUEUE["spec"], "weight": 9}})
    merge = {"content-type": "application/merge-patch+json"}
    cluster.client.patch("/api/v1/nodes/node-1", json={"spec": {"unschedulable": True}}, headers=merge)
    cluster.delete("node", "node-2")
    cluster.delete("namespace", "team")


def test_everything_is_as_it_was_at_the_beginning(cluster: ServedCluster) -> None:
    before = contents(cluster)
    for _ in range(2):
        disturb(cluster)
        cluster.reset()
        after = contents(cluster)
        back = {key for key, obj in before.items() if after.get(key, obj)["metadata"]["uid"] != obj["metadata"]["uid"]}
        for key in back:
            after[key]["metadata"]["uid"] = before[key]["metadata"]["uid"]
        assert "node-2" in {name for _, _, name in back}, "what was deleted is another object now"
        assert after == before


def test_a_kind_that_a_test_defined_is_gone(cluster: ServedCluster) -> None:
    cluster.apply(CRD)
    cluster.apply(LAMP)
    cluster.reset()
    assert cluster.client.get("/apis/example.com/v1/lamps").status_code == 404
    cluster.apply(CRD)
    assert cluster.list("lamps") == []


def test_a_watch_stays_open_and_hears_of_it(cluster: ServedCluster) -> None:
    path = f"{cluster.url}/api/v1/namespaces/default/pods?watch=true&timeoutSeconds=10"
    with httpx.stream("GET", path, trust_env=False, timeout=10.0) as stream:
        events = (msgspec.json.decode(line) for line in stream.iter_lines())
        cluster.apply(POD)
        assert next(events)["type"] == "ADDED"
        cluster.reset()
        assert next(each for each in events if each["type"] == "DELETED")["object"]["metadata"]["name"] == "web"
        cluster.apply(POD)
        assert next(events)["type"] == "ADDED"


def placements(cluster: ServedCluster) -> dict[str, str]:
    """Which pods of a workload go where, which depends on all that a scheduler remembers."""
    cluster.apply(pumice.gang("first", pods=7, duration="0"), pumice.gang("second", pods=5, duration="30s", cpu=2))
    cluster.apply(pumice.gang("third", pods=20, duration="10s"), POD)
    cluster.advance(300)
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in cluster.list("pods")}


def test_decisions_after_a_reset_are_those_of_a_fresh_cluster() -> None:
    with served_cluster(time="virtual") as fresh:
        expected = placements(fresh)
    with served_cluster(time="virtual") as used:
        used.apply(
            DEPLOYMENT.replace("namespace: team", "namespace: default"), pumice.gang("other", pods=9, duration="0")
        )
        used.advance(1000)
        used.reset()
        assert placements(used) == expected


def test_an_object_that_keeps_coming_back_is_named(cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    restless = Reflect("ConfigMap", "default", "restless", b"")

    def requests(_self: Baseline, _tables: ObjectTables) -> list[Reflect]:
        return [restless]

    monkeypatch.setattr(Baseline, "requests", requests)
    with pytest.raises(UnrestfulError, match="does not come to rest; these keep changing: ConfigMap default/restless"):
        cluster.reset()


def test_an_object_written_again_with_the_same_content_is_left_alone() -> None:
    cluster = Cluster()
    cluster.create(config_map("a"))
    baseline = Baseline.of(cluster.store.tables)
    cluster.patch("ConfigMap", "a", {"data": {"colour": "red"}})
    (request,) = baseline.requests(cluster.store.tables)
    cluster.ask(request)
    revision = cluster.store.revision
    assert baseline.requests(cluster.store.tables) == []
    assert cluster.store.revision == revision
