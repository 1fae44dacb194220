"""From what was read to what a cycle sees: admission, the queues that are assumed, and what controllers make of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from actors.kube.quota_usage import quota_status
from core.objects.metadata import section
from pumice.errors import InputError
from pumice.load.manifests import Loaded
from pumice.oneshot.between import Object, object_key
from pumice.oneshot.expand import assumed_queues, expanded
from pumice.oneshot.prepare import GivenObjects, identity, usable


@dataclass(slots=True)
class Brought:
    """Objects in order of arrival; a problem for each that could not be used; what a person should know beside."""

    objects: list[Object]
    problems: list[InputError] = field(default_factory=list[InputError])
    notes: list[str] = field(default_factory=list[str])


def brought(
    loaded: Loaded, beside: Sequence[Object], now: float, advance: Callable[[int], None] = lambda _: None
) -> Brought:
    """What was loaded, after what is there already (`beside`), as of `now` (seconds since the epoch)."""
    _name_all(loaded, beside)
    there = set(map(identity, beside))
    twice = [given for given in loaded.objects if identity(given) in there]
    loaded.objects = [given for given in loaded.objects if identity(given) not in there]
    queues = assumed_queues([*beside, *loaded.objects])
    loaded.objects = [*queues, *loaded.objects]
    taken, problems = usable(loaded, GivenObjects([*beside, *loaded.objects]), advance)
    problems += [_is_there(loaded, given) for given in twice]
    taken, stated = with_quota_statuses(taken, beside)
    found = expanded([*beside, *taken], now)
    notes = [f"Queue {queue['metadata']['name']} is not in the input: assumed, as Volcano makes it" for queue in queues]
    return Brought(found.objects, problems, notes + stated + found.notes)


def with_quota_statuses(objects: Sequence[Object], beside: Sequence[Object]) -> tuple[list[Object], list[str]]:
    """ResourceQuotas as their controller would have them: one without a status limits nothing. And what was filled in,
    in words.
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
