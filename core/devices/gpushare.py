# SPDX-License-Identifier: Apache-2.0
"""GPU sharing by memory (`volcano.sh/gpu-memory`) and by number (`volcano.sh/gpu-number`).

Source: Volcano `api/devices/nvidia/gpushare`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.devices.columns import MOST_CARDS, CardUsers, NodeCards, column_of
from pumice.core.devices.family import (
    ALL,
    DeviceError,
    Family,
    Notes,
    Refusal,
    amount,
    containers,
    limits_of,
    short_of,
)
from pumice.core.go_numbers import parse_int
from pumice.core.objects.metadata import Object, section
from pumice.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pumice.core.devices.columns import IntArray
    from pumice.core.devices.family import Around, BoolArray, FloatArray, Rows
    from pumice.core.objects.node import NodeSpec
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate

NAME: Final = "GpuShare"
LOCK: Final = "gpu"
MEMORY: Final = "volcano.sh/gpu-memory"
NUMBER: Final = "volcano.sh/gpu-number"
INDEX: Final = "volcano.sh/gpu-index"
PREDICATE_TIME: Final = "volcano.sh/predicate-time"
UNHEALTHY: Final = "volcano.sh/gpu-unhealthy-ids"


@dataclass(frozen=True)
class Cards(NodeCards):
    """The cards of nodes: `each` MiB of every card [N], `there` bool [N, C] the healthy ones. A node that never had a
    card has no devices.
    """

    each: IntArray
    there: BoolArray


def cards_of(specs: Sequence[NodeSpec]) -> Cards:
    """Return the cards of nodes, in their order."""
    found = [_of_node(spec) for spec in specs]
    health = [[card not in unhealthy for card in range(min(count, MOST_CARDS))] for _, count, unhealthy in found]
    each = np.array([memory for memory, _, _ in found], dtype=np.int64)
    return Cards([count for _, count, _ in found], each, column_of(health, int) > 0)


def _of_node(spec: NodeSpec) -> tuple[int, int, frozenset[int | None]]:
    """Return (MiB of each card, cards, unhealthy ones)."""
    capacity = section(section(spec.node, "status"), "capacity")
    count = amount(capacity, NUMBER)
    if MEMORY not in capacity or count <= 0:
        return 0, 0, frozenset()
    # Atoi's error only skips an entry here; in `indices` it drops the list (GetGPUIndex).
    listed = spec.annotations.get(UNHEALTHY)
    # Cards are taken to be alike: Volcano divides the node's memory by their number (gpushare/device_info.go).
    return amount(capacity, MEMORY) // count, count, frozenset(map(parse_int, listed.split(",") if listed else ()))


def memory_asked(template: PodTemplate) -> int:
    """Return the MiB that a pod requests: the sum of its containers, or its largest init container."""
    return _asked(template, MEMORY)


def number_asked(template: PodTemplate) -> int:
    """Return the cards that a pod requests, counted likewise."""
    return _asked(template, NUMBER)


def _asked(template: PodTemplate, name: str) -> int:
    together = sum(amount(limits_of(each), name) for each in containers(template))
    largest = max((amount(limits_of(each), name) for each in containers(template, "initContainers")), default=0)
    # Init containers run one at a time, before the others, so the largest of them counts.
    return max(together, largest)


@lru_cache(maxsize=4096)
def indices(text: str | None) -> tuple[int, ...]:
    """Return the cards that an annotation names; none when one of them is not a number."""
    if text is None:
        return ()
    ids = [parse_int(each) for each in text.split(",")]
    return tuple(card for card in ids if card is not None) if None not in ids else ()


class GpuShare(CardUsers[int], Family):
    """Cards that pods share. `by_memory`, `by_number`: which of the two requests count.

    `overfull_is_full`: a card with more in use than it has gives nothing (a fix).

    A card's users are pods by uid with the MiB that they ask for. A pod that loses its node in the same session stays
    on its cards, for Volcano reads which they were off a copy of the pod that was never updated.
    """

    name = NAME
    uniform = False
    vocabulary = Vocabulary((INDEX, PREDICATE_TIME, UNHEALTHY), words="GpuNumber GpuShare gpu-memory gpu-number")

    @staticmethod
    def given(notes: Mapping[str, str]) -> Iterator[str]:
        """Yield a phrase for each card that a pod was given by its annotations."""
        if notes.get(INDEX):
            yield from (f"card {index}" for index in notes[INDEX].split(","))

    def __init__(
        self, names: Sequence[str], cards: Cards, *, by_memory: bool, by_number: bool, overfull_is_full: bool = False
    ) -> None:
        super().__init__(names, cards.there.shape)
        self._overfull_is_full, self._present = overfull_is_full, cards.present
        self._cards, self._by_memory, self._by_number = cards, by_memory, by_number
        self._asked: dict[int, tuple[int, int]] = {}

    @property
    def present(self) -> BoolArray:
        """Return the nodes that have such devices [N]."""
        return self._present

    def _asks(self, template: PodTemplate) -> tuple[int, int]:
        found = self._asked.get(template.number)
        # Read once for each template, not for each pod: the pods of a job share one.
        if found is None:
            found = self._asked[template.number] = memory_asked(template), number_asked(template)
        return found

    def concerns(self, task: Task) -> bool:
        """Return whether the pod asks for such devices (HasDeviceRequest)."""
        memory, number = self._asks(task.template)
        return (self._by_memory and memory > 0) or (self._by_number and number > 0)

    # --- what fits

    def fitting(self, task: Task, rows: Rows = ALL) -> BoolArray:
        """Return the nodes that have what the task asks for, of those rows that have any [len(rows)] (FilterNode)."""
        memory, number = self._asks(task.template)
        fits: BoolArray = self.present[rows].copy()
        if self._by_memory and memory > 0:
            fits &= self._roomy(rows, memory).any(axis=1)
        if self._by_number and number > 0:
            fits &= self._idle(rows).sum(axis=1) >= number
        return fits

    def _roomy(self, rows: Rows | int, memory: int) -> BoolArray:
        """Return the cards with enough left. Volcano subtracts unsigned numbers (share.go, getDevicesIdleGPUMemory), so
        an overused card seems to have plenty, unless the fix is on.
        """
        left = self._cards.each[rows, None] - self.memory[rows]
        roomy = left >= memory if self._overfull_is_full else (left >= memory) | (left < 0)
        found: BoolArray = self._cards.there[rows] & roomy
        return found

    def _idle(self, rows: Rows | int) -> BoolArray:
        idle: BoolArray = self._cards.there[rows] & (self.sharers[rows] == 0)
        return idle

    def refusal(self, task: Task, row: int) -> Refusal:
        """Return the message about a node where the pod does not fit."""
        # One text is enough: Volcano does not start with both switches on (`deviceshare.go`, enablePredicate).
        words = "GpuShare no enough gpu memory" if self._by_memory else "GpuNumber no enough gpu number"
        return Refusal(f"{words} on node {self._names[row]}")

    def against(self, task: Task, row: int) -> dict[str, list[str]]:
        """Return card -> its own obstacle, for people; empty where it fits."""
        memory, number = self._asks(task.template)
        size, found = int(self._cards.each[row]), self._cards.left_out(row)
        for card in range(min(self._cards.claimed[row], MOST_CARDS)):
            reasons = [] if self._cards.there[row, card] else ["unhealthy"]
            if self._by_memory and memory > 0 and not reasons:
                reasons += short_of("MiB", size - int(self.memory[row, card]), size, memory)
            if self._by_number and number > 0 and self.sharers[row, card]:
                reasons.append("in use")
            found[f"card {card}"] = reasons
        return found

    def cards_asked(self, task: Task) -> int:
        """Return the largest number of cards that one node must have: one, where memory is requested."""
        return max(self._asks(task.template)[1], 1) if self._by_number else 1

    def scores(self, task: Task, rows: Rows = ALL) -> FloatArray:
        """Return 0 everywhere: gpushare prefers no node."""
        return np.zeros(len(self.present[rows]))

    # --- who has what

    def add(self, row: int, task: Task, notes: Mapping[str, str]) -> None:
        """Count what the notes say that the pod has (AddResource)."""
        if any(self._asks(task.template)):
            self._give(row, task, indices(notes.get(INDEX)))

    def remove(self, row: int, task: Task, notes: Mapping[str, str]) -> None:
        """Take back what `add` counted (SubResource)."""
        if any(self._asks(task.template)):
            self._take(row, task, indices(notes.get(INDEX)))

    # A card that is unhealthy now keeps no users: Volcano deletes it from the node's cards (NewGPUDevices).
    def _give(self, row: int, task: Task, cards: Sequence[int]) -> None:
        memory, _ = self._asks(task.template)
        # First taken back: a pod is added again after an undone eviction, and must not count twice.
        self._take(row, task, cards)
        for card in self._here(row, cards):
            self._users.setdefault((row, card), {})[task.uid] = memory
            self._shift(row, card, memory, 0, 1)

    def _take(self, row: int, task: Task, cards: Sequence[int]) -> None:
        for card in self._here(row, cards):
            memory = self._users.get((row, card), {}).pop(task.uid, None)
            if memory is not None:
                self._shift(row, card, memory, 0, -1)

    def _here(self, row: int, cards: Sequence[int]) -> list[int]:
        there = self._cards.there[row]
        return [card for card in cards if 0 <= card < len(there) and there[card]]

    def assign(self, row: int, task: Task, notes: Notes, now: float) -> Notes:
        """Choose cards, count them, and return the annotations of the pod (Allocate): the first card with enough
        memory, or as many idle cards as requested. Raises DeviceError.
        """
        memory, number = self._asks(task.template)
        cards: list[int] = []
        if memory > 0:
            self.take_lock(row, task, LOCK, f"node {self._names[row]} locked for lockname gpushare")
            # One card only: Volcano does not spread a request for memory over several.
            cards = np.flatnonzero(self._roomy(row, memory)).tolist()[:1]
            self._give_or_fail(row, task, cards)
        if number > 0:
            idle: list[int] = np.flatnonzero(self._idle(row)).tolist()
            # Overwrites the card of the memory request, as in Volcano: a pod that asks for both is annotated with these
            # alone.
            cards = idle[:number] if len(idle) >= number else []
            self._give_or_fail(row, task, cards)
        return {PREDICATE_TIME: str(int(now * 1e9)), INDEX: ",".join(map(str, cards))}

    def _give_or_fail(self, row: int, task: Task, cards: Sequence[int]) -> None:
        if not cards:
            raise DeviceError(f"the node {self._names[row]} can't place the pod {task.name} in ns {task.namespace}")
        self._give(row, task, cards)

    def encoded(self, row: int, around: Around) -> Object | None:
        """Return the devices of a node as Volcano's struct encodes to JSON; None where the node has no such devices."""
        if not self.present[row]:
            return None
        memory, there = int(self._cards.each[row]), np.flatnonzero(self._cards.there[row]).tolist()
        pods = {card: {uid: around.whole(uid) for uid in self._users_of(row, card)} for card in there}
        devices = {str(card): {"ID": card, "PodMap": pods[card], "Memory": memory} for card in there}
        return {"Name": self._names[row], "Device": devices}

    def release(self, row: int, task: Task, notes: Notes) -> tuple[str, ...]:
        """Give back what the pod was assigned: the annotations that go (Release)."""
        self._take(row, task, indices(notes.get(INDEX)))
        return PREDICATE_TIME, INDEX

    def trial(self, row: int) -> GpuShare:
        """Return a copy that has only that node, as row 0, for changes on trial."""
        twin = self._alone(row)
        twin._cards, twin._present = self._cards.alone(row), self._present[row : row + 1]
        return twin
