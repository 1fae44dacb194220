# SPDX-License-Identifier: Apache-2.0
"""Input of a decided cycle, and the pods and jobs in question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pumice.belonging import owner_of
from pumice.cluster.controllers.groups import OWNERS
from pumice.config.errors import RequestError, nearest_keys
from pumice.config.schema import SchedulerConfig
from pumice.core.messages.decisions import Bind, Evict
from pumice.core.objects.metadata import Object
from pumice.core.objects.pod import TEMPLATE_HASH, stranger_of
from pumice.core.outside import Ask, Supposing
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.state.jobs import Job
from pumice.core.state.view import View
from pumice.load.documents import usage_of
from pumice.questions.explain.refused import RefusedBind
from pumice.questions.history.rewind import Rewound
from pumice.questions.oneshot.supposing import over_http
from pumice.storage.history import RecordedCycle

EXPLAINED: Final = ("pod", "podgroup", "job", "deployment", *map(str.lower, OWNERS))
"""Kinds of objects whose pods can be explained."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Input from which a cycle is decided. `recorded`: the decisions made then; None: this is the next cycle. `objects`
    gives the objects of the view, and `in_flight` its decisions in flight; `ask` asks processes outside. `scheduler`:
    of the cycle, "" for Volcano's. `refused`: by uid, pods whose last bind failed.
    """

    view: View
    config: SchedulerConfig
    clock: CycleClock
    carry: Carry
    recorded: RecordedCycle | None = None
    options: SessionOptions | None = None
    objects: Callable[[], list[Object]] = list
    in_flight: tuple[Bind | Evict, ...] = ()
    ask: Callable[[], Ask] = Supposing
    scheduler: str = ""
    refused: Mapping[str, RefusedBind] = field(default_factory=dict[str, RefusedBind])


def scene_of(past: Rewound) -> Scene:
    """Return a recorded cycle."""
    record = past.cycle.record
    clock = CycleClock(record.cycle, record.now, record.seed)
    config = past.replayer.configurations.of(record.config_digest, record.rules)
    carry = Carry.from_dict(record.carry_before)
    return Scene(
        past.view,
        config,
        clock,
        carry,
        past.cycle,
        options=SessionOptions(failed=record.failed),
        objects=lambda: past.objects,
        in_flight=past.in_flight,
        ask=lambda: Supposing(record.answers),
        scheduler=record.scheduler,
    )


def present(
    objects: Sequence[Object],
    settings: SchedulerConfig,
    now: float,
    warn: Callable[[str], None],
    cycle: int = 1,
) -> Scene:
    """Return the input of the next cycle, which has that number, as far as a server or a dump shows it: operations in
    flight are unknown. Objects that cannot be read are left out with a warning.
    """
    view, taken = View(), list[Object]()
    for obj in objects:
        try:
            view.apply("ADDED", obj)
        except RequestError as error:
            warn(f"{obj['kind']} {obj['metadata'].get('name')}: left out: {error}")
        else:
            taken.append(obj)
    options = SessionOptions(node_usage=usage_of(objects))
    clock, ask = CycleClock(cycle, now, 0), partial(over_http, taken)
    return Scene(view, settings, clock, Carry(), options=options, objects=lambda: taken, ask=ask)


def jobs_of(view: View, kind: str, name: str) -> list[str]:
    """Return the PodGroup of the pod, or of that name, or made for the job of that name."""
    if kind == "pod":
        task = view.tasks.by_key.get(name)
        job = "" if task is None else task.job or stranger_of(task)
        return [job] if job in view.jobs.by_key else []
    return [
        key for key, job in view.jobs.by_key.items() if name == key or (kind != "podgroup" and _made(job, kind, name))
    ]


def _made(job: Job, kind: str, name: str) -> bool:
    """Return whether the PodGroup was made for the object. A Deployment owns it through a ReplicaSet, whose name is
    the Deployment's and the hash of the template, which its pods carry.
    """
    owner = made_for(job)
    if kind != "deployment":
        return owner == name
    return any(owner == f"{name}-{task.labels.get(TEMPLATE_HASH)}" for task in job.tasks.values())


def pods_of(view: View, kind: str, name: str, jobs: list[str]) -> list[str]:
    """Return pods by "namespace/name", in order: the pod itself, or those of the jobs, which may wait for other
    schedulers.
    """
    by_key = view.tasks.by_key
    if kind == "pod":
        return [name] if name in by_key else []
    return sorted(key for key, task in by_key.items() if (task.job or stranger_of(task)) in jobs)


def made_for(job: Job) -> str:
    """Return the owner of a PodGroup; the PodGroup itself without one. Its name does not help: in a redacted journal
    the names of both are other pseudonyms.
    """
    return job.key if job.spec is None else owner_of(job.spec.pod_group)


def near(view: View, kind: str, name: str) -> str:
    """Return suggestions for a name that does not exist; a job has its PodGroup's name, and its own if the group was
    made for it.
    """
    known = set(view.tasks.by_key if kind == "pod" else view.jobs.by_key)
    if kind not in ("pod", "podgroup"):
        known |= set(map(made_for, view.jobs.by_key.values()))
    names = nearest_keys(name, known)
    return f"; near: {', '.join(names)}" if names else ""
