# SPDX-License-Identifier: Apache-2.0
"""Virtual NPUs by HAMi: one family for each model of chips. Source: Volcano `ascend/hami/device_info.go`."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from pumice.core.devices.columns import CardUsers
from pumice.core.devices.family import (
    ALL,
    DeviceError,
    Family,
    Notes,
    Refusal,
    Rows,
    is_all,
    numbers_of,
    short_of,
)
from pumice.core.devices.vgpu.asking import WHOLE, AskedByTemplate, CardRequest
from pumice.core.devices.vgpu.codec import Assigned, allocating, encoded, fields_in, part_of, phrase
from pumice.core.devices.vgpu.settings import VgpuSettings
from pumice.core.objects.metadata import Object
from pumice.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pumice.core.devices.ascend.chips import Chip, Chips
    from pumice.core.devices.ascend.settings import ChipModel
    from pumice.core.devices.columns import IntArray
    from pumice.core.devices.family import Around, BoolArray, FloatArray
    from pumice.core.objects.pod import Task

# --- The choice of chips
# Source: Volcano `ascend/hami/device_info.go` (selectDevices). Among equals Volcano takes any; here it is the one
# that was registered first.

BINPACK, SPREAD = "binpack", "spread"
FULL: Final = 100
WIRED_MODELS: Final = "Ascend910"
NETWORK_WEIGHT: Final = 10.0
PARTIAL: Final = "vNPU does not support partial memory allocation when requesting multiple devices"
NONE: Final = "no ascend device available"
SCARCE: Final = "no enough ascend device available"


class ChipUsage(NamedTuple):
    """The use of a chip: sharers, MiB, cores."""

    sharers: int
    memory: int
    cores: int


def liking(policy: str, chip: Chip, usage: ChipUsage, *, likes_unused: bool) -> float:
    """Return the policy's score of a chip (CalScore). Spread prefers chips with one sharer in v1.15.1, and unused chips
    with `likes_unused` (a fix).
    """
    if policy == BINPACK:
        return FULL * (usage.memory / chip.memory) if chip.memory else 0.0
    if policy != SPREAD or (likes_unused and not chip.memory):
        return 0.0
    return float(FULL) if usage.sharers == (0 if likes_unused else 1) else 0.0


def takes(chip: Chip, usage: ChipUsage, memory: int) -> bool:
    """Return whether a chip has room (fit): cores cannot be asked for, but none are left where all are in use."""
    roomy = chip.sharers > usage.sharers and chip.memory - usage.memory >= memory and chip.cores >= usage.cores
    return roomy and (chip.cores == 0 or usage.cores != chip.cores)


def chip_against(chip: Chip, usage: ChipUsage, memory: int) -> list[str]:
    """Return what speaks against a chip, for people."""
    found = [f"{usage.sharers} share it, as many as may"] if chip.sharers <= usage.sharers else []
    found += short_of("MiB", chip.memory - usage.memory, chip.memory, memory)
    return found if found or takes(chip, usage, memory) else ["none of its cores are left"]


def memory_asked(asked: CardRequest, model: ChipModel, whole: int) -> int:
    """Return the MiB that a container takes of each chip; `whole`: the MiB of the chip that is looked at first."""
    memory = asked.memory or (whole * asked.percent // FULL if asked.percent else 0)
    return model.trimmed(memory).memory if memory > 0 else memory


def allowed(asked: CardRequest, model: ChipModel, memory: int) -> bool:
    """Return whether so much may be had of as many chips: several are had whole only (verifyReq)."""
    return asked.cards <= 1 or model.trimmed(memory).memory == model.allocatable


def choose(
    wanted: Sequence[CardRequest],
    model: ChipModel,
    chips: Sequence[Chip],
    usage: Sequence[ChipUsage],
    policy: str,
    *,
    likes_unused: bool = False,
) -> list[list[tuple[int, Assigned]]] | str:
    """Return (chip, its part) by container, or why the pod does not fit. A chip serves one container of a pod."""
    if not chips:
        return NONE
    liked = [liking(policy, chip, used, likes_unused=likes_unused) for chip, used in zip(chips, usage, strict=True)]
    order = sorted(range(len(chips)), key=lambda chip: -liked[chip])
    together = model.word.startswith(WIRED_MODELS) and all(chip.wired for chip in chips)
    taken: set[int] = set()
    given: list[list[tuple[int, Assigned]]] = []
    for asked in wanted:
        # A percentage is of the chip that the policy prefers, even if another is taken: ResourceReqs runs on the first
        # chip.
        memory = memory_asked(asked, model, chips[order[0]].memory)
        if not allowed(asked, model, memory):
            return PARTIAL
        fitting = [each for each in order if each not in taken and takes(chips[each], usage[each], memory)]
        if len(fitting) < asked.cards:
            return SCARCE
        # selectDevices counts down after it took a chip, so a container that requests 0 chips still gets one.
        found = _wired(asked.cards, chips, fitting) if together else fitting[: max(asked.cards, 1)]
        taken.update(found)
        given.append([(chip, Assigned(chips[chip].uuid, model.word, memory, 0)) for chip in found])
    return given


def _wired(count: int, chips: Sequence[Chip], fitting: Sequence[int]) -> list[int]:
    """Return `count` chips, from the largest group of chips that are wired together."""
    groups: dict[int, list[int]] = {}
    for each in fitting:
        network = chips[each].network
        if network is not None:
            groups.setdefault(network, []).append(each)
    ordered = [chip for group in sorted(groups.values(), key=len, reverse=True) for chip in group]
    # Volcano compares the length after each append, so a request of 0 is never met and gets all wired chips.
    return ordered[:count] if count > 0 else ordered


def score(
    given: Sequence[Sequence[tuple[int, Assigned]]],
    model: ChipModel,
    chips: Sequence[Chip],
    usage: Sequence[ChipUsage],
    policy: str,
    *,
    likes_unused: bool = False,
) -> float:
    """Return how well a node would be used (ScoreNode): by the first chip of each container, as it is before."""
    firsts = [devices[0][0] for devices in given if devices]
    liked = (liking(policy, chips[chip], usage[chip], likes_unused=likes_unused) for chip in firsts)
    total = sum(liked, 0.0)
    if not (model.word.startswith(WIRED_MODELS) and all(chips[chip].wired for chip in firsts)):
        return total
    networks = [chips[chip].network for chip in firsts if chips[chip].network is not None]
    # A network that is not a number counts as wired, but belongs to no group: Volcano then returns 0, without the
    # policy.
    if not networks:
        return 0.0
    return total + max(map(networks.count, networks)) / len(networks) * NETWORK_WEIGHT


REFUSAL: Final = Refusal("no ascend device available", is_error=True)
NODE: Final = "hami.io/vgpu-node"
TIME: Final = "hami.io/vgpu-time"
BIND_TIME: Final = "hami.io/bind-time"
BIND_PHASE: Final = "hami.io/bind-phase"
PREDICATE_TIME: Final = "predicate-time"
LOCK: Final = "hami.io/mutex.lock"
_FIELDS: Final = 4


GIVEN: Final = re.compile(r"hami\.io/.*-devices-allocated")
"""The annotation of what a pod was given, of any model."""


def of_model(word: str) -> tuple[str, str, str]:
    """Return the annotations of a pod's chips of a model: to allocate, allocated, and how the runtime cuts them."""
    return f"hami.io/{word}-devices-to-allocate", f"hami.io/{word}-devices-allocated", f"huawei.com/{word}"


