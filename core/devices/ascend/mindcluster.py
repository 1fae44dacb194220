# SPDX-License-Identifier: Apache-2.0
"""Virtual NPUs by MindCluster (Ascend 310P). Source: Volcano `ascend310p/vnpu`.

Assigning takes nothing off a chip within a session: what a pod has counts once the next session reads its annotation
(the fix npu-chips-once counts it immediately).
"""

from __future__ import annotations

from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pumice.core.devices.ascend.cuts import (
    ASCEND_310P,
    HIGH,
    LOW,
    NOTHING,
    NULL,
    OFF,
    ON,
    TEMPLATES,
    Part,
    lesser,
    name_of,
    template_for,
)
from pumice.core.devices.ascend.npu_node import BASE, CHIP_TYPE, CORE, DEFAULT, NpuFrame, NpuNode, npu_body
from pumice.core.devices.ascend.reports import kept_chips, renamed
from pumice.core.devices.family import (
    ALL,
    DeviceError,
    Family,
    Notes,
    Refusal,
    Rows,
    amount,
    containers,
    limits_of,
    numbers_of,
    requests_of,
)
from pumice.core.devices.numa.go_sort import in_go_order
from pumice.core.objects.metadata import Object
from pumice.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from pumice.core.devices.ascend.cuts import VirtualChip
    from pumice.core.devices.family import Around, BoolArray, FloatArray
    from pumice.core.objects.pod import Task

# --- Assignments of pods


class VirtualChipUse:
    """Adds a pod's use of a chip, or removes it."""

    def __init__(self, *, taken: bool) -> None:
        self._taken = taken

    def of(self, node: NpuNode, numbers: Sequence[str], part: Part, *, cuts: bool) -> None:
        """Add or remove a use of so much of each of the chips."""
        for number, chip in node.chips.items():
            # Compared as text, like Volcano: "01" matches no chip, and a chip that is listed twice counts twice.
            for _ in (each for each in numbers if each == str(number)):
                self._one(chip, part, cuts=cuts)

    def _one(self, chip: VirtualChip, part: Part, *, cuts: bool) -> None:
        if self._taken:
            chip.take(part)
            chip.cut |= cuts
            chip.use_dvpp(part.dvpp)
        else:
            chip.give(part)
            chip.leave_dvpp(part.dvpp)

    def note(self, node: NpuNode, template: str, uid: str) -> None:
        """Note that the pod uses the template, or drop the note when its part is taken back."""
        # Volcano's ConCache. While it has an entry, only pods of that same template may join the node.
        if self._taken:
            node.in_use.setdefault(template, set()).add(uid)
            return
        uids = node.in_use.get(template, set())
        uids.discard(uid)
        if template in node.in_use and not uids:
            del node.in_use[template]


PREDICATE_TIME: Final = "predicate-time"
KIND_OF_JOB: Final = "ring-controller.atlas"
OF_310P: Final = "ascend-310P"
LEVEL: Final = "vnpu-level"
DVPP: Final = "vnpu-dvpp"
SEPARATE: Final = "PreSeparate"
MILLI: Final = 1000
UNLIMITED: Final = 2.0**52  # comes behind all that is idle
NODE_FAILS: Final = Refusal("preCheckNodePredicate failure", is_error=True)
CHIPS_FAIL: Final = Refusal("", is_error=True)


class Asked(NamedTuple):
    """The request of a pod: AI cores, and by its labels the level of AI CPUs and of image processing."""

    cores: int
    level: str
    dvpp: str | None  # None: a value that is not understood


