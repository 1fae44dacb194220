"""Who has how much of which card. Source: Volcano `vgpu/device_info.go`, `vgpu/hamicore.go`, `vgpu/mig.go`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.devices.family import Notes
from pumice.core.devices.vgpu import slices
from pumice.core.devices.vgpu.asking import group_of
from pumice.core.devices.vgpu.codec import IDS, MIG, Assigned, assigned
from pumice.core.devices.vgpu.exclusive import Reserved
from pumice.core.messages.card_table import CardTable, PodOnCard

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.core.devices.vgpu.asking import CardRequest
    from pumice.core.devices.vgpu.cards import IntArray, VgpuCards
    from pumice.core.devices.vgpu.exclusive import Rules
    from pumice.core.devices.vgpu.settings import Geometry, VgpuSettings
    from pumice.core.objects.pod import Task


@dataclass(slots=True)
class CardUsage:
    """What a pod has of a card, its group and its name."""

    memory: int = 0
    cores: int = 0
    group: str = ""
    pod: str = ""


class CardOccupancy:
    """`sharers`, `memory` (MiB) and `cores` (per cent) in use are int64 [N, C]. `once`: a slice of MIG is one
    container's; without it Volcano gives it to all that are placed before it hears of the first.
    """

    def __init__(
        self,
        names: Sequence[str],
        cards: VgpuCards,
        settings: VgpuSettings,
        policy: str,
        rules: Rules = (),
        *,
        once: bool = False,
    ) -> None:
        self._once = once
        self.cards, self._names, self._settings, self._policy = cards, names, settings, policy
        self.sharers: IntArray = np.zeros(cards.memory.shape, dtype=np.int64)
        self.memory: IntArray = np.zeros(cards.memory.shape, dtype=np.int64)
        self.cores: IntArray = np.zeros(cards.memory.shape, dtype=np.int64)
        self._users: dict[tuple[int, int], dict[str, CardUsage]] = {}
        self._cuts: dict[tuple[int, int], slices.Cut] = {}
        self._asked: dict[int, tuple[CardRequest, ...] | None] = {}
        self.prefers: Callable[[Task, int], int] | None = None  # the card of a node that a pod put there gets first
        self._scores: dict[Hashable, dict[int, tuple[int, float | None]]] = {}
        self._noted: dict[int, float] = {}  # by row: what the filter found last
        self.reserved = Reserved(rules)
        self._changes = [0] * len(names)  # of each node: rises with what is in use there
        self._liked: dict[Hashable, list[bool]] = {}
        self._sliced = np.array([mode == MIG for mode in cards.mode], dtype=np.bool_)

    def remove(self, row: int, task: Task, notes: Mapping[str, str]) -> None:
        """Take back what `add` counted (SubResource): what its first container has of a card goes, then the pod."""
        devices, each = self._devices(row, notes), self._counts_each(row)
        before = {card for card, _ in devices if self._has(row, card, task)}
        for card, device in devices:
            if not (card in before if each else self._has(row, card, task)):
                continue
            size = device.memory
            if self._sliced[row]:
                place = slices.named(device.uuid)
                if place is None:
                    continue
                cut = self._cuts.setdefault((row, card), slices.Cut())
                size = self._scaled(slices.give_back(cut, *place, self._ways(row, card)))
            self._shift(row, card, size, device.cores, -1)
            self._users[row, card].pop(task.uid, None)
        self._changes[row] += 1
        self.reserved.leave(row, task, self._users)

    def add(self, row: int, task: Task, notes: Mapping[str, str]) -> None:
        """Count what the notes say that the pod has (AddResource). A pod counts once a card, whatever its containers
        have; with `once` each of its slices does.
        """
        devices, each = self._devices(row, notes), self._counts_each(row)
        before = {card for card, _ in devices if self._has(row, card, task)}
        for card, device in devices:
            if card in before if each else self._has(row, card, task):
                size = None
            elif self._sliced[row]:
                size = self._take_slice(row, card, device)
            else:
                size = device.memory
            if size is not None:
                usage = self._users.setdefault((row, card), {}).setdefault(task.uid, CardUsage())
                usage.memory, usage.cores = usage.memory + size, usage.cores + device.cores
                usage.group, usage.pod = group_of(task.namespace, notes), task.name
                self._shift(row, card, size, device.cores, 1)
        self.reserve(row, task)

    def _has(self, row: int, card: int, task: Task) -> bool:
        return task.uid in self._users.get((row, card), {})

    def _counts_each(self, row: int) -> bool:
        """Whether every slice of a pod counts."""
        return self._once and bool(self._sliced[row])

    def reserve(self, row: int, task: Task) -> None:
        """The cards that a pod uses are its rules' own, where cards are not cut."""
        if not self._sliced[row]:
            count = len(self.cards.cards[row])
            used = [card for card in range(count) if task.uid in self._users.get((row, card), ())]
            self._changes[row] += 1
            self.reserved.enter(row, task, used)

    def resident(self, row: int, task: Task, notes: Mapping[str, str], *, leaves: bool) -> None:
        """A pod that is on the node as the session opens: the cards of one that leaves are free, but for pods of its
        rules.
        """
        if not leaves:
            self.add(row, task, notes)
        elif not self._sliced[row]:
            named = {device.uuid for devices in assigned(notes.get(IDS, "")) for device in devices}
            cards = [card for card, known in enumerate(self.cards.cards[row]) if known.uuid in named]
            self._changes[row] += 1
            self.reserved.enter(row, task, cards)

    def _scaled(self, size: int) -> int:
        return size // self._settings.factor if self._settings.factor > 1 else size

    def _ways(self, row: int, card: int) -> Sequence[Geometry]:
        return self.cards.ways[row][card]

    def _cut(self, row: int, card: int) -> slices.Cut:
        return self._cuts.get((row, card)) or slices.Cut()

    def _has_group(self, row: int, card: int, group: str) -> bool:
        users = self._users.get((row, card), {}).values()
        return any(each.group == group and (each.memory > 0 or each.cores > 0) for each in users)

    def _note_users(self, row: int, task: Task, notes: Notes) -> None:
        """What was assigned is counted already; whose it is is not."""
        group = group_of(task.namespace, notes)
        for devices in assigned(notes[IDS]):
            for device in devices:
                for card, known in enumerate(self.cards.cards[row]):
                    if known.uuid in device.uuid:
                        usage = self._users.setdefault((row, card), {}).setdefault(task.uid, CardUsage())
                        usage.memory, usage.cores = usage.memory + device.memory, usage.cores + device.cores
                        usage.group, usage.pod = group, task.name

    def table(self) -> CardTable:
        """All cards, by node."""
        rows, columns = (self.cards.kind >= 0).nonzero()
        places = {at: place for place, at in enumerate(zip(rows.tolist(), columns.tolist(), strict=True))}
        numbers = np.array([each[rows, columns] for each in (self.sharers, self.memory, self.cores, self.cards.memory)])
        return CardTable(
            nodes=[self._names[row] for row, _ in places],
            cards=[self.cards.cards[row][card].uuid for row, card in places],
            numbers=numbers.astype(np.float64).tobytes(),
            pods=tuple(
                PodOnCard(places[at], usage.pod, usage.memory, usage.cores)
                for at, users in sorted(self._users.items())
                for usage in users.values()
                if at in places
            ),
        )

    def _shift(self, row: int, card: int, memory: int, cores: int, sign: int) -> None:
        self._changes[row] += 1
        self.sharers[row, card] += sign
        self.memory[row, card] += sign * memory
        self.cores[row, card] += sign * cores

    def _devices(self, row: int, notes: Mapping[str, str]) -> list[tuple[int, Assigned]]:
        """(card, what was assigned of it): the first card whose uuid is in the name."""
        cards = self.cards.cards[row]
        found: list[tuple[int, Assigned]] = []
        for devices in assigned(notes.get(IDS, "")) if cards else ():
            for device in devices:
                card = next((index for index, card in enumerate(cards) if card.uuid in device.uuid), None)
                if card is not None:
                    found.append((card, device))
        return found

    def _take_slice(self, row: int, card: int, device: Assigned) -> int | None:
        place = slices.named(device.uuid)
        if place is None:
            return None
        cut = self._cuts.setdefault((row, card), slices.Cut())
        return self._scaled(slices.take(cut, *place, self._ways(row, card)))
