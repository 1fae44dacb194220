"""The monitor's books of cards and NUMA cells: who has what of them, from the api's mutations alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pumice.core.devices.numa.topology import CPU, cpus_of
from pumice.core.devices.vgpu import codec
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.quantity import quantity_of
from pumice.proof.storm.invariants.shared_card_books import chips_too_full, npus_too_full, shared_too_much
from pumice.proof.storm.invariants.upheld import CHIPS, EVERY, SLICES
from pumice.proof.storm.script.shares import POLICY

Problem = tuple[str, str]
"""Invariant and words."""
ALL_CORES: Final = 100
HANDED_OUT: Final = "success"


def over_assigned(node: Object | None, pods: Iterable[Object], upheld: frozenset[str] = EVERY) -> Iterator[Problem]:
    """Cards of a node that have more users, memory or cores than there are; of slices and of MindCluster's chips where
    that is `upheld`; `pods`: all that are on it.
    """
    if node is None:
        return
    there = [*pods]
    found = [
        *virtual_too_full(node, there, slices=SLICES in upheld),
        *shared_too_much(node, there),
        *npus_too_full(node, there),
    ]
    for words in [*found, *(chips_too_full(node, there) if CHIPS in upheld else ())]:
        yield "within-cards", words


def virtual_too_full(node: Object, pods: Iterable[Object], *, slices: bool) -> Iterator[str]:
    """Virtual GPUs, and slices of them: a card is cut in one way at a time."""
    given = Counter[str]()
    ways = dict[str, set[str]]()
    cards = {card.uuid: card for card in codec.registered(_said(node, codec.REGISTER))}
    used = {uuid: [0, 0, 0] for uuid in cards}
    for pod in pods:
        for each in (each for devices in codec.assigned(_said(pod, codec.IDS)) for each in devices):
            if each.uuid in used:
                sums = used[each.uuid]
                sums[:] = sums[0] + 1, sums[1] + each.memory, sums[2] + each.cores
            elif "[" in each.uuid:
                given[each.uuid] += 1
                uuid, _, place = each.uuid.partition("[")
                ways.setdefault(uuid, set()).add(place.partition("-")[0])
    for name, users in given.items() if slices else ():
        if users > 1:
            yield f"slice {name} has {users} containers"
    for uuid, groups in ways.items() if slices else ():
        if len(groups) > 1:
            yield f"card {uuid} is cut in {len(groups)} ways at once: {', '.join(sorted(groups))}"
    for uuid, (users, memory, cores) in used.items():
        card = cards[uuid]
        if users > card.split or memory > card.memory or cores > ALL_CORES:
            words = (
                f"{users} of {card.split} pods, {memory} of {card.memory} MiB, {cores} of {ALL_CORES} % of its cores"
            )
            yield f"card {uuid} has {words}"


def without_cards(pods: Iterable[Object]) -> Iterator[str]:
    """Pods that run and were never handed the cards that they were assigned."""
    for pod in pods:
        if not _said(pod, codec.IDS) or section(pod, "status").get("phase") != "Running":
            continue
        phase = _said(pod, codec.BIND_PHASE)
        if phase != HANDED_OUT:
            yield f"pod {pod['metadata']['name']} runs without the cards that it was assigned: {phase or 'no phase'}"


def miscounted_cells(reports: Iterable[Object], pods: Callable[[str], Iterable[Object]]) -> Iterator[str]:
    """Nodes whose reported free CPUs are not those that no pod has; `pods`: those on a node."""
    for report in reports:
        name, spec = report["metadata"]["name"], report["spec"]
        said = spec["numares"][CPU]
        held = sum(whole_cpus(pod) for pod in pods(name) if section(pod, "status").get("phase") == "Running")
        free, there = len(cpus_of(said["allocatable"])), int(said["capacity"])
        if free + held != there:
            yield f"node {name} has {there} CPUs, pods hold {held}, and {free} are said to be free"


def whole_cpus(pod: Object) -> int:
    """What a pod that asks for a cell holds of it."""
    if not _said(pod, POLICY):
        return 0
    limits = [section(section(each, "resources"), "limits").get(CPU) for each in pod["spec"]["containers"]]
    return sum(quantity_of(each).value() for each in limits if each is not None)


def _said(obj: Object, annotation: str) -> str:
    return text_map(section(obj, "metadata").get("annotations")).get(annotation, "")