class MindClusterNpu(Family):
    """Virtual NPUs of MindCluster. `nodes`: as the session found them; `idle`: AI cores that are idle now, in
    thousandths [N]; `counted`: the nodes where they count, bool [N]; `frame`: the configuration's part of the encoded
    form; `once`: an assigned part counts immediately; without it Volcano gives the part to all pods that are placed
    before it learns of the first.
    """

    name = "NPUDevices"
    uniform = False
    vocabulary = Vocabulary(
        models=MappingProxyType(
            {
                "accelerator": r"[a-z]*-?Ascend\w+",
                "servertype": r"Ascend\w+-\d+",
                CHIP_TYPE: r"(Ascend)?\d+[A-Z]*\d*",
                KIND_OF_JOB: r"ascend-\w+",
                LEVEL: "low|high",
                DVPP: "yes|no|null",
            }
        ),
        words="huawei.com npu-core",
        kept=MappingProxyType({BASE: kept_chips}),
        renamed=renamed,
    )

    @staticmethod
    def given(notes: Mapping[str, str]) -> Iterator[str]:
        """Yield a phrase for each chip that a pod was given by its annotations."""
        if notes.get(CORE):
            chips, _, template = notes[CORE].partition("-")
            yield from (f"chip {chip}" + (f" ({template})" if template else "") for chip in chips.split(","))

    def __init__(
        self,
        names: Sequence[str],
        nodes: Sequence[NpuNode],
        idle: FloatArray,
        counted: BoolArray,
        frame: NpuFrame = DEFAULT,
        *,
        once: bool = False,
    ) -> None:
        self._frame, self._once = frame, once
        self._names, self.nodes, self._idle, self._counted = names, nodes, idle, counted
        self._present = np.ones(len(names), dtype=np.bool_)
        self._asked: dict[int, int | None] = {}

    @property
    def present(self) -> BoolArray:
        """Return every node: each is asked."""
        return self._present

    def concerns(self, task: Task) -> bool:
        """Return whether the pod asks for such devices (HasDeviceRequest)."""
        return task.labels.get(KIND_OF_JOB) == OF_310P and self._cores(task) is not None

    def _cores(self, task: Task) -> int | None:
        """Return the AI cores of the first container that requests some; None when no container has a limit of them."""
        template = task.template
        if template.number not in self._asked:
            # Limits decide whether a pod asks for cores (checkVNPUResourcesInPod), requests how many
            # (getAiCoreNumFromPod).
            limited = any(CORE in limits_of(each) for each in containers(template))
            asked = [amount(requests_of(each), CORE) for each in containers(template)]
            self._asked[template.number] = next((each for each in asked if each), 0) if limited else None
        return self._asked[template.number]

    def kind(self, task: Task) -> Hashable:
        """Return the labels of the request."""
        return tuple(task.labels.get(name) for name in (KIND_OF_JOB, LEVEL, DVPP))

    def _asks(self, task: Task) -> Asked:
        level, dvpp = task.labels.get(LEVEL, LOW), task.labels.get(DVPP, NULL)
        known = dvpp if dvpp in (OFF, NULL, ON) else None
        return Asked(self._cores(task) or 0, level if level == HIGH else LOW, known)

    def _part(self, task: Task, node: NpuNode) -> Part | None:
        """Return the part of a chip, or the number of chips, that the pod requests on a node; None where its labels are
        not understood.
        """
        asked = self._asks(task)
        # No error: the pod asks for nothing on a node without AI cores, and the unusable chips refuse it later.
        if not node.total.cores:
            return NOTHING
        if node.is_whole(asked.cores):
            return Part(asked.cores, asked.cores * node.total.cpus // node.total.cores, NULL)
        return None if asked.dvpp is None else template_for(asked.cores, asked.level, asked.dvpp)

    # --- what fits

    def fitting(self, task: Task, rows: Rows = ALL) -> BoolArray:
        """Return the nodes, among rows that have any, that have what the task requests [len(rows)] (FilterNode). A node
        without room passes, too, while its chips are unused.
        """
        each = numbers_of(rows, len(self._names))
        fits = [self._passes(task, row) and self._chips_pass(task, self.nodes[row]) for row in each]
        return np.array(fits, dtype=np.bool_)

    def _passes(self, task: Task, row: int) -> bool:
        """Return whether the node itself passes, chips apart."""
        there = self._counted[row] and self.nodes[row].status != SEPARATE
        # Volcano cuts the idle cores off to whole ones before it compares (checkNodeNum).
        return bool(there) and int(float(self._idle[row]) / MILLI) >= self._asks(task).cores

    def _chips_pass(self, task: Task, node: NpuNode) -> bool:
        part = self._part(task, node)
        if part is None or not node.usable:
            return False
        # Too little room refuses no pod by itself: CheckNodeNPUByDyPod only asks whether fewer CPUs would do.
        if self._is_lowered(node, part):
            # By name alone, as Volcano's DowngradeCache: pods of one name in two namespaces share the mark.
            node.lowered.add(task.name)
            part = lesser(part) or part
        if not node.in_use:
            return True
        # Whole chips have no template, so a pod that requests them joins only a node whose chips are unused.
        template = name_of(part)
        return template is not None and list(node.in_use) == [template]

    def _is_lowered(self, node: NpuNode, part: Part) -> bool:
        return lesser(part) is not None and not self._has(node, part)

    def _has(self, node: NpuNode, part: Part) -> bool:
        free = [chip.free for chip in node.chips.values()]
        if not Part(sum(each.cores for each in free), sum(each.cpus for each in free)).covers(part):
            return False
        if node.is_whole(part.cores):
            whole = sum(not chip.cut and chip.free.cores != 0 for chip in node.chips.values())
            return part.cores // node.cores_each <= whole
        return any(chip.has(part) and not chip.unstable for chip in node.chips.values())

    def refusal(self, task: Task, row: int) -> Refusal:
        """Return the message about a node where the pod does not fit."""
        return CHIPS_FAIL if self._passes(task, row) else NODE_FAILS

    def against(self, task: Task, row: int) -> dict[str, list[str]]:
        """Return card -> its own obstacle, for people; empty where it fits."""
        node = self.nodes[row]
        part = self._part(task, node) or NOTHING
        return {f"chip {number}": chip.against(part) for number, chip in sorted(node.chips.items())}

    def scores(self, task: Task, rows: Rows = ALL) -> FloatArray:
        """Return zeros: `rank` scores nodes together."""
        return np.zeros(len(self._present[rows]))

    def rank(self, task: Task, rows: Rows = ALL) -> FloatArray:
        """Return the rank for `shares`: idle AI cores in milli-units, doubled, plus one where the pod would get fewer
        CPUs.
        """
        lowered = [self._gets_fewer(task, row) for row in numbers_of(rows, len(self._names))]
        # Nodes that do not count AI cores come last in Volcano's order (`310p/vnpu/node.go`, Less).
        idle: FloatArray = np.where(self._counted[rows], 2.0 * self._idle[rows], UNLIMITED)
        return idle + np.array(lowered, dtype=np.float64)

    def _gets_fewer(self, task: Task, row: int) -> bool:
        if not (self.concerns(task) and self._passes(task, row)):
            return False
        node = self.nodes[row]
        part = self._part(task, node)
        return task.name in node.lowered or (part is not None and node.usable and self._is_lowered(node, part))

    # --- who has what

    def add(self, row: int, task: Task, notes: Mapping[str, str]) -> None:
        """Count what the notes say that the pod has (AddResource)."""
        self._count(row, task, notes, VirtualChipUse(taken=True))

    def remove(self, row: int, task: Task, notes: Mapping[str, str]) -> None:
        """Take back what `add` counted (SubResource). A chip that was cut stays so."""
        self._count(row, task, notes, VirtualChipUse(taken=False))

    def _count(self, row: int, task: Task, notes: Mapping[str, str], use: VirtualChipUse) -> None:
        text, node = notes.get(CORE), self.nodes[row]
        if text is None or not self.concerns(task):
            return
        words = text.split("-")
        if len(words) == 2:
            # An unknown label counts nothing: AddResource logs the error of GetPodResource and goes on.
            part = self._had(words[1]) or self._part(task, node) or NOTHING
            use.of(node, [words[0]], part, cuts=not node.is_whole(part.cores))
        elif node.count:
            use.of(node, words[0].split(","), node.each, cuts=False)
        use.note(node, words[1] if len(words) == 2 else "", task.uid)

    def _had(self, template: str) -> Part | None:
        """Return the part that a pod holds by its annotation, which may be less than its request; None without the fix,
        since Volcano counts the request.
        """
        return TEMPLATES[ASCEND_310P].get(template) if self._once else None

    def resident(self, row: int, task: Task, notes: Mapping[str, str], *, leaves: bool) -> None:
        """Count a pod that is on the node as the session opens: its part is counted already, but not what that keeps
        from others.
        """
        text = notes.get(CORE)
        if text is not None and not leaves and self.concerns(task):
            words = text.split("-")
            self.nodes[row].in_use.setdefault(words[1] if len(words) == 2 else "", set()).add(task.uid)

    def assign(self, row: int, task: Task, notes: Notes, now: float) -> Notes:
        """Choose devices, count them, and return the annotations of the pod (Allocate)."""
        node = self.nodes[row]
        part = self._part(task, node)
        if part is None:
            raise DeviceError(f"err dvpp value:{task.labels.get(DVPP)}")
        if self._gets_fewer(task, row):
            part = _with_fewer(part)
        name = self._select(node, part)
        if not node.is_whole(part.cores):
            template = name_of(part)
            if template is None:
                # Volcano notes the time in its own copy, patches nothing, and binds the pod without a chip
                # (SetNPUTopologyToPodFn).
                notes[PREDICATE_TIME] = str(int(now * 1e9))
                return {}
            name = f"{name}-{template}"
        # Nanoseconds here, seconds in HAMi's annotation of the same name.
        said = {PREDICATE_TIME: str(int(now * 1e9)), CORE: name}
        if self._once:
            self.add(row, task, said)
        notes.update(said)
        return said

    def _select(self, node: NpuNode, part: Part) -> str:
        """Return the numbers of the chips that a pod gets (SelectChipFromNode)."""
        chips = _in_order([node.chips[number] for number in sorted(node.chips)])
        if not chips:
            raise DeviceError("selectChipFromNode sorted chips len 0")
        if node.is_whole(part.cores):
            return _whole(chips, part, node.cores_each)
        # Sorted again: by a comparison that is not an order, a second sort may change the outcome.
        for chip in _in_order(chips):
            if chip.has(part) and not chip.unstable:
                return str(chip.number)
        raise DeviceError(f"selectChipFromNodeSegment available chip not found for req <{part.cores}>")

    def release(self, row: int, task: Task, notes: Notes) -> tuple[str, ...]:
        """Give back what the pod was assigned: the annotations that go (Release)."""
        self.remove(row, task, notes)
        return PREDICATE_TIME, CORE

    def encoded(self, row: int, around: Around) -> Object | None:
        """Return the devices of a node as Volcano's struct encodes to JSON; None where the node has no such devices."""
        return npu_body(self._names[row], self.nodes[row], around.whole, around.idle(row), self._frame)

    def trial(self, row: int) -> MindClusterNpu:
        """Return a copy that has only that node, as row 0, for changes on trial. Its idle amounts stay as they were
        when the trial began.
        """
        twin, at = copy(self), slice(row, row + 1)
        twin._names, twin._present, twin._idle = self._names[at], self._present[at], self._idle[at].copy()
        twin.nodes, twin._counted = [self.nodes[row].copy()], self._counted[at]
        return twin


def _with_fewer(part: Part) -> Part:
    """Return the CPUs of a pod that gets fewer."""
    # downgradeTaskAICPU does not look at image processing; the filter did before it set the mark.
    return part._replace(cpus={2: 1, 4: 3}.get(part.cores, part.cpus))


def _in_order(chips: Sequence[VirtualChip]) -> list[VirtualChip]:
    """Return the chips as Go sorts them by a comparison that is not an order: a chip comes before one that it does not
    cover.
    """
    order = in_go_order(list(range(len(chips))), lambda one, two: not chips[one].free.covers(chips[two].free))
    return [chips[index] for index in order]


def _whole(chips: Sequence[VirtualChip], part: Part, cores_each: int) -> str:
    count = part.cores // cores_each
    if count == 0:
        raise DeviceError("task require card number 0")
    each = Part(part.cores // count, part.cpus // count, NULL)
    # Unlike for a part, an unstable chip will do (selectChipFromNodeWhole).
    free = [str(chip.number) for chip in chips if chip.has(each) and not chip.cut]
    if len(free) < count:
        raise DeviceError(f"selectChipFromNodeWhole free whole chip <{len(free)}> not enough for req <{count}>")
    return ",".join(free[:count])


def shares(rank: FloatArray, high: float) -> FloatArray:
    """Return the scores of candidates by their `rank`: the one with the fewest idle cores gets `high`; where pods would
    get fewer CPUs, all before the first node that gives the full number get it, and that node twice as much
    (ScoreBatchNodes).
    """
    scores = np.zeros(len(rank))
    if not len(rank):
        return scores
    # The inverse of `rank`, which is odd where the pod would get fewer CPUs.
    idle, lowered = np.floor(rank / 2.0), rank % 2.0 == 1.0
    # Volcano's sort is not stable; here the node that comes first wins among equals.
    order = np.argsort(idle, kind="stable")
    if not lowered.any():
        scores[order[0]] = high
        return scores
    ahead = lowered[order].cumprod().astype(np.bool_)
    scores[order[ahead]] = high
    if not ahead.all():
        scores[order[int(ahead.sum())]] = 2.0 * high
    return scores
