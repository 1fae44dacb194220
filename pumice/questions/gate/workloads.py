# SPDX-License-Identifier: Apache-2.0
"""Workloads become objects: they are read or drawn, joined with a policy, and varied from draw to draw.

Both sides get the same draw: a job comes at the same time and runs as long under either policy.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.config.durations import duration_s
from pumice.core.objects.metadata import Object, is_list, is_mapping, section, text_map
from pumice.core.objects.pod import GROUP_NAME, QUEUE_NAME
from pumice.errors import InputError
from pumice.lab.builders import gang, nodes
from pumice.load.manifests import load
from pumice.questions.gate.expectations import Expectation
from pumice.questions.gate.policy import GeneratedJobs, Noise, Workload
from pumice.questions.gate.sides import NODE, WORK, Side
from pumice.questions.sweep.one_run import placed
from pumice.runtime.arrivals import ARRIVAL, duration_text

QUEUE, CLASS = "queue", "priorityClassName"
OF_USERS: Final = ("labels", "matchLabels", "selector", "nodeSelector")
LONGEST_NAME: Final = 50
"""Length of a name within that of a copy: names of Jobs have 63 letters at most."""
WORDS: Final = frozenset(("Event", "Lease"))
"""Kinds that cannot affect a decision."""


def read_workload(workload: Workload, folder: Path) -> list[Object]:
    """Return the objects of a workload; its paths are relative to the folder. Raises InputError."""
    if workload.generate is not None:
        return list(generated(workload.generate))
    loaded = load([placed(path, folder) for path in workload.input], io.StringIO())
    for problem in loaded.problems:
        raise problem
    return [obj for obj in loaded.objects if obj["kind"] not in WORDS]


def generated(asked: GeneratedJobs) -> Iterator[Object]:
    """Yield nodes, where they are asked for, and jobs that come at random moments, in the order of their numbers."""
    chance = random.Random(asked.seed)
    over_s = duration_s(asked.over) or 0.0
    if asked.nodes:
        yield from nodes(asked.nodes, cpu=asked.node_cpu, memory=asked.node_memory, gpu=asked.node_gpu)
    arrivals = sorted(round(chance.uniform(0.0, over_s), 1) for _ in range(asked.jobs))
    for number, at in enumerate(arrivals):
        yield gang(
            f"job-{number}",
            chance.choice(asked.pods),
            cpu=chance.choice(asked.cpu),
            gpu=chance.choice(asked.gpu),
            duration=chance.choice(asked.duration),
            queue=chance.choice(asked.queues),
            priority=chance.choice(asked.classes) if asked.classes else None,
            arrival=duration_text(at) if at else None,
        )


# --- Under a policy


@dataclass(frozen=True, slots=True)
class Trial:
    """Contains a workload with its objects and expectations. `is_case`: a golden case, without the defaults."""

    workload: Workload
    objects: Sequence[Object]
    expect: tuple[Expectation, ...]
    is_case: bool = False

    @property
    def name(self) -> str:
        """Return the name of the workload."""
        return self.workload.name


def joined(workload: Sequence[Object], side: Side, stated: frozenset[str]) -> list[Object]:
    """Return the workload under a policy. `stated`: kinds that either policy states; the workload's own are left
    out. Of the policy's nodes only labels and taints count: which nodes there are is the workload's matter.
    """
    own = {obj["metadata"].get("name"): obj for obj in side.objects if obj["kind"] == NODE}
    kept = [obj for obj in workload if obj["kind"] not in stated]
    found = [_as_stated(obj, own) if obj["kind"] == NODE else _renamed(obj, side.renamed) for obj in kept]
    return [*(obj for obj in side.objects if obj["kind"] != NODE), *found]


def _as_stated(node: Object, own: Mapping[Any, Object]) -> Object:
    """Return a node with the labels and taints of the policy."""
    stated = own.get(node["metadata"].get("name"))
    if stated is None:
        return node
    labels = {**text_map(node["metadata"].get("labels")), **text_map(stated["metadata"].get("labels"))}
    merged = {**node, "metadata": {**node["metadata"], "labels": labels}}
    taints = section(stated, "spec").get("taints")
    return merged if taints is None else {**merged, "spec": {**section(node, "spec"), "taints": taints}}


def _renamed(value: object, renamed: Mapping[str, str]) -> Any:
    if not renamed:
        return value
    if is_list(value):
        return [_renamed(one, renamed) for one in value]
    if not is_mapping(value):
        return value
    return {key: _renamed_at(key, one, renamed) for key, one in value.items()}


def _renamed_at(key: str, value: object, renamed: Mapping[str, str]) -> Any:
    """Rename the value of a key; keys of labels and annotations, and in selectors, belong to the user."""
    if key in OF_USERS:
        return value
    if key == "annotations" and is_mapping(value):
        return {at: renamed.get(one, one) if at == QUEUE_NAME else one for at, one in value.items()}
    if key in (QUEUE, CLASS) and isinstance(value, str):
        return renamed.get(value, value)
    return _renamed(value, renamed)


# --- Draws


def drawn(objects: Sequence[Object], noise: Noise, draw: int) -> list[Object]:
    """Return a draw of a workload; draw 0 is the workload itself."""
    if draw == 0:
        return list(objects)
    if noise.days:
        objects = _days(objects, duration_s(noise.days) or 0.0, random.Random(f"{noise.seed}/{draw}/days"))
    shift_s = duration_s(noise.arrivals) or 0.0
    return [_moved(obj, shift_s, noise, draw) for obj in objects]


def _moved(obj: Object, shift_s: float, noise: Noise, draw: int) -> Object:
    at = arrival_s(obj)
    meta = obj["metadata"]
    # seeded by name: a job has the same luck whatever else is in the workload
    chance = random.Random(f"{noise.seed}/{draw}/{obj['kind']}/{meta.get('namespace')}/{meta.get('name')}")
    moved = obj if at is None else arriving_at(obj, max(0.0, at + chance.uniform(-shift_s, shift_s)))
    if not noise.durations:
        return moved
    factor = 1.0 + chance.uniform(-noise.durations, noise.durations)
    stretched: Object = with_durations(moved, lambda seconds: max(0.001, seconds * factor))
    return stretched


def arrival_s(obj: Object) -> float | None:
    """Return the arrival of an object in seconds after the beginning; None: it exists, or has a time of day."""
    said = text_map(obj["metadata"].get("annotations")).get(ARRIVAL)
    return None if said is None else duration_s(said)


def arriving_at(obj: Object, at_s: float) -> Object:
    """Return the object with this arrival."""
    annotations = {**text_map(obj["metadata"].get("annotations")), ARRIVAL: duration_text(round(at_s, 3))}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def with_durations(value: object, change: Callable[[float], float]) -> Any:
    """Return an object with other run times: `change` maps each run time that it states, in seconds."""
    if is_list(value):
        return [with_durations(one, change) for one in value]
    if not is_mapping(value):
        return value
    return {
        key: _changed(one, change) if key == DURATION else with_durations(one, change) for key, one in value.items()
    }


def _changed(said: object, change: Callable[[float], float]) -> Any:
    seconds = duration_s(said) if isinstance(said, str) else None
    return said if not seconds else duration_text(change(seconds))


def _days(objects: Sequence[Object], length_s: float, chance: random.Random) -> list[Object]:
    """Return the objects with intervals drawn anew; a repeated object has another name, and no uid."""
    there = [obj for obj in objects if arrival_s(obj) is None]
    stretches = dict[int, list[Object]]()
    for obj in objects:
        if (at := arrival_s(obj)) is not None:
            stretches.setdefault(int(at // length_s), []).append(obj)
    count = max(stretches, default=-1) + 1
    found, drawn_before = list(there), set[int]()
    for number in range(count):
        chosen = chance.randrange(count)
        for obj in stretches.get(chosen, ()):
            moved = arriving_at(obj, (arrival_s(obj) or 0.0) + (number - chosen) * length_s)
            found.append(_copied(moved, f"-d{number}") if chosen in drawn_before else moved)
        drawn_before.add(chosen)
    return found


def _copied(obj: Object, suffix: str) -> Object:
    """Return an object under another name; its pods belong to the PodGroup of this name."""
    copied: Object = deepcopy(obj)
    meta = copied["metadata"]
    meta["name"] = f"{str(meta.get('name'))[:LONGEST_NAME]}{suffix}"
    meta.pop("uid", None)
    if (group := text_map(meta.get("annotations")).get(GROUP_NAME)) is not None:
        meta["annotations"] = {**meta["annotations"], GROUP_NAME: f"{group[:LONGEST_NAME]}{suffix}"}
    return copied


def late_jobs(workload: Workload, objects: Sequence[Object]) -> str:
    """Return a sentence about the jobs of a workload that come after its horizon, "" without any. Raises InputError
    where all come after it.
    """
    work = [arrival_s(obj) for obj in objects if obj["kind"] in WORK]
    late = sum(at is not None and workload.until_s is not None and at > workload.until_s for at in work)
    if not late:
        return ""
    count = f"{'all' if late == len(work) else late} of {len(work)} jobs and pods"
    text = f"{count} come after `until` ({duration_text(workload.until_s or 0.0)}), so that no run sees them"
    advice = f"{text}; make `until` longer" + (", or `over` shorter" if workload.generate is not None else "")
    if late == len(work):
        raise InputError(advice, source=workload.name)
    return f"{workload.name}: {advice}"


def demand_objects(objects: Sequence[Object], name: str) -> None:
    """Refuse a workload without anything to schedule, or without a node. Raises InputError."""
    if not any(obj["kind"] in WORK for obj in objects):
        raise InputError("there is nothing to schedule in this workload: no job, no pod", source=name)
    if not any(obj["kind"] == NODE for obj in objects):
        more = "add the cluster's nodes to its `input`, or say `nodes` in `generate`"
        raise InputError(f"there is no node in this workload; {more}", source=name)
