"""The monitor's books of cards that pods share by memory or have whole, of NPUs, and of the locks of nodes."""

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
from pumice.core.devices.vgpu import Vgpu
from pumice.core.objects.metadata import Object, parse_time, section, text_map

if TYPE_CHECKING:
    from pumice.core.messages.events import Mutation

LOCKS: Final = (LOCK, Vgpu.name)
MODELS: Final = tuple(model.word for model in DEFAULT)


def shared_too_much(node: Object, pods: Iterable[Object]) -> Iterator[str]:
    """Cards that have more memory asked of them than they have, or one that is had whole and somebody else beside."""
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
    """NPUs that HAMi shares and that have more users or memory than there are."""
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
    """NPUs that MindCluster cuts and that have more AI cores or CPUs given than there are."""
    labels = text_map(section(node, "metadata").get("labels"))
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
        """Locks of a node that were set anew while they still counted, in words."""
        notes = {} if mutation.type == "DELETED" else _notes(self._read(mutation.blob))
        for lock in LOCKS:
            before, now = self._locks.pop((mutation.name, lock), None), notes.get(lock)
            if now is None:
                continue
            self._locks[mutation.name, lock] = now
            if before is not None and now != before and parse_time(now) - parse_time(before) < EXPIRES_S:
                yield f"node {mutation.name} was locked by {lock} since {before}, and is again since {now}"


def _notes(obj: Object) -> dict[str, str]:
    return text_map(section(obj, "metadata").get("annotations"))
