"""Seeded workloads for a real API server: unequal nodes, and waves of gangs that come all together."""

from random import Random
from typing import Final

import httpx

from pumice.core.objects.metadata import Object
from tests.pumice.elsewhere.rig import until

VOLCANO: Final = "scheduling.volcano.sh/v1beta1"
GROUPS: Final = f"/apis/{VOLCANO}/namespaces/default/podgroups"
QUEUES: Final = f"/apis/{VOLCANO}/queues"
PODS: Final = "/api/v1/namespaces/default/pods"
NODES: Final = "/api/v1/nodes"
PRIORITIES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
MERGE: Final = {"Content-Type": "application/merge-patch+json"}
NAMES: Final = ("default", "qa", "qb")
PRIORITY: Final = {"low": 10, "mid": 100, "high": 1000}


def post(client: httpx.Client, path: str, obj: Object) -> None:
    answer = client.post(path, json=obj)
    assert answer.status_code in (201, 409), answer.text


def prepare(client: httpx.Client) -> None:
    """Queues of unequal weights, and priorities."""
    for name, value in PRIORITY.items():
        meta = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        post(client, PRIORITIES, {**meta, "value": value})
    for number, name in enumerate(NAMES):
        queue = {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": name}}
        post(client, QUEUES, {**queue, "spec": {"weight": 1 + number % 2, "reclaimable": True}})
    until(lambda: client.get(f"{QUEUES}/root").status_code == 200)
    for name in ("root", *NAMES):
        gate(client, "Open", name)


def gate(client: httpx.Client, state: str, *names: str) -> None:
    """Have these queues, or all, take jobs or none: so a wave comes to a scheduler all together."""
    for name in names or NAMES:
        client.patch(f"{QUEUES}/{name}/status", json={"status": {"state": state}}, headers=MERGE)


def make_nodes(client: httpx.Client, chance: Random, number: int) -> None:
    """No two have the same room, so that equal scores are rare."""
    for each in range(number):
        name = f"n{each:02}"
        cpu = chance.choice((8, 12, 16, 24, 32)) * 1000 + 37 * each + chance.randrange(30)
        memory = chance.choice((16, 32, 48, 64)) * 1024 + chance.randrange(900)
        amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": "40"}
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": chance.choice("abc")}}
        post(client, NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        status = {"allocatable": amounts, "capacity": amounts}
        client.patch(f"{NODES}/{name}/status", json={"status": status}, headers=MERGE)
        taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
        taints = [taint] if chance.random() < 0.15 else None
        client.patch(f"{NODES}/{name}", json={"spec": {"taints": taints}}, headers=MERGE)


def make_wave(client: httpx.Client, chance: Random, wave: int, pods: int) -> None:
    """Gangs of 1 to 16, so many pods in all."""
    gang = 0
    while pods > 0:
        size = min(pods, chance.choice((1, 1, 2, 4, 6, 10, 16)))
        pods, gang = pods - size, gang + 1
        _make_gang(client, chance, f"w{wave}-g{gang}", size)


def _make_gang(client: httpx.Client, chance: Random, name: str, size: int) -> None:
    least, priority = max(1, size - chance.choice((0, 0, 1))), chance.choice(list(PRIORITY))
    cpu = chance.choice((300, 500, 1000, 2000, 3500)) + chance.randrange(40)
    memory = chance.choice((256, 512, 1024, 4096)) + chance.randrange(60)
    spec: Object = {"schedulerName": "volcano", "priorityClassName": priority}
    if chance.random() < 0.2:
        spec["nodeSelector"] = {"zone": chance.choice("abc")}
    if chance.random() < 0.2:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    for number in range(size):
        meta = {"name": f"{name}-p{number}", "annotations": {"scheduling.k8s.io/group-name": name}}
        containers = [{"name": "c", "image": "x", "resources": {"requests": requests}}]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**spec, "containers": containers}}
        post(client, PODS, pod)
    group: Object = {"minMember": least, "queue": chance.choice(NAMES), "priorityClassName": priority}
    group["minResources"] = {"cpu": f"{cpu * least}m", "memory": f"{memory * least}Mi"}
    post(client, GROUPS, {"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"name": name}, "spec": group})
