# SPDX-License-Identifier: Apache-2.0
"""The default about filters fails where head places pods on nodes that base's filters refuse. Each kind of pod is tried
alone in the cluster against the filters of both sides, so that only their rules about nodes count, and not other pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from pumice.config.schema import SchedulerConfig, Tier
from pumice.core.cycle import close_session, open_session
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.objects.pod import GROUP_NAME, TASK_SPEC
from pumice.core.outside import Supposing
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.state.volumes import volume_rules
from pumice.questions.check.words import listens
from pumice.questions.gate.defaults import FILTERS, told
from pumice.questions.gate.demands import demands
from pumice.questions.gate.judging import Judged, Pair
from pumice.questions.gate.sides import NODE, PolicySides, Side
from pumice.questions.gate.workloads import Trial, joined
from pumice.questions.oneshot.cycles import fill

POINTS: Final = ("Predicate", "PrePredicate")
MOST: Final = 300
"""Limit of the kinds of pods that the filters see."""
STATED: Final = (NODE, "Queue", "HyperNode", "PriorityClass")
"""Kinds of objects that filters read."""


def refused(trial: Trial, sides: PolicySides, pair: Pair) -> Judged:
    """Judge the default: pods that head puts on a node that base's filters refuse and head's do not."""
    base, head = (joined(trial.objects, side, sides.stated()) for side in sides)
    if _says(sides.base, base) == _says(sides.head, head):
        return told(FILTERS, trial.name, [], [])
    on_base = _refusals(sides.base.settings, base, kinds := _kinds(base), pair.base.horizon_s)
    on_head = _refusals(sides.head.settings, head, _kinds(head), pair.base.horizon_s)
    found = [
        f"{bind.pod} on {bind.node}: {on_base[kind][bind.node]}"
        for bind in pair.head.binds
        if (kind := _kind_of(bind.job, bind.task, kinds)) is not None
        and bind.node in on_base.get(kind, {})
        and bind.node not in on_head.get(kind, {})
    ]
    return told(FILTERS, trial.name, [], found)


def _filters(config: SchedulerConfig) -> SchedulerConfig:
    """Return the configuration reduced to its filters."""
    tiers = tuple(
        Tier(
            tuple(
                each
                for each in tier.plugins
                if any(each.is_enabled(point) and listens(each, point) for point in POINTS)
            )
        )
        for tier in config.tiers
    )
    return msgspec.structs.replace(config, actions=("allocate",), tiers=tiers)


def _says(side: Side, objects: Sequence[Object]) -> tuple[Any, ...]:
    """Return the objects and settings that filters read."""
    read = sorted(
        (str(obj["kind"]), str(obj["metadata"].get("name")), msgspec.json.encode(obj, order="sorted"))
        for obj in objects
        if obj["kind"] in STATED
    )
    plugins = [(each.name, each.arguments) for tier in _filters(side.settings).tiers for each in tier.plugins]
    return sorted(plugins, key=str), read


Kind = tuple[str, str]
"""A job and one of its roles, for all with equal pods."""


def _kinds(objects: Sequence[Object]) -> dict[Kind, Object]:
    """Return the pods by job and role, equal ones as one object; roles with unequal pods are left out."""
    alike, found, mixed = dict[bytes, Object](), dict[Kind, Object](), set[Kind]()
    for job in demands(objects):
        for role in job.roles:
            shown = {"queue": job.queue, "spec": section(role.template, "spec"), "metadata": _told(role.template)}
            content, kind = msgspec.json.encode(shown, order="sorted"), (job.name, role.name)
            if len(alike) < MOST or content in alike:
                same = alike.setdefault(content, shown)
                mixed |= {kind} if found.setdefault(kind, same) is not same else set()
    return {kind: shown for kind, shown in found.items() if kind not in mixed}


def _told(template: Object) -> Object:
    meta = section(template, "metadata")
    return {"labels": text_map(meta.get("labels")), "annotations": text_map(meta.get("annotations"))}


def _kind_of(job: str, task: str, kinds: Mapping[Kind, Object]) -> Kind | None:
    return next((kind for kind in ((job, task), (job, "")) if kind in kinds), None)


def _refusals(
    config: SchedulerConfig, objects: Sequence[Object], kinds: Mapping[Kind, Object], now: float
) -> dict[Kind, Mapping[str, str]]:
    """Return the nodes that the filters refuse, with the reason, by kind of pod."""
    shown = list({id(each): each for each in kinds.values()}.values())
    names = {id(each): f"shown-{number}" for number, each in enumerate(shown)}
    pods = [made for each in shown for made in _alone(names[id(each)], each)]
    view = fill([*(obj for obj in objects if obj["kind"] in STATED), *pods])
    options = SessionOptions(explain=tuple(f"default/{name}" for name in names.values()))
    snapshot = view.snapshot(volume_rules(config))
    clock = CycleClock(1, now, 0)
    session = open_session(snapshot, _filters(config), clock, Carry(), options, report=True, ask=Supposing())
    found = close_session(session).report.tasks_at_open
    return {
        kind: found[key].rejected if (key := f"default/{names[id(each)]}") in found else {}
        for kind, each in kinds.items()
    }


def _alone(name: str, kind: Object) -> tuple[Object, Object]:
    """Return a pod of this kind, and a PodGroup for this pod alone."""
    meta = {"namespace": "default", "name": name}
    group: Object = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {**meta, "uid": f"group-{name}"},
        "spec": {"minMember": 1, "queue": kind["queue"]},
        "status": {"phase": "Inqueue"},
    }
    annotations = {**kind["metadata"]["annotations"], GROUP_NAME: name}
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **meta,
            "uid": name,
            "labels": kind["metadata"]["labels"],
            "annotations": {key: value for key, value in annotations.items() if key != TASK_SPEC},
        },
        "spec": {"schedulerName": "volcano", **kind["spec"]},
        "status": {"phase": "Pending"},
    }
    return group, pod
