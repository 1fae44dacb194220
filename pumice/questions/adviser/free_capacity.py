# SPDX-License-Identifier: Apache-2.0
"""Room on the nodes for waiting pods: the free amounts on suitable nodes, and their pieces."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from pumice.belonging import owner_of
from pumice.core.kube.taints import HARD_EFFECTS, tolerated
from pumice.core.objects.metadata import Object
from pumice.core.plugins import BUILT_IN, OF_DEVICES
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.points.nodes import Volatility
from pumice.core.session.reasons import Code, FitFailure
from pumice.core.session.search.filters import Filters
from pumice.core.state.dimensions import PODS
from pumice.questions.adviser.reasons import WaitCode, WaitNumber, WaitReason, waits_for
from pumice.units import amount, counted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.reasons import IntArray, Reason
    from pumice.core.session.session import Session
    from pumice.core.state.dimensions import FloatArray
    from pumice.core.state.jobs import Job


BoolArray = npt.NDArray[np.bool_]
EVERY_ROW: Final = slice(None)
POD_COUNT: Final = "node(s) pod number exceeded"
IN_PIECES: Final = frozenset(name for name, plugin in BUILT_IN.items() if plugin.within_nodes)
"""Plugins whose refusals are about pieces within a node."""
NODE_RESOURCES: Final = "NodeResourcesFit"
TAINTS: Final = "TaintToleration"
OF_STATE: Final = "node.kubernetes.io/"
"""The prefix of taints that say in which state a node is (not ready, unreachable, cordoned)."""
NAMED: Final = 3
THAT_WOULD_DO: Final = "the nodes that would do"


@dataclass(slots=True)
class FreeCapacity:
    """Verdict of the filters on the nodes for equal pods, without room: `allowed` [N], and `curable` [N] those that are
    refused only because of other pods there. `refusals`: text -> nodes; `in_pieces`: all of the curable are short of
    pieces of devices. `tainted` [N]: those that are refused only for taints that people set.
    """

    allowed: BoolArray
    curable: BoolArray
    refusals: dict[str, int]
    in_pieces: bool
    tainted: BoolArray


@dataclass(frozen=True, slots=True)
class Alike:
    """Pods with equal requests; `asked`: (dimension, amount) of one, without zeroes."""

    task: Task
    count: int
    asked: tuple[tuple[int, float], ...]
    free_capacity: FreeCapacity


class NodeRoom:
    """Room after the last action, and (`opening`, float64 [dimension, node]) as the session opened."""

    def __init__(self, session: Session, opening: FloatArray) -> None:
        self._session, self._opening = session, opening
        self._now = session.nodes.future
        self._capacities: dict[object, FreeCapacity] = {}
        self._devices = session.empty_devices()
        self._single: dict[tuple[object, int], WaitReason] = {}

    def verdict(self, tasks: Sequence[Task]) -> WaitReason:
        """Return the reason why these pods, of one job, do not all have a node."""
        counts: dict[object, list[Task]] = {}
        for task in tasks:
            counts.setdefault(_kind(task), []).append(task)
        groups = [self._alike(kind, some) for kind, some in counts.items()]
        if len(counts) > 1:
            return self._reason_by_amounts(groups)
        key = (next(iter(counts)), len(tasks))
        found = self._single.get(key)
        if found is None:
            found = self._single[key] = self._reason_by_amounts(groups)
        return found

    def _alike(self, kind: object, tasks: list[Task]) -> Alike:
        free_capacity = self._capacities.get(kind)
        if free_capacity is None:
            free_capacity = self._capacities[kind] = self._capacity_of(tasks[0])
        asked = tuple([(dimension, value) for dimension, value in tasks[0].template.items if value > 0])
        return Alike(tasks[0], len(tasks), asked, free_capacity)

    def _capacity_of(self, task: Task) -> FreeCapacity:
        session, count = self._session, self._session.nodes.count
        none = np.zeros(count, dtype=np.bool_)
        try:
            session.points.pre_predicate(task)
            filters = Filters(session, task)
            codes = filters.reject(EVERY_ROW, count)
        except FitFailure as failure:
            return FreeCapacity(none, none, {failure.reason.text: count}, in_pieces=False, tainted=none)
        curable, allowed, in_pieces = none.copy(), codes == 0, True
        refusals = Counter[str]()
        for number, nodes in enumerate(np.bincount(codes).tolist()):
            if not number or not nodes:
                continue
            reasons = [reason for reason in session.reasons.reasons(number) if not _is_room(reason)]
            if not reasons:
                allowed |= codes == number
                continue
            refusals.update({reason.words: nodes for reason in reasons})
            lasting = [reason for reason in reasons if reason.code != Code.UNSCHEDULABLE]
            if all(reason.plugin in OF_DEVICES for reason in lasting):
                curable |= (codes == number) & (self._held_empty(task) if lasting else True)
                in_pieces = in_pieces and all(reason.plugin in IN_PIECES for reason in reasons)
        return FreeCapacity(allowed, curable, dict(refusals), in_pieces, self._tainted(filters, task, codes))

    def _tainted(self, filters: Filters, task: Task, codes: IntArray) -> BoolArray:
        """Return the nodes that are refused only for taints, and not for taints of the node's state [N]. Filters
        are asked one by one: the first that refuses a node would hide the others.
        """
        session = self._session
        found = np.array([_names_taints(session, int(code)) for code in codes.tolist()], dtype=np.bool_)
        for _, checks in filters.by_plugin if found.any() else ():
            for check in checks:
                if check.volatility is not Volatility.MOMENT:
                    answers = check.many(EVERY_ROW).tolist()
                    found &= [not code or _names_taints(session, int(code), beside_room=True) for code in answers]
        for row in np.flatnonzero(found).tolist():
            found[row] = not any(key.startswith(OF_STATE) for key, _ in self._untolerated(task, row))
        return found

    def _untolerated(self, task: Task, row: int) -> list[tuple[str, str]]:
        """Yield key and text of each hard taint of a node that the task does not tolerate."""
        spec = self._session.nodes.specs[row]
        taints = [each for each in spec.taints if each.get("effect") in HARD_EFFECTS]
        left = [each for each in taints if not tolerated(task.template.tolerations, each)]
        return [(str(each.get("key")), _taint_text(each)) for each in left]

    # --- by amounts

    def _reason_by_amounts(self, groups: list[Alike]) -> WaitReason:
        if not self._session.nodes.count:
            return waits_for(WaitCode.LARGER_THAN_CLUSTER, "there are no nodes")
        for each in groups:
            if not (each.free_capacity.allowed | each.free_capacity.curable).any():
                return waits_for(WaitCode.NO_NODE_ALLOWED, _refusals(each.free_capacity))
        strict = [each.free_capacity.allowed for each in groups]
        if self._seats(groups, strict, self._now):
            return waits_for(WaitCode.PODS_APART, "there is room by amounts, but not where its pods or plugins want it")
        wide = [each.free_capacity.allowed | each.free_capacity.curable for each in groups]
        for each, mask in zip(groups, wide, strict=True):
            if self._is_beyond_devices(each, mask):
                told = "no node that would do has devices for a pod of it, were none on them"
                return waits_for(WaitCode.LARGER_THAN_ANY_NODE, f"{told}: {_refusals(each.free_capacity)}")
        if self._seats(groups, wide, self._now):
            refused = next(each.free_capacity for each in groups if each.free_capacity.curable.any())
            return waits_for(WaitCode.FREE_IN_PIECES if refused.in_pieces else WaitCode.PODS_APART, _refusals(refused))
        if self._seats(groups, strict, self._opening):
            sentence = "there was room when the cycle opened; jobs before it took it"
            return waits_for(WaitCode.OTHERS_FIRST, sentence, in_the_way=takers(self._session))
        with_taints = [mask | each.free_capacity.tainted for each, mask in zip(groups, wide, strict=True)]
        if self._seats(groups, with_taints, self._now):
            return self._untolerating(groups)
        return self._shortage(groups, wide)

    def _seats(self, groups: list[Alike], masks: list[BoolArray], room: FloatArray) -> bool:
        """Return whether all pods find room; each kind takes its room from the first nodes on."""
        left = room.copy() if len(groups) > 1 else room
        for each, mask in zip(groups, masks, strict=True):
            fitting = _fitting(each, left) * mask
            if fitting.sum() < each.count:
                return False
            if left is not room:
                before = np.cumsum(fitting) - fitting
                taken = np.clip(each.count - before, 0, fitting)
                for dimension, value in each.asked:
                    left[dimension] -= taken * value
        return True

    def _shortage(self, groups: list[Alike], masks: list[BoolArray]) -> WaitReason:
        allocatable, names = self._session.nodes.allocatable, self._session.dims.names
        for each, mask in zip(groups, masks, strict=True):
            if not (_fitting(each, allocatable) * mask).any():
                return self._too_large(each, mask)
        union = np.logical_or.reduce(masks)
        asked: dict[int, float] = {}
        for each in groups:
            for dimension, value in each.asked:
                asked[dimension] = asked.get(dimension, 0.0) + value * each.count
        free = {dimension: float(np.maximum(self._now[dimension], 0.0)[union].sum()) for dimension in asked}
        whole = {dimension: float(allocatable[dimension][union].sum()) for dimension in asked}
        for code, there in ((WaitCode.LARGER_THAN_CLUSTER, whole), (WaitCode.IN_USE, free)):
            short = [dimension for dimension in asked if asked[dimension] - there[dimension] >= MIN_RESOURCE]
            numbers = [WaitNumber.of(names[one], asked[one], free[one], whole[one], THAT_WOULD_DO) for one in short]
            if numbers:
                told = "; ".join(map(_free_of_whole, numbers))
                sentence = f"{told}, on {counted(int(union.sum()), 'node')} that would do"
                holding = holders(self._session, [each.resource for each in numbers])
                return waits_for(code, sentence, "", numbers, holding if code is WaitCode.IN_USE else ())
        return self._in_pieces(groups, masks, asked, free)

    def _held_empty(self, task: Task) -> BoolArray:
        """Return the nodes whose devices would suffice if no pod held any [N]."""
        concerned = [family for family in self._devices if family.concerns(task)]
        would = np.ones(self._session.nodes.count, dtype=np.bool_)
        for family in concerned:
            would &= ~family.present | family.fitting(task)
        return would

    def _is_beyond_devices(self, each: Alike, mask: BoolArray) -> bool:
        """Return whether all nodes that have enough amounts when empty have unsuitable devices."""
        would = mask & (_fitting(each, self._session.nodes.allocatable) > 0)
        return bool(would.any()) and not (would & self._held_empty(each.task)).any()

    # --- in words

    def _untolerating(self, groups: list[Alike]) -> WaitReason:
        """Name the taints of the nodes that have room for one more pod."""
        counts = Counter[str]()
        for each in groups:
            for row in np.flatnonzero(each.free_capacity.tainted & (_fitting(each, self._now) > 0)).tolist():
                counts.update(text for _, text in self._untolerated(each.task, row))
        taints = counts.most_common(NAMED)
        told = ", ".join(f"{text} ({counted(nodes, 'node')})" for text, nodes in taints)
        sentence = f"there is room on nodes with taints that it does not tolerate: {told}"
        return waits_for(WaitCode.NOT_TOLERATED, sentence, in_the_way=[text for text, _ in taints])

    def _too_large(self, each: Alike, mask: BoolArray) -> WaitReason:
        names, found = self._session.dims.names, list[WaitNumber]()
        for dimension, value in each.asked:
            most = float(self._session.nodes.allocatable[dimension][mask].max())
            if value - most >= MIN_RESOURCE:
                found.append(WaitNumber.of(names[dimension], value, most, most, "the largest node that would do"))
        told = "; ".join(
            f"a pod asks {one.words(one.asked)}, {one.limit} has {one.words(one.allowed, bare=True)}" for one in found
        )
        sentence = (
            f"no node is that large: {told}"
            if told
            else "no node that would do has room for a pod of it, were it empty"
        )
        return waits_for(WaitCode.LARGER_THAN_ANY_NODE, sentence, "", found)

    def _in_pieces(
        self, groups: list[Alike], masks: list[BoolArray], asked: dict[int, float], free: dict[int, float]
    ) -> WaitReason:
        names = self._session.dims.names
        fits = [int((_fitting(each, self._now) * mask).sum()) for each, mask in zip(groups, masks, strict=True)]
        worst = min(range(len(groups)), key=lambda place: fits[place] / groups[place].count)
        each = groups[worst]
        least = ", ".join(amount(names[one], value) for one, value in each.asked if one != PODS)
        enough = ", ".join(amount(names[one], free[one]) for one in asked if one != PODS)
        told = f"{min(fits[worst], each.count)} of {each.count} pods fit ({least} each)"
        return waits_for(WaitCode.FREE_IN_PIECES, f"{told}, though {enough} are free in all")


def _free_of_whole(number: WaitNumber) -> str:
    free, whole = number.words(number.left, bare=True), number.words(number.allowed, bare=True)
    return f"asks {number.words(number.asked)}, {free} free of {whole}"


def _is_room(reason: Reason) -> bool:
    """Return whether a reason is about amounts, which are checked apart; Kubernetes' own scheduler has a filter for
    them.
    """
    return reason.text == POD_COUNT or reason.plugin == NODE_RESOURCES


def _names_taints(session: Session, code: int, *, beside_room: bool = False) -> bool:
    """Return whether all reasons behind a number are about taints, or about room as well; False where it fits."""
    reasons = session.reasons.reasons(code)
    return bool(reasons) and all(each.plugin == TAINTS or (beside_room and _is_room(each)) for each in reasons)


def _taint_text(taint: Object) -> str:
    """Return `key=value:Effect`, as kubectl writes a taint."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def _kind(task: Task) -> object:
    """Return the kind of a pod: filters answer equally for pods of one kind; pods with affinity share answers only
    within one job.
    """
    return task.template.number if task.template.plain else (task.template.number, task.job)


