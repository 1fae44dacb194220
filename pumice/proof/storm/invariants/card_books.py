# SPDX-License-Identifier: Apache-2.0
"""The monitor's books of cards and NUMA cells: their users, from the api's mutations alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from pumice.core.devices.ascend.chips import registered
from pumice.core.devices.ascend.cuts import CPUS, TEMPLATES, Part
from pumice.core.devices.ascend.hami import held, of_model
from pumice.core.devices.ascend.npu_node import CORE
from pumice.core.devices.ascend.settings import DEFAULT
from pumice.core.devices.family import amount, limits_of
from pumice.core.devices.gpushare import INDEX, LOCK, MEMORY, NUMBER, indices
from pumice.core.devices.locks import EXPIRES_S
from pumice.core.devices.numa.topology import CPU, cpus_of
from pumice.core.devices.vgpu import Vgpu, codec
from pumice.core.objects.metadata import Object, annotations_of, labels_of, parse_time, section
from pumice.core.quantity import quantity_of
from pumice.proof.storm.invariants.upheld import CHIPS, EVERY, SLICES
from pumice.proof.storm.script.shares import POLICY

if TYPE_CHECKING:
    from pumice.core.messages.events import Mutation

# --- Shared cards, NPUs and locks of nodes

LOCKS: Final = (LOCK, Vgpu.name)
MODELS: Final = tuple(model.word for model in DEFAULT)


def shared_too_much(node: Object, pods: Iterable[Object]) -> Iterator[str]:
    """Yield cards with more memory requested than they have, or a card that one pod has whole and another pod
    shares.
    """
    capacity = section(section(node, "status"), "capacity")
    count = amount(capacity, NUMBER)
    each = amount(capacity, MEMORY) // count if count else 0
    users, whole, memory = Counter[int](), set[int](), Counter[int]()
    for pod in pods:
        asked = [limits_of(container) for container in pod["spec"]["containers"]]
        for card in indices(_notes(pod).get(INDEX)):
            users[card] += 1
            memory[card] += sum(amount(limits, MEMORY) for limits in asked)
            if any(amount(limits, NUMBER) for limits in asked):
                whole.add(card)
    for card in sorted(users) if count else ():
        if memory[card] > each:
            yield f"shared card {card} has {memory[card]} of {each} MiB assigned"
        if card in whole and users[card] > 1:
            yield f"card {card} is had whole, by {users[card]} pods"


def npus_too_full(node: Object, pods: Iterable[Object]) -> Iterator[str]:
    """Yield HAMi's NPUs with too many users or too much memory in use."""
    there = [*pods]
    for word in MODELS:
        chips = {chip.uuid: chip for chip in registered(_notes(node).get(f"hami.io/node-register-{word}", "[]"))}
        users, memory = Counter[str](), Counter[str]()
        for pod in there:
            for device in held(_notes(pod).get(of_model(word)[1], "")):
                users[device.uuid] += 1
                memory[device.uuid] += device.memory
        for uuid, chip in chips.items():
            if users[uuid] > chip.sharers or memory[uuid] > chip.memory:
                words = f"{users[uuid]} of {chip.sharers} pods, {memory[uuid]} of {chip.memory} MiB"
                yield f"NPU {uuid} has {words}"


def chips_too_full(node: Object, pods: Iterable[Object]) -> Iterator[str]:
    """Yield MindCluster's NPUs with too many AI cores or CPUs given."""
    labels = labels_of(node)
    kind, _, each = labels.get("servertype", "").partition("-")
    cores = int(each) if each.isdigit() else 0
    cpus = max((cpus for of, size, cpus in CPUS if (of, size) == (kind, cores)), default=0)
    users, given = Counter[str](), dict[str, Part]()
    for pod in pods:
        for name in _notes(pod).get(CORE, "").split(","):
            chip, cut, template = name.partition("-")
            part = TEMPLATES.get(kind, {}).get(template, Part()) if cut else Part(cores, cpus)
            users[chip] += 1
            given[chip] = given.get(chip, Part()).plus(part)
    for chip, sums in sorted(given.items()) if cpus else ():
        if chip and not Part(cores, cpus).covers(sums):
            words = f"{sums.cores} of {cores} AI cores, {sums.cpus} of {cpus} AI CPUs"
            yield f"NPU {chip} has {words} given, to {users[chip]} pods"


