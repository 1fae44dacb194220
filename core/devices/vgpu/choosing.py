# SPDX-License-Identifier: Apache-2.0
"""The cards that a pod gets. Source: Volcano `vgpu/utils.go` (checkNodeGPUSharingPredicateAndScore)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pumice.core.devices.columns import CardUsers
from pumice.core.devices.family import Notes, short_of
from pumice.core.devices.vgpu import slices
from pumice.core.devices.vgpu.asking import MODE, NVIDIA, READ, CardRequest, group_of, likes
from pumice.core.devices.vgpu.codec import IDS, MIG, Assigned, assigned
from pumice.core.devices.vgpu.exclusive import Reserved
from pumice.core.messages.queue_tables import CardTable, PodOnCard

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.core.devices.vgpu.cards import VgpuCards
    from pumice.core.devices.vgpu.exclusive import Rules
    from pumice.core.devices.vgpu.settings import Geometry, VgpuSettings
    from pumice.core.objects.pod import Task

# --- Usage of cards
# Source: Volcano `vgpu/device_info.go`, `vgpu/hamicore.go`, `vgpu/mig.go`.


@dataclass(slots=True)
class CardUsage:
    """A pod's part of a card, its group and its name."""

    memory: int = 0
    cores: int = 0
    group: str = ""
    pod: str = ""


