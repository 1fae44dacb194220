# SPDX-License-Identifier: Apache-2.0
"""Mutants are standard bad changes of a policy: a policy file should notice each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

import yaml
from msgspec import Struct

from pumice.config.errors import ConfigError
from pumice.config.unwrap import scheduler_document
from pumice.core.configuration import parse_or_built_in
from pumice.core.objects.metadata import Object, objects_in, section
from pumice.questions.gate.gate import HEAD, by_workload, found_by_reading, pair_tasks, verdict
from pumice.questions.gate.judging import Judgement, Pair, Pairs
from pumice.questions.gate.policy import GatePolicy
from pumice.questions.gate.runner import Runner
from pumice.questions.gate.sides import PolicySides, Side
from pumice.questions.gate.workloads import Trial
from pumice.results import Result
from pumice.yaml_text import dump_yaml

Mutant = tuple[str, Side]


class JudgedMutant(Struct, frozen=True):
    """Names a bad change, and which expectations and defaults notice it (`noticed_by`), findings included. `is_silent`:
    no job waits otherwise and no pod goes elsewhere, so the workload never reaches what was changed.
    """

    change: str
    noticed_by: tuple[str, ...]
    is_silent: bool


class MutationResult(Result, kw_only=True, tag="gate/1"):
    """Standard bad changes to head: their number (`mutants`), how many were `noticed`, how many changed
    nothing under these workloads (`silent`), and the names of those that nothing notices (`missed`).
    """

    head: str
    noticed: int
    silent: int
    missed: list[str]
    mutants: list[JudgedMutant]


def mutated(
    trials: Sequence[Trial],
    head: Side,
    policy: GatePolicy,
    runner: Runner,
    ended: Callable[[], None] = lambda: None,
) -> MutationResult:
    """Judge every bad change to head, with the unchanged head as base."""
    changes = [(change, PolicySides(head, side)) for change, side in mutants(head)]
    tasks = {
        (place, key): task
        for place, (_, sides) in enumerate(changes)
        for key, task in pair_tasks(trials, sides, policy).items()
    }
    left = Counter(place for place, _ in tasks)
    pairs = defaultdict[int, dict[tuple[str, int], Pair]](dict)
    judged = dict[int, JudgedMutant]()
    # all on one pool, and each judged and forgotten as it ends: a day's record has some megabytes
    for (place, key), pair in runner.ending_pairs(tasks):
        pairs[place][key] = pair
        left[place] -= 1
        if not left[place]:
            judged[place] = _judged(*changes[place], trials, policy, by_workload(trials, pairs.pop(place)))
            ended()
    found = [judged[place] for place in sorted(judged)]
    missed = [each.change for each in found if not each.noticed_by]
    unmoved = sum(each.is_silent for each in found if not each.noticed_by)
    return MutationResult(
        head=head.name, noticed=len(found) - len(missed), silent=unmoved, missed=missed, mutants=found
    )


def _judged(change: str, sides: PolicySides, trials: Sequence[Trial], policy: GatePolicy, pairs: Pairs) -> JudgedMutant:
    read = found_by_reading(trials, sides)
    result = verdict(sides, policy, read, trials, pairs)
    named = [each.name for each in (*result.expectations, *result.defaults) if each.verdict is Judgement.FAILS]
    silent = all(each.is_nothing for each in result.moved)
    return JudgedMutant(change, tuple(dict.fromkeys([*named, *read.new])), silent)


def mutants(head: Side) -> list[Mutant]:
    """Return each standard bad change to a policy, with its name."""
    found = [*_of_configuration(head), *_of_objects(head)]
    return [(name, side) for name, side in found if (side.config, side.objects) != (head.config, head.objects)]


# --- The configuration


def _of_configuration(head: Side) -> Iterator[Mutant]:
    document: Any = scheduler_document(head.config, head.source).data
    actions = [each.strip() for each in str(document.get("actions") or "").split(",") if each.strip()]
    for action in actions:
        changed = deepcopy(document)
        changed["actions"] = ", ".join(each for each in actions if each != action)
        yield from _with_config(f"action {action} is taken out", head, changed)
    if "enqueue" not in actions:
        yield from _with_config(
            "action enqueue comes first", head, {**document, "actions": ", ".join(["enqueue", *actions])}
        )
    for number, tier in enumerate(objects_in(document, "tiers")):
        for place, plugin in enumerate(objects_in(tier, "plugins")):
            yield from _of_plugin(head, document, number, place, plugin)


def _of_plugin(head: Side, document: Any, number: int, place: int, plugin: Any) -> Iterator[Mutant]:
    name = plugin.get("name")
    dropped = deepcopy(document)
    del dropped["tiers"][number]["plugins"][place]
    yield from _with_config(f"plugin {name} is taken out", head, dropped)
    for other in range(len(document["tiers"])):
        if other != number:
            moved = deepcopy(dropped)
            moved["tiers"][other].setdefault("plugins", []).append(deepcopy(plugin))
            yield from _with_config(f"plugin {name} moves to tier {other + 1}", head, moved)
    for key, value in plugin.items():
        if key.startswith("enable") and isinstance(value, bool):
            turned = deepcopy(document)
            turned["tiers"][number]["plugins"][place][key] = not value
            yield from _with_config(f"{key} of plugin {name} becomes {str(not value).lower()}", head, turned)
    if plugin.get("arguments"):
        bare = deepcopy(document)
        del bare["tiers"][number]["plugins"][place]["arguments"]
        yield from _with_config(f"plugin {name} loses its arguments", head, bare)


def _with_config(change: str, head: Side, document: object) -> Iterator[Mutant]:
    text = dump_yaml(document)
    try:
        settings, config = parse_or_built_in(text, source=head.source, lenient=True)
    except (ConfigError, yaml.YAMLError):
        return  # no scheduler starts with it
    yield change, replace(head, name=HEAD, config=config, settings=settings)


# --- Objects

LIMITS: Final = ("capability", "deserved", "guarantee", "affinity")


def _of_objects(head: Side) -> Iterator[Mutant]:
    for place, obj in enumerate(head.objects):
        name, kind = obj["metadata"].get("name"), obj["kind"]
        if kind == "Queue":
            for change, spec in _queues(section(obj, "spec")):
                yield change.format(name), _with_object(head, place, {**obj, "spec": spec})
        elif kind in ("ResourceQuota", "PodDisruptionBudget", "LimitRange", "HyperNode"):
            yield f"{kind} {name} is taken out", replace(head, name=HEAD, objects=_without(head.objects, place))
    yield from _swapped(head, "PriorityClass", lambda obj: obj.get("value"), _with_value)
    yield from _swapped(head, "Queue", lambda obj: section(obj, "spec").get("weight", 1), _with_weight)


def _queues(spec: Object) -> Iterator[tuple[str, Object]]:
    if spec.get("weight", 1) != 1:
        yield "queue {} has weight 1", {**spec, "weight": 1}
    if spec.get("reclaimable", True):
        yield "queue {} is not reclaimable", {**spec, "reclaimable": False}
    for key in LIMITS:
        if spec.get(key):
            yield f"queue {{}} loses its {key}", {one: value for one, value in spec.items() if one != key}


def _swapped(
    head: Side, kind: str, read: Callable[[Object], Any], write: Callable[[Object, Any], Object]
) -> Iterator[Mutant]:
    """Swap the values in which the two objects of a kind differ most."""
    places = [place for place, obj in enumerate(head.objects) if obj["kind"] == kind]
    places.sort(key=lambda place: (float(read(head.objects[place]) or 0), place))
    if len(places) < 2 or read(head.objects[places[0]]) == read(head.objects[places[-1]]):
        return
    low, high = head.objects[places[0]], head.objects[places[-1]]
    objects = list(head.objects)
    objects[places[0]], objects[places[-1]] = write(low, read(high)), write(high, read(low))
    names = f"{low['metadata'].get('name')} and {high['metadata'].get('name')}"
    yield f"{kind} {names} change places", replace(head, name=HEAD, objects=tuple(objects))


def _with_value(obj: Object, value: object) -> Object:
    return {**obj, "value": value}


def _with_weight(obj: Object, value: object) -> Object:
    return {**obj, "spec": {**section(obj, "spec"), "weight": value}}


def _with_object(head: Side, place: int, obj: Object) -> Side:
    return replace(head, name=HEAD, objects=(*head.objects[:place], obj, *head.objects[place + 1 :]))


def _without(objects: Sequence[Object], place: int) -> tuple[Object, ...]:
    return (*objects[:place], *objects[place + 1 :])
