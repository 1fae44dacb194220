# SPDX-License-Identifier: Apache-2.0
"""From the input to the objects of a cycle: admission, assumed queues, and objects that controllers make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from pumice.cluster.api.bootstrap import assumed_queues
from pumice.cluster.controllers.disruptions import DisruptionMachine
from pumice.cluster.controllers.nodes import NodeTaintsMachine
from pumice.cluster.kernel.machine_host import MachineHost
from pumice.cluster.kube.quota_usage import quota_status
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.parts import kind_of
from pumice.errors import InputError
from pumice.load.manifests import Loaded
from pumice.questions.oneshot.between import object_key
from pumice.questions.oneshot.expand import NotingApi, expanded
from pumice.questions.oneshot.identity import identity, stored_as
from pumice.questions.oneshot.pending import makers_absent
from pumice.questions.oneshot.prepare import GivenObjects, usable


@dataclass(slots=True)
class Brought:
    """Objects in order of arrival; a problem for each unusable one; and remarks for people."""

    objects: list[Object]
    problems: list[InputError] = field(default_factory=list[InputError])
    notes: list[str] = field(default_factory=list[str])


def brought(
    loaded: Loaded, beside: Sequence[Object], now: float, advance: Callable[[int], None] = lambda _: None
) -> Brought:
    """Return the loaded objects, after those that exist already (`beside`), as of `now` (seconds since the epoch)."""
    _name_all(loaded, beside)
    there = set(map(identity, beside))
    twice = [given for given in loaded.objects if identity(given) in there]
    loaded.objects = [given for given in loaded.objects if identity(given) not in there]
    queues = assumed_queues([*beside, *loaded.objects])
    loaded.objects = [*queues, *loaded.objects]
    fit = usable(loaded, GivenObjects([*beside, *loaded.objects]), advance, beside)
    problems = [*fit.problems, *[_is_there(loaded, given) for given in twice]]
    taken, stated = with_quota_statuses(as_controllers_leave(fit.taken, beside, now), beside)
    found = expanded([*beside, *taken], now)
    absent = [f"PodGroup {object_key(group)}: {said}" for group, said in makers_absent(found.objects)]
    return Brought(found.objects, problems, [*_said_of(queues), *fit.notes, *stated, *found.notes, *absent])


def _said_of(queues: Sequence[Object]) -> list[str]:
    names = [queue["metadata"]["name"] for queue in queues]
    said = {1: "Queue {} is not in the input: assumed, as Volcano makes it"}
    many = "Queues {} are not in the input: assumed, as Volcano makes them"
    return [said.get(len(names), many).format(" and ".join(names))] if names else []


def as_controllers_leave(objects: Sequence[Object], beside: Sequence[Object], now: float) -> list[Object]:
    """Return the objects as controllers of a running cluster would leave them: unhealthy nodes are tainted, and
    uncounted budgets of disruptions have a status.
    """
    machines = [NodeTaintsMachine(agents=True), *([DisruptionMachine()] if any(map(_is_uncounted, objects)) else ())]
    watched = {kind_of(kind) for machine in machines for kind in machine.kinds}
    api = NotingApi([obj for obj in (*beside, *objects) if stored_as(obj) in watched], now)
    api.rest([MachineHost(api, machines)])
    return [api.left(obj) if obj["kind"] == "Node" or _is_uncounted(obj) else obj for obj in objects]


def _is_uncounted(obj: Object) -> bool:
    """Return whether the object is a budget without a status; one from a cluster keeps its status."""
    return obj["kind"] == "PodDisruptionBudget" and not section(obj, "status")


def with_quota_statuses(objects: Sequence[Object], beside: Sequence[Object]) -> tuple[list[Object], list[str]]:
    """Return ResourceQuotas as their controller would have them, since one without a status limits nothing, and a
    sentence on the filled-in ones.
    """
    notes: list[str] = []

    def stated(obj: Object) -> Object:
        if obj["kind"] != "ResourceQuota" or section(section(obj, "status"), "hard"):
            return obj
        namespace = obj["metadata"].get("namespace")
        pods = [
            each
            for each in (*beside, *objects)
            if each["kind"] == "Pod" and each["metadata"].get("namespace") == namespace
        ]
        status = quota_status(obj, pods)
        used = ", ".join(f"{name} {text}" for name, text in status["used"].items())
        notes.append(
            f"ResourceQuota {object_key(obj)} has no status: taken as its controller would write it, used: {used}"
        )
        return {**obj, "status": status}

    return [stated(obj) for obj in objects], notes


def _name_all(loaded: Loaded, beside: Sequence[Object]) -> None:
    """Give a name to each object that has only `generateName`, as the api does, though the same in every run: with the
    first number that is free.
    """
    taken = {identity(obj) for obj in (*beside, *loaded.objects)}
    for given in loaded.objects:
        if not section(given, "metadata").get("name"):
            (kind, namespace, _), prefix = identity(given), given["metadata"]["generateName"]
            number = next(each for each in count() if (kind, namespace, f"{prefix}{each}") not in taken)
            loaded.name(given, f"{prefix}{number}")
            taken.add(identity(given))


def _is_there(loaded: Loaded, given: Object) -> InputError:
    who = f"{given['kind']} {object_key(given).strip('/')}"
    return InputError("the recorded state has it already", source=loaded.place_of(given), path=who)