def _fitting(each: Alike, room: FloatArray) -> npt.NDArray[np.int64]:
    """Return for each node how many of these pods would fit on it alone, at most the number of pods."""
    most = np.full(room.shape[1], float(each.count))
    for dimension, value in each.asked:
        np.minimum(most, np.floor((room[dimension] + MIN_RESOURCE) / value), out=most)
    fitting: npt.NDArray[np.int64] = np.maximum(most, 0.0).astype(np.int64)
    return fitting


def _refusals(free_capacity: FreeCapacity) -> str:
    most = Counter(free_capacity.refusals).most_common(NAMED)
    return ", ".join(f"{nodes} {text}" for text, nodes in most)


# --- Jobs that stand in the way of another one


def holders(session: Session, resources: Sequence[str], queues: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the jobs that hold most of the first of these resources now, the largest first. `queues`: only jobs of
    these.
    """
    dimension = session.dims.names.index(resources[0]) if resources and resources[0] in session.dims.names else -1
    if dimension < 0:
        return ()
    held, found = session.snapshot.jobs.allocated[dimension], list[str]()
    order: list[int] = np.argsort(-held, kind="stable").tolist()
    for row in order:
        if held[row] <= 0 or len(found) == NAMED:
            break
        job = session.snapshot.jobs.handles[row]
        if job is not None and job.spec is not None and (queues is None or job.spec.queue in queues):
            found.append(name_of(job))
    return tuple(found)


def takers(session: Session) -> tuple[str, ...]:
    """Return the first jobs that got nodes in this cycle."""
    keys = dict.fromkeys(bind.job for bind in session.binds)
    known = {job.key: job for job in session.jobs.in_order if job.key in keys}
    return tuple(name_of(known[key]) if key in known else key for key in list(keys)[:NAMED])


def name_of(job: Job) -> str:
    """Return it as people know it: the job that its PodGroup was made for, else the PodGroup."""
    return job.key if job.spec is None else owner_of(job.spec.pod_group)
