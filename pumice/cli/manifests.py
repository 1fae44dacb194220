# SPDX-License-Identifier: Apache-2.0
"""Manifests as the input of a command: read, judged, and the moment that they stand for.

Reading takes the API with all its checks, so commands import this module only when they are given manifests.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pumice.cli.exits import UsageError
from pumice.cli.terminal import Terminal
from pumice.cluster.api.bootstrap import assumed_queues
from pumice.cluster.kernel.intake import refusals_of
from pumice.collecting import keeping
from pumice.core.objects.metadata import Object, is_list, mapping, parse_time
from pumice.errors import InputError
from pumice.load.manifests import Loaded, load
from pumice.load.remarks import InputCounts, read_as, remarks, strangers, told_as
from pumice.questions.oneshot.bring import brought
from pumice.runtime.standing import named
from pumice.units import BEGAN


class HandedIn(NamedTuple):
    """Objects of the input, and whether all could be used; their moment (seconds since the epoch): the requested one,
    else `moment_of` them, so that repeated questions get the same answer; and how many were checked as new, taken as a
    cluster had them (`read_as`), and refused.
    """

    objects: list[Object]
    whole: bool
    now: float
    read: InputCounts


def load_manifests(paths: Sequence[str], terminal: Terminal, *, controllers: bool = True) -> Loaded:
    """Return everything behind the paths; skipped objects are warned about, unusable ones are errors."""
    loaded = load(paths, sys.stdin)
    for line in loaded.skipped:
        terminal.warn(line)
    if loaded.older:
        terminal.say(f"{loaded.older} older versions of objects were left out: the newest counts")
    for problem in loaded.problems:
        terminal.error(str(problem))
    for remark in remarks(loaded, controllers=controllers):
        terminal.warn(remark)
    for line in told_as(loaded):
        terminal.say(line)
    return loaded


def demand_objects(objects: Sequence[object], terminal: Terminal) -> None:
    """Refuse an input without objects for the question. Raises UsageError."""
    if not objects:
        raise UsageError("no object of the input could be used" if terminal.errors else "the input has no objects")


def load_accepted(paths: Sequence[str], terminal: Terminal) -> list[Object]:
    """Return everything behind the paths that an API accepts; a refusal is an error, with the API's words.

    A caller that lives through a future reads objects before the API of that future has judged them.
    """
    loaded = load_manifests(paths, terminal)
    accepted = list[Object]()
    answers = refusals_of(loaded.objects, assumed_queues(loaded.objects))
    for obj, answer in zip(loaded.objects, answers, strict=True):
        if answer is None:
            accepted.append(obj)
        else:
            terminal.error(str(InputError(answer.message, source=loaded.place_of(obj), path=named(obj))))
    demand_objects(accepted, terminal)
    return accepted


def moment_of(objects: Sequence[Object]) -> float:
    """Return the moment that manifests stand for (seconds since the epoch)."""
    return newest_of(objects) or BEGAN


def newest_of(objects: Iterable[Object]) -> float:
    """Return the time of the newest change to these objects (seconds since the epoch); 0.0 where they show no time."""
    newest = 0.0
    for told in (told for obj in objects for told in _times_of(obj)):
        try:
            newest = max(newest, parse_time(told))
        except (ValueError, TypeError, AttributeError):
            continue  # the reader of the object reports it
    return newest


def _times_of(obj: Object) -> Iterator[Any]:
    """Yield the times at which an object was created, started and last changed; of a sample, the time it was taken."""
    # Values of other types are passed over: the reader of the object reports them.
    status = mapping(obj.get("status"))
    yield mapping(obj.get("metadata")).get("creationTimestamp")
    yield obj.get("timestamp")
    yield status.get("startTime")
    conditions = status.get("conditions")
    for each in map(mapping, conditions if is_list(conditions) else ()):
        yield each.get("lastTransitionTime")
        yield each.get("lastHeartbeatTime")


def take_manifests(paths: Sequence[str], beside: Sequence[Object], now: float | None, terminal: Terminal) -> HandedIn:
    """Return the objects of the paths and those `beside` them, with the objects that controllers derive from them.
    Prints a remark for each unusable input and for each assumption. Raises UsageError without objects.
    """
    with keeping():
        loaded = load_manifests(paths, terminal)
        demand_objects([*loaded.objects, *beside], terminal)
        now, read = moment_of(loaded.objects) if now is None else now, read_as(loaded)
        with terminal.progress("reading", len(loaded.objects)) as advance:
            found = brought(loaded, beside, now, advance)
    refused = len(loaded.problems) + len(found.problems)
    for problem in found.problems:
        terminal.error(str(problem))
    for note in (*found.notes, *strangers(found.objects)):
        terminal.warn(note)
    return HandedIn(found.objects, not loaded.problems and not found.problems, now, {**read, "refused": refused})
