# SPDX-License-Identifier: Apache-2.0
"""A workload for evaluations: objects, or a function of the seed that makes them, and how long time goes on."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pumice.actors.runtime.clock import VirtualClock
from pumice.cluster.api.bootstrap import assumed_queues
from pumice.config.durations import parse_duration
from pumice.core.objects.metadata import Object, parse_time, section, text_map
from pumice.core.objects.pod import GROUP_NAME
from pumice.errors import InputError
from pumice.lab.cluster import read
from pumice.load.manifests import Loaded
from pumice.load.openb import pod_group_of
from pumice.questions.gate.policy import Noise, Workload
from pumice.questions.gate.run import RunTask, WantedFacts
from pumice.questions.gate.workloads import demand_objects, drawn, read_workload
from pumice.questions.oneshot.bring import brought
from pumice.storage import codec
from pumice.units import format_moment

FAR_S: Final = 10 * 365 * 86_400.0
"""Horizon of "idle": a wait that is longer never ends."""
POD, GROUP = "Pod", "PodGroup"


@dataclass(frozen=True, slots=True)
class EvaluatedWorkload:
    """A workload. `objects`: manifests, nodes among them, or a function that makes them of a seed. `until_s`: the
    horizon in seconds, None until nothing more happens. `noise` varies given objects from seed to seed; seed 0 has them
    as they stand. `placement`: everything exists from the beginning and one cycle places it; no time passes, and the
    seed shuffles the order of arrival.
    """

    name: str
    objects: Sequence[Object] | Callable[[int], Sequence[Object]]
    until_s: float | None = None
    noise: Noise = field(default_factory=Noise)
    placement: bool = False
    default_duration_s: float = 5.0
    start: str = ""

    @classmethod
    def of_files(cls, *paths: str | Path, name: str = "", **options: object) -> EvaluatedWorkload:
        """Return the workload behind paths, as `-f` takes them. Raises InputError."""
        said = str(paths[0])
        stem = Path(said.partition(":")[2].partition(",")[0] or said).stem
        return cls(name or stem, read(*paths), **options)  # type: ignore[arg-type]

    @classmethod
    def of_policy_file(
        cls, said: Workload, folder: Path, noise: Noise, *, placement: bool = False
    ) -> EvaluatedWorkload:
        """Return a workload as policy files of the gate have it. Raises InputError."""
        lasts_s = parse_duration(said.default_duration)
        objects = read_workload(said, folder)
        return cls(said.name, objects, said.until_s, noise, placement, default_duration_s=lasts_s, start=said.start)

    def task(self, seed: int, config: str, source: str, wanted: WantedFacts) -> RunTask:
        """Return the run of this workload that a seed draws. Raises InputError for a workload that asks nothing."""
        objects = self.drawn(seed)
        demand_objects(objects, self.name)
        return RunTask(
            codec.pack(objects),
            config,
            source,
            parse_time(self.start) if self.start else VirtualClock.start,
            self.until_s,
            self.default_duration_s,
            seed,
            wanted,
            longest_s=FAR_S,
        )

    def drawn(self, seed: int) -> Sequence[Object]:
        """Return the objects of a seed."""
        if callable(self.objects):
            found = self.objects(seed)
            return placeable(found) if self.placement else found
        if self.placement:
            return placeable(shuffled(self.objects, seed))
        return drawn(self.objects, self.noise, seed)


# --- Placement: everything in one cycle


def shuffled(objects: Sequence[Object], seed: int) -> list[Object]:
    """Return the objects with pods and jobs in another order of arrival; seed 0: as they stand."""
    found = list(objects)
    places = [place for place, obj in enumerate(found) if obj["kind"] in (POD, "Job")]
    order = places.copy()
    if seed:
        random.Random(seed).shuffle(order)
    for place, other in zip(places, order, strict=True):
        found[place] = _created_like(objects[other], objects[place]) if place != other else objects[place]
    return found


def _created_like(obj: Object, other: Object) -> Object:
    """Return an object that came when another one did."""
    came = other["metadata"].get("creationTimestamp")
    kept = {key: value for key, value in obj["metadata"].items() if key != "creationTimestamp"}
    return {**obj, "metadata": {**kept, **({} if came is None else {"creationTimestamp": came})}}


def placeable(objects: Sequence[Object]) -> list[Object]:
    """Return pods and their PodGroups, admitted, in the order of arrival by their creation times: what one cycle of
    placing needs. Jobs become the pods that controllers make of them.
    """
    found = list[Object]()
    for obj in objects:
        if obj["kind"] == POD and GROUP_NAME not in text_map(obj["metadata"].get("annotations")):
            stamped = _stamped(obj)
            pod, group = pod_group_of(stamped)
            found += [group, pod]
        else:
            found.append(obj)
    if any(obj["kind"] not in (POD, GROUP, "Node", "Queue", "PriorityClass") for obj in found):
        made = brought(Loaded([*found]), (), VirtualClock.start)
        for problem in made.problems:
            raise problem
        found = made.objects
    return [_ready(obj) for obj in (*assumed_queues(found), *found)]


def _stamped(pod: Object) -> Object:
    if pod["metadata"].get("creationTimestamp"):
        return pod
    return {**pod, "metadata": {**pod["metadata"], "creationTimestamp": format_moment(VirtualClock.start)}}


def _ready(obj: Object) -> Object:
    """Return an object as it is before the cycle: pods have uids, PodGroups are admitted, queues are open."""
    meta, status = obj["metadata"], section(obj, "status")
    match obj["kind"]:
        case "Pod" if not meta.get("uid"):
            return {**obj, "metadata": {**meta, "uid": f"{meta.get('namespace')}-{meta['name']}"}}
        case "PodGroup" if status.get("phase") in (None, "Pending"):
            return {**obj, "status": {**status, "phase": "Inqueue"}}
        case "Queue" if not status.get("state"):
            return {**obj, "status": {**status, "state": "Open"}}
        case _:
            return obj


def seeds_of(said: int | Sequence[int]) -> tuple[int, ...]:
    """Return so many seeds from 0 on, or these. Raises InputError for none, or one twice."""
    seeds = tuple(range(said)) if isinstance(said, int) else tuple(said)
    if not seeds or len(set(seeds)) != len(seeds):
        raise InputError(f"expected at least one seed, and each once; was {said!r}", path="seeds")
    return seeds