def held(text: str) -> tuple[Assigned, ...]:
    """Return what a pod holds by its annotation. The first chip of every later container gets a name that no chip has,
    as in Volcano, which does not tell containers apart here.
    """
    listed = [*fields_in(text)]
    # Fewer than four fields make the whole annotation unreadable (DecodeContainerDevices): nothing of it is counted.
    return tuple(map(part_of, listed)) if all(len(fields) >= _FIELDS for fields in listed) else ()


class HamiNpu(AskedByTemplate, CardUsers[Assigned], Family):
    """Virtual NPUs of HAMi. `models`: all models; a released pod loses its annotations of any of them.

    Two fixes: with `likes_unused` the policy spread prefers unused chips; with `keeps_lock` the node is
    locked under the name that HAMi's device plugin takes away once the pod has its chips.

    The policy counts for assignments on nodes that were
    scored in this session. A pod that loses its node in the same session keeps its chips, for Volcano reads which they
    were off a copy of the pod that was never updated.
    """

    def __init__(
        self,
        names: Sequence[str],
        chips: Chips,
        model: ChipModel,
        models: Iterable[ChipModel],
        policy: str,
        *,
        likes_unused: bool = False,
        keeps_lock: bool = False,
    ) -> None:
        super().__init__(names, chips.memory.shape)
        self.name, self._present = model.word, chips.present
        self.chips, self._model, self._policy = chips, model, policy
        self._likes_unused, self._keeps_lock = likes_unused, keeps_lock
        self._settings = VgpuSettings(number=model.number, memory=model.memory, cores="")
        self._written = [name for each in models for name in of_model(each.word)]
        self._asked: dict[int, tuple[CardRequest, ...] | None] = {}
        self._was_scored = np.zeros(len(names), dtype=np.bool_)

    always_named = False
    vocabulary = Vocabulary(
        holds_names=(NODE,),
        domains=MappingProxyType(
            {
                "hami.io": "node-register-.+|bind-(phase|time)|vgpu-(time|node)|.+-devices-(to-allocate|allocated)",
                "huawei.com": "",
            }
        ),
        words="ascend huawei.com",
    )

    @staticmethod
    def given(notes: Mapping[str, str]) -> Iterator[str]:
        """Yield a phrase for each chip that a pod was given by its annotations."""
        for name, text in sorted(notes.items()):
            if GIVEN.fullmatch(name):
                for part in text.split(";"):
                    yield from map(phrase, held(part))

    @property
    def present(self) -> BoolArray:
        """Return the nodes that have such devices [N]."""
        return self._present

    def _usage(self, row: int) -> list[ChipUsage]:
        count = len(self.chips.chips[row])
        sharers, memory, cores = (column[row, :count].tolist() for column in (self.sharers, self.memory, self.cores))
        return [ChipUsage(*each) for each in zip(sharers, memory, cores, strict=True)]

    def _chosen(self, task: Task, row: int, policy: str) -> list[list[tuple[int, Assigned]]] | str:
        # Volcano selects anew for filter, score and assignment (selectDevices): the use may have changed in between.
        wanted = self._asks(task.template) or ()
        chips, usage = self.chips.chips[row], self._usage(row)
        return choose(wanted, self._model, chips, usage, policy, likes_unused=self._likes_unused)

    # --- what fits

    def fitting(self, task: Task, rows: Rows = ALL) -> BoolArray:
        """Return the nodes, among rows that have any, that have what the task requests [len(rows)] (FilterNode). Where
        one container requests chips, all nodes are looked at together.
        """
        if not is_all(rows):
            each = numbers_of(rows, len(self.present))
            answers = [self._chosen(task, row, self._policy) for row in each]
            return np.array([not isinstance(answer, str) for answer in answers], dtype=np.bool_)
        wanted = self._asks(task.template) or ()
        fits: BoolArray = self.present.copy()
        # Only one container can be answered by counting usable chips; of several, none may take what an earlier one
        # got.
        if len(wanted) == 1:
            fits &= self._fitting(wanted[0])
        else:
            there = fits.nonzero()[0]
            fits[there] = self.fitting(task, there)
        return fits

    def _fitting(self, asked: CardRequest) -> BoolArray:
        memory, allowed = self._memory_asked(asked)
        chips = self.chips
        # The rule of `takes`, for the chips of all nodes in one call.
        usable = (chips.count > self.sharers) & (chips.memory - self.memory >= memory[:, None])
        usable &= (chips.cores >= self.cores) & ((chips.cores == 0) | (self.cores != chips.cores)) & chips.there
        found: BoolArray = allowed & (np.count_nonzero(usable, axis=1) >= asked.cards)
        return found

    def _memory_asked(self, asked: CardRequest) -> tuple[IntArray, BoolArray]:
        """Return each node's MiB per chip, and whether enough chips have so much."""
        rows = np.arange(len(self._names))
        first = self._first()
        memory = np.full(len(rows), asked.memory)
        if not asked.memory and asked.percent and self.chips.memory.size:
            memory = self.chips.memory[rows, first] * asked.percent // WHOLE
        # Nodes have few distinct sizes, and each is trimmed once.
        sizes, at = np.unique(memory, return_inverse=True)
        trimmed = [self._model.trimmed(size).memory if size > 0 else size for size in sizes.tolist()]
        whole = [asked.cards <= 1 or self._model.trimmed(size).memory == self._model.allocatable for size in trimmed]
        return np.array(trimmed, dtype=np.int64)[at], np.array(whole, dtype=np.bool_)[at]

    def _first(self) -> IntArray:
        """Return each node's chip that the policy prefers."""
        liked = np.zeros(self.memory.shape)
        if self._policy == "binpack":
            np.divide(self.memory, self.chips.memory, out=liked, where=self.chips.memory != 0)
        elif self._policy == "spread":
            unused = (self.sharers == 0) & (self.chips.memory != 0)
            liked[unused if self._likes_unused else self.sharers == 1] = 1.0
        # A place without a chip must not come first where all chips score 0.
        liked[~self.chips.there] = -np.inf
        return liked.argmax(axis=1) if liked.size else np.zeros(len(liked), dtype=np.int64)

    def refusal(self, task: Task, row: int) -> Refusal:
        """Return the message about a node where the pod does not fit."""
        return REFUSAL

    def against(self, task: Task, row: int) -> dict[str, list[str]]:
        """Return chip -> its own obstacle for the container that requests the most of a chip."""
        chips, usage = self.chips.chips[row], self._usage(row)
        asked = max(self.asked_of(task.template), key=lambda each: each.memory_of(WHOLE), default=None)
        if asked is None or not chips:
            return {}
        memory = memory_asked(asked, self._model, chips[0].memory)
        partial = [] if allowed(asked, self._model, memory) else ["several chips are had whole only"]
        against = {chip.uuid: chip_against(chip, used, memory) for chip, used in zip(chips, usage, strict=True)}
        return self.chips.left_out(row) | {uuid: partial + reasons for uuid, reasons in against.items()}

    def _score(self, task: Task, row: int) -> float:
        given = self._chosen(task, row, self._policy)
        if isinstance(given, str):
            return 0.0
        self._was_scored[row] = True
        chips, usage = self.chips.chips[row], self._usage(row)
        return score(given, self._model, chips, usage, self._policy, likes_unused=self._likes_unused)

    def scores(self, task: Task, rows: Rows = ALL) -> FloatArray:
        """Return how well the pod fits on each node, 0 on a node without such chips, float64 [len(rows)] (ScoreNode).
        When all nodes are scored, equal nodes with equal use of their chips are scored once.
        """
        if not is_all(rows):
            return np.array([self._score(task, row) for row in numbers_of(rows, len(self.present))])
        fits = self.fitting(task)
        there: list[int] = fits.nonzero()[0].tolist()
        scores = self._scores_of(there, self.chips.alike, lambda row: self._score(task, row))
        # ScoreNode notes the policy in the device, and Volcano scores only nodes that passed the filter.
        self._was_scored |= fits
        return scores

    # --- who has what

    def _held(self, row: int, notes: Mapping[str, str]) -> list[tuple[int, Assigned]]:
        # An unreadable annotation and one of chips that the node no longer reports hold nothing here (addResource).
        at = {chip.uuid: index for index, chip in enumerate(self.chips.chips[row])}
        devices = held(notes.get(of_model(self.name)[1], "")) if at else ()
        return [(at[device.uuid], device) for device in devices if device.uuid in at]

    def add(self, row: int, task: Task, notes: Mapping[str, str]) -> None:
        """Count what the notes say that the pod has (AddResource). A pod counts once a chip."""
        for chip, device in self._held(row, notes):
            users = self._users.setdefault((row, chip), {})
            if task.uid not in users:
                users[task.uid] = device
                self._shift(row, chip, device.memory, device.cores, 1)

    def remove(self, row: int, task: Task, notes: Mapping[str, str]) -> None:
        """Take back what `add` counted (SubResource)."""
        for chip, device in self._held(row, notes):
            users = self._users.get((row, chip), {})
            if users.pop(task.uid, None) is not None:
                self._shift(row, chip, device.memory, device.cores, -1)

    def assign(self, row: int, task: Task, notes: Notes, now: float) -> Notes:
        """Choose devices, count them, and return the annotations of the pod (Allocate)."""
        # Before the choice, as in Volcano: a locked node reports the lock, even if it lacks chips as well.
        self._lock(row, task)
        given = self._chosen(task, row, self._policy if self._was_scored[row] else "")
        if isinstance(given, str):
            raise DeviceError(f"failed to select ascend devices for pod {task.name}: {given}")
        devices = [[device for _, device in each] for each in given]
        # HAMi's annotation ends with a semicolon, that of vgpu does not.
        text = f"{encoded(devices)};" if devices else ""
        to_allocate, allocated, runtime = of_model(self.name)
        said = {to_allocate: text, allocated: text, PREDICATE_TIME: str(int(now)), runtime: self._cuts(devices)}
        self.add(row, task, said)
        # An assignment that failed above keeps the lock until it expires, as Volcano's early returns do.
        if self.locks is not None and not self._keeps_lock:
            self.locks.drop(row, self.name)
        return {**said, **allocating("hami.io", self._names[row], now)}

    def _lock(self, row: int, task: Task) -> None:
        where = f"node {self._names[row]} locked for {task.name}"
        if self._keeps_lock:
            self.take_lock(row, task, LOCK, f"{where}. err:")
        else:
            self.take_lock(row, task, self.name, f"{where} hami vnpu. lockname")

    def _cuts(self, devices: Sequence[Sequence[Assigned]]) -> str:
        cuts: list[dict[str, str]] = []
        for device in (device for each in devices for device in each):
            named = {"UUID": device.uuid, "temp": self._model.trimmed(device.memory).name}
            cuts.append({key: value for key, value in named.items() if value})
        # A nil slice of Go encodes to null, not to [].
        return msgspec.json.encode(cuts or None).decode()

    def release(self, row: int, task: Task, notes: Notes) -> tuple[str, ...]:
        """Give back what the pod was assigned: the annotations that go (Release). One that has been given its chips by
        the node keeps its own.
        """
        # The chips are given back even when the annotations stay: Volcano looks at the phase afterwards (Release).
        self.remove(row, task, notes)
        written = (NODE, TIME, BIND_PHASE, BIND_TIME, PREDICATE_TIME, *self._written)
        given = notes.get(BIND_PHASE) == "success"
        return written if not given and any(name in notes for name in written) else ()

    def encoded(self, row: int, around: Around) -> Object | None:
        """Return the devices of a node as Volcano's struct encodes to JSON; None where the node has no such devices."""
        if not self.present[row]:
            return None
        policy = self._policy if self._was_scored[row] else ""
        devices = {chip.uuid: self._chip(row, at) for at, chip in enumerate(self.chips.chips[row])}
        return {"NodeName": self._names[row], "Type": self.name, "Devices": devices, "Policy": policy}

    def _chip(self, row: int, chip: int) -> Object:
        in_use = {"Used": self.sharers, "Usedmem": self.memory, "Usedcores": self.cores}
        return {
            "DeviceInfo": msgspec.json.decode(self.chips.chips[row][chip].told),
            "DeviceUsage": {name: int(column[row, chip]) for name, column in in_use.items()},
            "Score": 0,
            "PodMap": {
                uid: {"Used": 1, "Usedmem": each.memory, "Usedcores": each.cores}
                for uid, each in self._users_of(row, chip).items()
            },
        }

    def trial(self, row: int) -> HamiNpu:
        """Return a copy that has only that node, as row 0, for changes on trial. No policy counts in it."""
        # SimulatePredicate calls FilterNode with the policy "" (`plugins/predicates/predicates.go`).
        twin = self._alone(row)
        twin.chips, twin._present, twin._policy = self.chips.alone(row), self._present[row : row + 1], ""
        return twin
