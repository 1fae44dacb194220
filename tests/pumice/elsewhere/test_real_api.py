"""A real etcd and kube-apiserver: scheduled with the rights of examples/deploy.yaml, and mirrored with those of
examples/mirror-role.yaml, both as service accounts.
"""

from functools import partial
from pathlib import Path

import httpx
import pytest
import yaml

from pumice.core.objects.metadata import Object
from tests.actors.rig import PREEMPTING
from tests.kit import source
from tests.kit.real_api import RealApi, real_api
from tests.pumice.cli.terminal import has_cycles, pumice
from tests.pumice.elsewhere.rig import placed, process, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
PODS = "/api/v1/namespaces/default/pods"
MERGE = {"Content-Type": "application/merge-patch+json"}


def apply(client: httpx.Client, example: str) -> None:
    """All documents of an example; what is there already stays."""
    for each in yaml.safe_load_all((source.ROOT / "examples" / example).read_text("utf-8")):
        group, _, version = each["apiVersion"].rpartition("/")
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        namespace, plural = each["metadata"].get("namespace"), each["kind"].lower() + "s"
        path = f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"
        answer = client.post(path, json=each, params={"fieldValidation": "Strict"})
        assert answer.status_code in (201, 409), answer.text


def account(server: RealApi, client: httpx.Client, namespace: str, name: str) -> Path:
    """A kubeconfig of a service account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    answer = client.post(path, json=request)
    assert answer.status_code == 201, answer.text
    return server.kubeconfig(answer.json()["status"]["token"], f"{name}.kubeconfig")


def make_nodes(client: httpx.Client, number: int) -> None:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts}
    for each in range(number):
        name = f"n{each}"
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        assert client.post("/api/v1/nodes", json=node).status_code == 201
        client.patch(f"/api/v1/nodes/{name}/status", json={"status": status}, headers=MERGE)
        client.patch(f"/api/v1/nodes/{name}", json={"spec": {"taints": None}}, headers=MERGE)


def make_gang(
    client: httpx.Client, name: str, size: int, cpu: str = "1", scheduler: str = "volcano", **more: str
) -> None:
    """One of them is enough; `more` goes to the PodGroup and the pods."""
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name}}
    answer = client.post(GROUPS, json={**group, "spec": {"minMember": 1, "queue": "default", **more}})
    assert answer.status_code == 201, answer.text
    for each in range(size):
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
        meta = {"name": f"{name}-{each}", "annotations": {"scheduling.k8s.io/group-name": name}}
        spec = {"schedulerName": scheduler, "containers": [container], **more}
        answer = client.post(PODS, json={"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        assert answer.status_code == 201, answer.text


def open_queues(client: httpx.Client) -> None:
    """As Volcano's controller does, which is not here."""
    for name in ("root", "default"):
        until(partial(is_there, client, f"{QUEUES}/{name}"))
        client.patch(f"{QUEUES}/{name}/status", json={"status": {"state": "Open"}}, headers=MERGE)


def configure(client: httpx.Client, text: str) -> None:
    """Where Volcano's chart has it."""
    meta = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
    found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"volcano-scheduler.conf": text}}
    assert client.post("/api/v1/namespaces/volcano-system/configmaps", json=found).status_code == 201


def is_leaving(client: httpx.Client, pod: str) -> bool:
    """Evicted: there is no kubelet that would end it."""
    return "deletionTimestamp" in client.get(f"{PODS}/{pod}").json()["metadata"]


def is_there(client: httpx.Client, path: str) -> bool:
    return client.get(path).status_code == 200


def condition(client: httpx.Client, pod: str, type_: str) -> Object:
    found: list[Object] = client.get(f"{PODS}/{pod}").json()["status"].get("conditions") or []
    return {each["type"]: each for each in found}.get(type_) or {}


def test_it_is_scheduled_and_mirrored(tmp_path: Path) -> None:
    events = "/api/v1/namespaces/default/events"
    here, copy = tmp_path / "here.db", tmp_path / "copy.db"
    with real_api(tmp_path) as server, server.client() as client:
        apply(client, "deploy.yaml")
        apply(client, "mirror-role.yaml")
        make_nodes(client, 3)
        scheduler = account(server, client, "volcano-system", "pumice-scheduler")
        watcher = account(server, client, "pumice", "mirror")
        with process("run", scheduler, here), process("mirror", watcher, copy):
            open_queues(client)
            until(lambda: has_cycles(copy))
            make_gang(client, "fits", 4)
            make_gang(client, "big", 1, cpu="64")
            make_gang(client, "theirs", 1, scheduler="mine")
            until(lambda: len(placed(client)) == 4)
            until(lambda: condition(client, "big-0", "PodScheduled").get("reason") == "Unschedulable")
            until(lambda: bool(client.get(f"{GROUPS}/fits").json()["status"].get("conditions")))
            until(lambda: {"Scheduled", "FailedScheduling"} <= reasons(client.get(events).json()))
            until(lambda: "is bound to" in pumice("journal", copy, "--about", "default/fits-0", "-o", "table").out)
        assert set(placed(client)) == {f"fits-{number}" for number in range(4)}
        with process("run", scheduler, here):  # what was killed goes on
            make_gang(client, "next", 2)
            until(lambda: len(placed(client)) == 6)
            configure(client, PREEMPTING)
            make_gang(client, "urgent", 1, cpu="7", priorityClassName="system-cluster-critical")
            until(lambda: any(is_leaving(client, pod) for pod in placed(client)))
            left = [pod for pod in placed(client) if is_leaving(client, pod)]
            assert {condition(client, pod, "Ready").get("reason") for pod in left} == {"Evict"}
            assert {condition(client, pod, "DisruptionTarget").get("status") for pod in left} == {"True"}
            until(lambda: "Evict" in reasons(client.get(events).json()))
    log = here.with_suffix(".log").read_text("utf-8")
    assert "forbidden" not in log.lower(), log
    found = pumice("replay", here, "--verify", "-o", "json").json
    assert (found["first_difference"], found["first_bad"]) == (None, None)
    assert pumice("replay", copy, "--verify", "-o", "json").json["first_bad"] is None


def reasons(events: Object) -> set[str]:
    return {each["reason"] for each in events["items"]}