class LockBook:
    """The locks of nodes as the api has had them. `read`: an object from its bytes."""

    def __init__(self, read: Callable[[bytes], Object]) -> None:
        self._read = read
        self._locks: dict[tuple[str, str], str] = {}

    def see(self, mutation: Mutation) -> Iterator[str]:
        """Return sentences on locks of a node that were set anew while they still counted."""
        notes = {} if mutation.type == "DELETED" else _notes(self._read(mutation.blob))
        for lock in LOCKS:
            before, now = self._locks.pop((mutation.name, lock), None), notes.get(lock)
            if now is None:
                continue
            self._locks[mutation.name, lock] = now
            if before is not None and now != before and parse_time(now) - parse_time(before) < EXPIRES_S:
                yield f"node {mutation.name} was locked by {lock} since {before}, and is again since {now}"


def _notes(obj: Object) -> dict[str, str]:
    return annotations_of(obj)


Problem = tuple[str, str]
"""Invariant and words."""
ALL_CORES: Final = 100
HANDED_OUT: Final = "success"


def over_assigned(node: Object | None, pods: Iterable[Object], upheld: frozenset[str] = EVERY) -> Iterator[Problem]:
    """Yield cards of a node with too many users, memory or cores; of slices and of MindCluster's chips where that is
    `upheld`; `pods`: all on the node.
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
    """Yield overused virtual GPUs and slices of them: a card is cut in one way at a time."""
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
            yield f"card {uuid} is cut in {len(groups)} ways at the same time: {', '.join(sorted(groups))}"
    for uuid, (users, memory, cores) in used.items():
        card = cards[uuid]
        if users > card.split or memory > card.memory or cores > ALL_CORES:
            words = (
                f"{users} of {card.split} pods, {memory} of {card.memory} MiB, {cores} of {ALL_CORES} % of its cores"
            )
            yield f"card {uuid} has {words}"


def without_cards(pods: Iterable[Object]) -> Iterator[str]:
    """Yield running pods that never got the cards that they were assigned."""
    for pod in pods:
        if not _said(pod, codec.IDS) or section(pod, "status").get("phase") != "Running":
            continue
        phase = _said(pod, codec.BIND_PHASE)
        if phase != HANDED_OUT:
            yield f"pod {pod['metadata']['name']} runs without the cards that it was assigned: {phase or 'no phase'}"


def miscounted_cells(reports: Iterable[Object], pods: Callable[[str], Iterable[Object]]) -> Iterator[str]:
    """Yield nodes whose reported free CPUs differ from those that no pod has; `pods`: those on a node."""
    for report in reports:
        name, spec = report["metadata"]["name"], report["spec"]
        said = spec["numares"][CPU]
        held = sum(whole_cpus(pod) for pod in pods(name) if section(pod, "status").get("phase") == "Running")
        free, there = len(cpus_of(said["allocatable"])), int(said["capacity"])
        if free + held != there:
            yield f"node {name} has {there} CPUs, pods hold {held}, and {free} are said to be free"


def whole_cpus(pod: Object) -> int:
    """Return the number of whole CPUs of a cell that a pod which requests one holds."""
    if not _said(pod, POLICY):
        return 0
    limits = [section(section(each, "resources"), "limits").get(CPU) for each in pod["spec"]["containers"]]
    return sum(quantity_of(each).value() for each in limits if each is not None)


def _said(obj: Object, annotation: str) -> str:
    return annotations_of(obj).get(annotation, "")