class CardOccupancy(CardUsers[CardUsage]):
    """The pods' parts of cards; cores are in per cent. `once`: a MIG slice belongs to one container; without it Volcano
    gives the slice to all pods that are placed before it learns of the first.
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
        super().__init__(names, cards.memory.shape)
        self._once, self._present = once, cards.present
        self.cards, self._settings, self._policy = cards, settings, policy
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
        """Count the part that the annotations give the pod (AddResource). A pod counts once a card, whatever its
        containers hold; with `once` each of its slices counts.
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
        return task.uid in self._users_of(row, card)

    def _counts_each(self, row: int) -> bool:
        """Return whether every slice of a pod counts."""
        return self._once and bool(self._sliced[row])

    def reserve(self, row: int, task: Task) -> None:
        """Reserve the cards that a pod uses for its rules, where cards are not cut."""
        if not self._sliced[row]:
            count = len(self.cards.cards[row])
            used = [card for card in range(count) if task.uid in self._users.get((row, card), ())]
            self._changes[row] += 1
            self.reserved.enter(row, task, used)

    def resident(self, row: int, task: Task, notes: Mapping[str, str], *, leaves: bool) -> None:
        """Count a pod that is on the node as the session opens: the cards of one that leaves are free, except for pods
        of its rules.
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
        # A new one is not kept: only a slice that is taken cuts a card.
        return self._cuts.get((row, card)) or slices.Cut()

    def _has_group(self, row: int, card: int, group: str) -> bool:
        users = self._users_of(row, card).values()
        return any(each.group == group and (each.memory > 0 or each.cores > 0) for each in users)

    def _note_users(self, row: int, task: Task, notes: Notes) -> None:
        """Record the users of the assigned cards; the amounts are counted already."""
        group = group_of(task.namespace, notes)
        for devices in assigned(notes[IDS]):
            for device in devices:
                # Every card whose uuid is in the name: addToPodMap has no `break`, unlike addResource.
                for card, known in enumerate(self.cards.cards[row]):
                    if known.uuid in device.uuid:
                        usage = self._users.setdefault((row, card), {}).setdefault(task.uid, CardUsage())
                        usage.memory, usage.cores = usage.memory + device.memory, usage.cores + device.cores
                        usage.group, usage.pod = group, task.name

    def table(self) -> CardTable:
        """Return all cards, by node."""
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
        super()._shift(row, card, memory, cores, sign)

    def _devices(self, row: int, notes: Mapping[str, str]) -> list[tuple[int, Assigned]]:
        """Return (card, the assigned part of it): the first card whose uuid is in the name."""
        cards = self.cards.cards[row]
        found: list[tuple[int, Assigned]] = []
        for devices in assigned(notes.get(IDS, "")) if cards else ():
            for device in devices:
                # The name of a slice contains its card's uuid (`UUID[group-position]`), so the two are not equal.
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


BINPACK, SPREAD = "binpack", "spread"
FULL: Final = 100


class Wanted(NamedTuple):
    """The request of a task: by container, and the annotations that it depends on."""

    containers: tuple[CardRequest, ...]
    annotations: Mapping[str, str]
    apart: str  # the group whose pods share no card
    rules: frozenset[int]  # those it matches: it keeps off cards of other pods that match one of them
    first: int = -1  # the card to try before all others, -1 for none


class CardRow:
    """The cards of one node during a trial: sharers, MiB and cores in use, by card. `cuts`: of the cards with slices in
    use.
    """

    __slots__ = ("cores", "cuts", "memory", "sharers")

    def __init__(self, state: CardOccupancy, row: int) -> None:
        count = len(state.cards.cards[row])
        self.sharers: list[int] = state.sharers[row, :count].tolist()
        self.memory: list[int] = state.memory[row, :count].tolist()
        self.cores: list[int] = state.cores[row, :count].tolist()
        self.cuts: dict[int, slices.Cut] = {}

    def write(self, state: CardOccupancy, row: int) -> None:
        """Keep the result of the trial."""
        count = len(self.sharers)
        state.sharers[row, :count] = self.sharers
        state.memory[row, :count] = self.memory
        state.cores[row, :count] = self.cores

    def undo(self, tried: Sequence[tuple[int, int, int]]) -> None:
        """Give back (card, MiB, cores) each, never below nothing."""
        # Not below 0: a slice may have added other numbers than the rollback takes off (rollbackTentative).
        for card, memory, cores in tried:
            self.sharers[card] = max(self.sharers[card] - 1, 0)
            self.memory[card] = max(self.memory[card] - memory, 0)
            self.cores[card] = max(self.cores[card] - cores, 0)


def has_room(asked: CardRequest, memory: Any, split: Any, size: Any, sharers: Any, used: Any, cores: Any) -> Any:
    """Return whether a card of so many parts and MiB, with so much in use, has room for a container that gets so many
    MiB of it; numbers for one card, arrays for many.
    """
    # `&` and not `and`: each side may be an array.
    room = (split > sharers) & (size - used >= memory) & (cores + asked.cores <= FULL)
    # All cores of a card mean the card alone, whatever memory it has left.
    if asked.cores == FULL:
        room &= sharers == 0
    # A container without cores may not join a card whose cores are all taken.
    if asked.cores == 0:
        room &= cores != FULL
    return room


class Choosing(CardOccupancy):
    """The choice of cards for the containers of a pod on one node, by the policy."""

    def _chosen(self, wanted: Wanted, row: int, tried: CardRow) -> tuple[list[list[Assigned]], float] | None:
        """Return the cards of each container, and the score; `tried` is as if they had been given. None when the pod
        does not fit, and `tried` holds what Volcano leaves behind.
        """
        # Without the annotation, nodes of either mode will do.
        mode = wanted.annotations.get(MODE)
        if mode is not None and mode != self.cards.mode[row]:
            return None
        given: list[list[Assigned]] = []
        taken: list[tuple[int, int, int]] = []
        score = 0.0
        for asked in wanted.containers:
            found = self._for_container(asked, wanted, row, tried, taken)
            if found is None:
                tried.undo(taken)
                return None
            given.append(found[0])
            score += found[1]
        return given, score

    def _for_container(
        self, asked: CardRequest, wanted: Wanted, row: int, tried: CardRow, taken: list[tuple[int, int, int]]
    ) -> tuple[list[Assigned], float] | None:
        # All cards count, healthy or not: Volcano never looks at Health.
        if asked.cards > len(tried.sharers):
            return None
        devices: list[Assigned] = []
        missing, score, liked = asked.cards, 0.0, self._likes(wanted.annotations)
        cards, kinds = self.cards.cards[row], self.cards.kinds[row]
        for card in self._in_order(tried, wanted.first):
            memory = asked.memory_of(cards[card].memory)
            used = tried.sharers[card], tried.memory[card], tried.cores[card]
            if not (liked[kinds[card]] and has_room(asked, memory, cards[card].split, cards[card].memory, *used)):
                continue
            if wanted.apart and self._has_group(row, card, wanted.apart):
                continue
            if wanted.rules and self.reserved.holds(row, card, wanted.rules):
                continue
            name, size = self._try(row, card, memory, tried) or ("", 0)
            if not name:
                continue
            if self._counts_each(row):
                self._take(row, card, name, tried)
            tried.sharers[card] += 1
            tried.memory[card] += size
            tried.cores[card] += asked.cores
            # The MiB requested, not those of the slice: a rollback takes back less than TryAddPod added, and Allocate
            # works on the cards of the node, not on a copy.
            taken.append((card, memory, asked.cores))
            # A request of 0 cards gets none, but the first card counts it as a sharer: TryAddPod runs before the count.
            if missing > 0:
                missing -= 1
                devices.append(Assigned(name, NVIDIA, memory, asked.cores))
                score += self._liking(cards[card].memory, card, tried)
            if missing == 0:
                break
        return None if missing > 0 else (devices, score)

    def _card_against(self, asked: CardRequest, wanted: Wanted, row: int, card: int, tried: CardRow) -> list[str]:
        """Return what speaks against a card, for people."""
        known, kind = self.cards.cards[row][card], self.cards.kinds[row][card]
        memory, found = asked.memory_of(known.memory), list[str]()
        if not self._likes(wanted.annotations)[kind]:
            found.append(f"its type {known.type} is refused")
        if tried.sharers[card] >= known.split:
            found.append(f"{tried.sharers[card]} share it, as many as may")
        found += short_of("MiB", known.memory - tried.memory[card], known.memory, memory)
        found += short_of("% of its cores", FULL - tried.cores[card], FULL, asked.cores)
        if asked.cores == FULL and tried.sharers[card]:
            found.append("asks all of its cores, and others share it")
        if asked.cores == 0 and tried.cores[card] == FULL:
            found.append("none of its cores are left")
        if wanted.apart and self._has_group(row, card, wanted.apart):
            found.append(f"a pod of {wanted.apart} has it")
        if wanted.rules and self.reserved.holds(row, card, wanted.rules):
            found.append("a pod of the same rule has it for itself")
        if not found and self._try(row, card, memory, tried) is None:
            cut = tried.cuts.get(card) or self._cut(row, card)
            found.append(slices.against(memory, cut, self._ways(row, card)))
        return found

    def _in_order(self, tried: CardRow, first: int) -> list[int]:
        """Return the cards, those first that the policy prefers; without a policy from the last to the first. `first`:
        the card that comes before all, -1 for none.
        """
        order = self._by_policy(tried)
        return order if first < 0 else [first, *(card for card in order if card != first)]

    def _by_policy(self, tried: CardRow) -> list[int]:
        cards = range(len(tried.sharers))
        if self._policy == BINPACK:
            return sorted(cards, key=lambda card: -tried.memory[card])
        if self._policy == SPREAD:
            # Fewest sharers first. Both sorts leave equals in the order of cards, which Volcano asks for by index.
            return sorted(cards, key=lambda card: tried.sharers[card])
        return list(reversed(cards))

    def _take(self, row: int, card: int, name: str, tried: CardRow) -> None:
        """Take a slice that no other pod has."""
        place = slices.named(name)
        if place is not None:
            # A copy, since the try may fail: `assign` keeps the cuts of one that succeeds.
            cut = tried.cuts.setdefault(card, self._cut(row, card).copy())
            slices.take(cut, *place, self._ways(row, card))

    def _try(self, row: int, card: int, memory: int, tried: CardRow) -> tuple[str, int] | None:
        """Return (name, MiB) of the part that a pod would get of a card."""
        uuid = self.cards.cards[row][card].uuid
        if not self._sliced[row]:
            return uuid, memory
        factor = self._settings.factor
        cut = tried.cuts.get(card) or self._cut(row, card)
        found = slices.find(uuid, memory * factor if factor > 1 else memory, cut, self._ways(row, card))
        return None if found is None else (found[0], self._scaled(found[1]))

    def _liking(self, memory: int, card: int, tried: CardRow) -> float:
        # `tried` has the container already (GPUScore runs after TryAddPod): `spread` finds no card without sharers, and
        # scores 0.
        if self._policy == BINPACK:
            return 100.0 * (float(tried.memory[card]) / float(memory)) if memory else 0.0
        return 100.0 if self._policy == SPREAD and tried.sharers[card] == 0 else 0.0

    def _likes(self, annotations: Mapping[str, str]) -> list[bool]:
        """Return whether cards of each type will do."""
        said = tuple(annotations.get(name) for name in READ[:2])
        found = self._liked.get(said)
        if found is None:
            found = self._liked[said] = [likes(annotations, kind) for kind in self.cards.types]
        return found
