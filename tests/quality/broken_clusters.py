"""Clusters in which a job waits for a cause that a seed draws, in the midst of others that run or wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from pumice.core.objects.metadata import Object
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node, nodes, taint
from tests.kit.pod_groups import pod_group
from tests.kit.pods import node_affinity, pod
from tests.kit.queues import queue
from tests.kit.storage import claim, device_claim, device_class, using, with_devices

CONFIG: Final = """\
actions: "ACTIONS"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [ADMITS{name: predicates}, {name: QUEUES}, {name: nodeorder}]
"""
CAPACITY: Final = "capacity, enableHierarchy: true"
ANTI: Final = {"labelSelector": {"matchLabels": {"app": "g"}}, "topologyKey": "kubernetes.io/hostname"}


@dataclass
class Draft:
    """A cluster in the making. `config`: what it is scheduled by."""

    random: Random
    objects: list[Object] = field(default_factory=list[Object])
    queues: str = "proportion"
    admits: str = ""
    actions: str = "enqueue, allocate, backfill"
    more: str = ""
    lasts: bool = True
    """Whether it is the same at the end of a run. One without nodes is not: the run brings some of its own."""

    @property
    def config(self) -> str:
        """Return the text of the configuration."""
        text = CONFIG.replace("QUEUES", self.queues).replace("ADMITS", self.admits).replace("ACTIONS", self.actions)
        return text + self.more

    def nodes(self, count: int = 3, **each: Any) -> list[str]:
        """Add nodes of 4 cpu."""
        made = nodes(count, **{"cpu": "4", **each})
        self.objects += made
        return [one["metadata"]["name"] for one in made]

    def runs(self, name: str, where: str, cpu: str = "2", queue: str = "default") -> None:
        """Add a job that runs on a node."""
        self.objects += gang(name, pods=1, cpu=cpu, nodes=[where], phase="Running", queue=queue)

    def waits(self, **more: Any) -> list[Object]:
        """Add the job that waits, of one to three pods, as its cause changes it."""
        arguments: dict[str, Any] = {
            "pods": self.random.randint(1, 3),
            "cpu": "1",
            "phase": self.random.choice(("Pending", "Inqueue")),
        }
        made = gang("g", **{**arguments, **more})
        self.objects += made
        return [each for each in made if each["kind"] == "Pod"]


def missing_queue(draft: Draft) -> None:
    draft.nodes()
    draft.waits(queue="nosuch")


def closed_queue(draft: Draft) -> None:
    draft.nodes()
    draft.objects.append(queue("shut", state=draft.random.choice(("Closed", "Closing"))))
    draft.waits(queue="shut")


def foreign_scheduler(draft: Draft) -> None:
    draft.nodes()
    for each in draft.waits():
        each["spec"]["schedulerName"] = "other"


def larger_than_any_node(draft: Draft) -> None:
    draft.nodes()
    draft.waits(cpu=str(draft.random.choice((5, 9, 30))), pods=1)


def larger_than_the_cluster(draft: Draft) -> None:
    names = draft.nodes()
    draft.waits(cpu="4", pods=len(names) + 2)


def full_nodes(draft: Draft) -> None:
    for number, name in enumerate(draft.nodes()):
        draft.runs(f"r{number}", name, cpu="4")
    draft.waits(pods=1)


def fragmented_nodes(draft: Draft) -> None:
    for number, name in enumerate(draft.nodes()):
        draft.runs(f"r{number}", name, cpu="2")
    draft.waits(pods=1, cpu="3")


def queue_capability(draft: Draft) -> None:
    first = draft.nodes()[0]
    draft.queues = draft.random.choice(("proportion", "capacity"))
    draft.objects.append(queue("small", capability={"cpu": "2"}))
    draft.runs("r", first, cpu="2", queue="small")
    draft.waits(queue="small", pods=1)


def capability_above(draft: Draft) -> None:
    draft.nodes()
    draft.queues = CAPACITY
    above = queue("team", parent="root", capability={"cpu": "2"})
    draft.objects += [queue("root"), above, queue("small", parent="team")]
    draft.waits(queue="small", pods=1, cpu="3")


def queue_share(draft: Draft) -> None:
    names = draft.nodes(2)
    draft.objects += [queue("small"), queue("other")]
    draft.runs("r", names[0], cpu="4", queue="small")
    draft.runs("s", names[1], cpu="4", queue="other")
    draft.waits(queue="small", pods=1)


def minimum_above_pods(draft: Draft) -> None:
    draft.nodes()
    draft.waits(pods=1, min_member=draft.random.randint(2, 4))


def no_pods(draft: Draft) -> None:
    draft.nodes()
    draft.objects.append(pod_group("g", min_member=2, phase="Inqueue"))


def missing_claim(draft: Draft) -> None:
    draft.nodes()
    pods = draft.waits()
    draft.objects = [using(each, "nosuch") if each in pods else each for each in draft.objects]


def unbound_claim(draft: Draft) -> None:
    draft.nodes()
    pods = draft.waits()
    draft.objects = [using(each, "data") if each in pods else each for each in draft.objects]
    draft.objects.append(claim("data", cls="nosuch"))


def missing_devices(draft: Draft) -> None:
    draft.nodes()
    pods = draft.waits(pods=1)
    draft.objects = [with_devices(each, "card") if each in pods else each for each in draft.objects]
    draft.objects += [device_class(), device_claim("card")]


def taints(draft: Draft) -> None:
    draft.nodes(taints=[taint("gpu", "only")])
    draft.waits()


def some_taints(draft: Draft) -> None:
    first = draft.nodes(1)[0]
    draft.objects.append(node("t0", cpu="4", taints=[taint("gpu", "only")]))
    draft.runs("r", first, cpu="4")
    draft.waits(pods=1)


def selectors(draft: Draft) -> None:
    draft.nodes(labels={"zone": "a"})
    for each in draft.waits():
        each["spec"]["affinity"] = node_affinity("zone", "b")


def nodes_not_ready(draft: Draft) -> None:
    draft.nodes(**draft.random.choice(({"ready": False}, {"unschedulable": True})))
    draft.waits()


def no_nodes(draft: Draft) -> None:
    draft.lasts = False
    draft.waits()


def missing_cards(draft: Draft) -> None:
    draft.nodes(gpus=draft.random.choice((0, 1)))
    draft.waits(gpus=2)


def cards_in_use(draft: Draft) -> None:
    names = draft.nodes(2, gpus=2)
    for number, name in enumerate(names):
        draft.objects += gang(f"r{number}", pods=1, gpus=2, nodes=[name], phase="Running")
    draft.waits(gpus=1, pods=1)


def apart(draft: Draft) -> None:
    draft.nodes(1)
    for each in draft.waits(pods=2):
        each["metadata"]["labels"] = {"app": "g"}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [ANTI]}
        each["spec"]["affinity"] = {"podAntiAffinity": required}


def missing_priority_class(draft: Draft) -> None:
    draft.nodes()
    draft.waits(priority_class="nosuch", cpu="9", pods=1)


def overcommit(draft: Draft) -> None:
    draft.admits = "{name: overcommit}, "
    first = draft.nodes(1)[0]
    draft.runs("r", first, cpu="3")
    asks = {"cpu": str(draft.random.choice((3, 6)))}
    draft.objects += [pod_group("g", min_resources=asks), *gang("g", pods=1, cpu="3")[1:]]


def quota(draft: Draft) -> None:
    draft.admits = "{name: resourcequota}, "
    draft.nodes()
    spec = {"hard": {"cpu": "1"}}
    status = {**spec, "used": {"cpu": "0"}}
    meta = {"name": "limits", "namespace": "default"}
    draft.objects += [{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": spec, "status": status}]
    draft.objects += [pod_group("g", min_resources={"cpu": "3"})]


def gates(draft: Draft) -> None:
    draft.nodes()
    for each in draft.waits():
        each["spec"]["schedulingGates"] = [{"name": "example.com/licence"}]


def missing_group(draft: Draft) -> None:
    draft.nodes()
    draft.objects.append(pod("g-0", group="g"))


def volcano_job(draft: Draft) -> None:
    draft.nodes()
    draft.objects.append(vcjob("g", job_task(replicas=2, cpu="9"), queue=draft.random.choice(("default", "nosuch"))))


def no_action(draft: Draft) -> None:
    draft.nodes()
    draft.actions = "enqueue"
    draft.waits(phase="Inqueue")


def others_first(draft: Draft) -> None:
    draft.nodes(1)
    draft.lasts = False
    draft.objects += gang("f", pods=1, cpu="3", phase="Inqueue", created="2025-01-01T00:00:00Z")
    draft.waits(pods=1, cpu="2", phase="Inqueue")


def room_to_come(draft: Draft) -> None:
    first = draft.nodes(1)[0]
    draft.lasts = False
    draft.runs("r", first, cpu="4")
    draft.objects[-1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    draft.waits(pods=1, cpu="2", phase="Inqueue")


def behind_another(draft: Draft) -> None:
    draft.nodes()
    draft.more = "configurations: [{name: pumice, arguments: {fix: [dequeue-strategy]}}]\n"
    ordered = queue("ordered")
    ordered["spec"]["dequeueStrategy"] = "fifo"
    first = gang("f", pods=1, cpu="9", queue="ordered", phase="Inqueue", created="2025-01-01T00:00:00Z")
    draft.objects += [ordered, *first]
    draft.waits(queue="ordered", phase="Inqueue")


CAUSES: Final[tuple[Callable[[Draft], None], ...]] = (
    missing_queue,
    closed_queue,
    foreign_scheduler,
    larger_than_any_node,
    larger_than_the_cluster,
    full_nodes,
    fragmented_nodes,
    queue_capability,
    capability_above,
    queue_share,
    minimum_above_pods,
    no_pods,
    missing_claim,
    unbound_claim,
    missing_devices,
    taints,
    some_taints,
    selectors,
    nodes_not_ready,
    no_nodes,
    missing_cards,
    cards_in_use,
    apart,
    missing_priority_class,
    overcommit,
    quota,
    gates,
    missing_group,
    volcano_job,
    no_action,
    others_first,
    room_to_come,
    behind_another,
)


def broken_cluster(seed: int) -> Draft:
    """Return the cluster of a seed: each cause has its turn, and then again with other numbers. Some have a second job
    that waits as well, for room.
    """
    draft = Draft(Random(seed))
    draft.objects.append(queue("default"))
    CAUSES[seed % len(CAUSES)](draft)
    if draft.random.random() < 0.3:
        draft.objects += gang("z", pods=1, cpu="50", phase="Inqueue")
    return draft
