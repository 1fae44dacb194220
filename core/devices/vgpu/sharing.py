# SPDX-License-Identifier: Apache-2.0
"""Virtual GPUs as a family of devices. Source: Volcano `vgpu/device_info.go`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.devices.family import ALL, DeviceError, Family, Notes, Refusal, is_all, numbers_of
from pumice.core.devices.vgpu import slices
from pumice.core.devices.vgpu.asking import (
    GROUPS,
    MODE,
    POLICY,
    READ,
    UNSAID,
    WHOLE,
    AskedByTemplate,
    CardRequest,
    kept_apart,
)
from pumice.core.devices.vgpu.choosing import CardRow, Choosing, Wanted, has_room
from pumice.core.devices.vgpu.codec import (
    ASSIGNED,
    BIND_PHASE,
    DOMAIN,
    HANDSHAKE,
    IDS,
    NODE,
    REGISTER,
    TO_ALLOCATE,
    allocating,
    assigned,
    encoded,
    phrase,
)
from pumice.core.objects.metadata import Object
from pumice.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pumice.core.devices.family import Around, BoolArray, FloatArray, Rows
    from pumice.core.objects.pod import Task

REFUSAL: Final = Refusal("hami-vgpuDeviceSharing error")
CHOOSY: Final = frozenset(READ) - frozenset(GROUPS)
"""Without one of these annotations any card will do."""
FEW: Final = 4
"""Up to so many nodes are looked at one by one."""


class Vgpu(AskedByTemplate, Choosing, Family):
    """Virtual GPUs: cards that pods share by memory and cores."""

    name = "hamivgpu"
    owns = True
    vocabulary = Vocabulary(
        (*ASSIGNED[1:], REGISTER, HANDSHAKE, MODE, POLICY, "volcano.sh/mutex.lock"),
        domains=MappingProxyType({"nvidia.com": "(no)?use-gputype"}),
        words="hami-vgpuDeviceSharing vgpu-cores vgpu-memory vgpu-memory-percentage vgpu-number",
    )

    @staticmethod
    def given(notes: Mapping[str, str]) -> Iterator[str]:
        """Yield a phrase for each card that a pod was given by its annotations."""
        for devices in assigned(notes.get(IDS, "")):
            yield from map(phrase, devices)

    @property
    def present(self) -> BoolArray:
        """Return the nodes that have such devices [N]."""
        return self._present

    def kind(self, task: Task) -> Hashable:
        """Return the annotations that choose cards."""
        if self._asks(task.template) is None:
            return None
        rules = self.reserved.rules_of(task.labels)
        if CHOOSY.isdisjoint(task.annotations):
            return rules
        said = tuple([task.annotations.get(name) for name in READ])
        return rules, ((task.namespace, *said) if kept_apart(task.namespace, task.annotations) else said[:3])

    def _wanted(self, task: Task) -> Wanted:
        apart = kept_apart(task.namespace, task.annotations)
        return Wanted(self._asks(task.template) or (), task.annotations, apart, self.reserved.rules_of(task.labels))

    # --- what fits

    def fitting(self, task: Task, rows: Rows = ALL) -> BoolArray:
        """Return the nodes, among rows that have any, that have what the task requests [len(rows)] (FilterNode). Where
        one container requests cards, and cards are not cut, many nodes are looked at together.
        """
        wanted, fits = self._wanted(task), self.present[rows].copy()
        one_by_one = fits
        # Groups and rules go by the pods on each card, of which the columns know nothing.
        if len(wanted.containers) == 1 and len(fits) > FEW and not (wanted.apart or wanted.rules):
            (asked,) = wanted.containers
            enough = np.count_nonzero(self._usable(asked, wanted, rows), axis=1) >= max(asked.cards, 0)
            fits &= enough
            mode = wanted.annotations.get(MODE)
            if mode is not None:
                modes = [self.cards.mode[row] for row in numbers_of(rows, len(self.present))]
                fits &= np.array([each == mode for each in modes], dtype=np.bool_)
            one_by_one = fits & self._sliced[rows]
        places = one_by_one.nonzero()[0]
        if len(places):
            numbers = numbers_of(rows, len(self.present))
            scored = self._scored(task, [numbers[place] for place in places.tolist()])
            fits[places] = [score is not None for score in scored]
        return fits

    def fits(self, task: Task, row: int) -> bool:
        """Return whether one node with such cards has what the task asks for."""
        return self._scored(task, (row,))[0] is not None

    def score(self, task: Task, row: int) -> float:
        """Return how well the task fits on one node."""
        return self._scored(task, (row,))[0] or 0.0

    def _usable(self, asked: CardRequest, wanted: Wanted, rows: Rows) -> BoolArray:
        cards = self.cards
        size = cards.memory[rows]
        if asked.percent != UNSAID:
            # Truncated, as Go converts a float to an unsigned number.
            memory = (size * float(asked.percent) / 100.0).astype(np.int64)
        else:
            memory = np.full(size.shape, asked.memory, dtype=np.int64)
        liked = np.array([*self._likes(wanted.annotations), False], dtype=np.bool_)  # the last one: no card
        in_use = self.sharers[rows], self.memory[rows], self.cores[rows]
        usable: BoolArray = has_room(asked, memory, cards.split[rows], size, *in_use) & liked[cards.kind[rows]]
        return usable

    def _scored(self, task: Task, rows: Iterable[int]) -> list[float | None]:
        """Return the scores, None where the task does not fit: cached until the use there changes, since filter and
        scorer ask one after the other.
        """
        of_kind = self._scores.setdefault((task.template.number, self.kind(task)), {})
        wanted: Wanted | None = None
        scores: list[float | None] = []
        for row in rows:
            known = of_kind.get(row)
            if known is None or known[0] != self._changes[row]:
                wanted = wanted or self._wanted(task)
                found = self._chosen(wanted, row, CardRow(self, row))
                known = of_kind[row] = self._changes[row], None if found is None else found[1]
            scores.append(known[1])
        return scores

    def refusal(self, task: Task, row: int) -> Refusal:
        """Return the message about a node where the task does not fit."""
        return REFUSAL

    def against(self, task: Task, row: int) -> dict[str, list[str]]:
        """Return card -> its own obstacle for the container that requests the most of a card."""
        wanted, tried = self._wanted(task), CardRow(self, row)
        asked = max(wanted.containers, key=lambda each: (each.memory_of(WHOLE), each.cores), default=None)
        cards, mode = self.cards.cards[row], self.cards.mode[row]
        wish = wanted.annotations.get(MODE, mode)
        other = [] if wish == mode else [f"the node shares cards by {mode}, asks {wish}"]
        if asked is None:
            return {card.uuid: other for card in cards}
        against = (other + self._card_against(asked, wanted, row, at, tried) for at in range(len(cards)))
        return self.cards.left_out(row) | {card.uuid: reasons for card, reasons in zip(cards, against, strict=True)}

    def scores(self, task: Task, rows: Rows = ALL) -> FloatArray:
        """Return how full the chosen cards get, or how many have no other user, float64 [len(rows)] (ScoreNode). When
        all nodes are scored, equal nodes with equal use of their cards are scored once.
        """
        if not is_all(rows):
            return np.array([score or 0.0 for score in self._scored(task, numbers_of(rows, len(self.present)))])
        wanted = self._wanted(task)
        # Slices, groups and rules are not in the columns by which nodes are taken for equal.
        alone = bool(self._sliced.any() or wanted.apart or wanted.rules)
        alike: Sequence[int] = range(len(self.present)) if alone else self.cards.alike
        rows_there: list[int] = np.flatnonzero(self.present).tolist()
        return self._scores_of(rows_there, alike, lambda row: self._scored(task, (row,))[0] or 0.0)

    # --- who has what

    def assign(self, row: int, task: Task, notes: Notes, now: float) -> Notes:
        """Choose devices, count them, and return the annotations of the pod (Allocate)."""
        name = self._names[row]
        if notes.get(NODE) == name and notes.get(IDS):
            return {}  # it has them already
        tried = CardRow(self, row)
        wanted = self._wanted(task)
        if self.prefers is not None:
            wanted = wanted._replace(first=self.prefers(task, row))
        found = self._chosen(wanted, row, tried)
        # Before the refusal: what Volcano leaves behind of a failed try counts from now on.
        tried.write(self, row)
        self._changes[row] += 1
        if found is None:
            raise DeviceError(REFUSAL.text)
        # After the choice, unlike for NPUs: a pod that the lock refuses stays on the cards until the next session
        # counts anew.
        self.take_lock(row, task, self.name, f"node {name} locked for {task.name} {self.name} lockname")
        self._cuts.update({(row, card): cut for card, cut in tried.cuts.items()})
        ids = encoded(found[0])
        said = {IDS: ids, TO_ALLOCATE: ids, **allocating(DOMAIN, name, now)}
        notes.update(said)
        self._note_users(row, task, notes)
        self.reserve(row, task)
        return said

    def release(self, row: int, task: Task, notes: Notes) -> tuple[str, ...]:
        """Give back what the pod was assigned: the annotations that go (Release). One that has been given its devices
        by the node keeps its own.
        """
        self.remove(row, task, notes)
        return () if notes.get(BIND_PHASE) == "success" else tuple(name for name in ASSIGNED if name in notes)

    def owned(self, row: int, notes: Mapping[str, str]) -> dict[str, float]:
        """Return what the pod has of the node's scalars by its notes, in milli-units: it replaces the pod's request in
        the sums of queues (AddQueueResource).
        """
        found: dict[str, float] = {}
        for devices in assigned(notes.get(IDS, "")):
            for device in devices:
                # Every card whose uuid is in the name counts, for this loop of Volcano's has no `break`
                # (AddQueueResource).
                for _ in (card for card in self.cards.cards[row] if card.uuid in device.uuid):
                    for name, value in ((self._settings.memory, device.memory), (self._settings.cores, device.cores)):
                        found[name] = found.get(name, 0.0) + float(value * 1000)
        return found

    def encoded(self, row: int, around: Around) -> Object | None:
        """Return the devices of a node as Volcano's struct encodes to JSON; None where the node has no such devices."""
        if not self.present[row]:
            return None
        # The score that the last filter left behind: Volcano keeps one number a node, whichever pod it was for.
        cards = {str(card): self._card(row, card) for card in range(len(self.cards.cards[row]))}
        score = self._noted.get(row, 0.0)
        return {"Name": self._names[row], "Mode": self.cards.mode[row], "Score": score, "Device": cards, "Sharing": {}}

    def note_scores(self, task: Task, rows: Rows) -> None:
        """Keep the scores that the filter found for these nodes, where the scorer reads them and `encoded` shows
        them.
        """
        there = [row for row in numbers_of(rows, len(self.present)) if self.present[row]]
        scored = zip(there, self._scored(task, there), strict=True)
        self._noted.update({row: score for row, score in scored if score is not None})

    def _card(self, row: int, card: int) -> Object:
        known, users = self.cards.cards[row][card], self._users_of(row, card)
        cut, ways = self._cut(row, card), self._ways(row, card)
        return {
            "ID": card,
            "Node": self._names[row],
            "UUID": known.uuid,
            "PodMap": {
                uid: {"UsedMem": each.memory, "UsedCore": each.cores, "PodGroupKey": each.group}
                for uid, each in users.items()
            },
            "Memory": known.memory,
            "Number": known.split,
            "Type": known.type,
            "Health": known.healthy,
            "UsedNum": int(self.sharers[row, card]),
            "UsedMem": int(self.memory[row, card]),
            "UsedCore": int(self.cores[row, card]),
            "MigTemplate": [slices.encoded_way(way) for way in ways] or None,
            "MigUsage": {"Index": cut.way, "UsageList": slices.encoded_use(cut, ways)},
        }

    def trial(self, row: int) -> Vgpu:
        """Return a copy that has only that node, as row 0, for changes on trial."""
        twin, at = self._alone(row), slice(row, row + 1)
        # Cached scores are valid for a number of changes, and this count begins anew.
        twin._changes, twin._scores, twin._noted, twin.reserved = [0], {}, {}, self.reserved.alone(row)
        twin.cards, twin._present, twin._sliced = self.cards.alone(row), self._present[at], self._sliced[at]
        twin._cuts = {(0, card): cut.copy() for (where, card), cut in self._cuts.items() if where == row}
        return twin
