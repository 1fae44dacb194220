# SPDX-License-Identifier: Apache-2.0
"""Advice for a waiting job: candidates from the trail, tried, and described with their effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from pumice.cluster.api.admission.priority_classes import HIGHEST
from pumice.cluster.controllers.unserved import SCHEDULER
from pumice.config.schema import PluginOption, SchedulerConfig, Tier
from pumice.core.objects.metadata import Object, owners_of, section
from pumice.core.objects.pod import GROUP_NAME, is_strange
from pumice.core.plugins.overcommit import FACTOR
from pumice.questions.explain.account import Helps
from pumice.questions.explain.advice.changes import Change, ChangeFamily, Edit, Group, Identity, in_words, single
from pumice.questions.explain.advice.groups import WaitingGroup, about_group, about_misplaced, amounts_in
from pumice.questions.explain.advice.limits import about_limits, about_victims, joint_limits
from pumice.questions.explain.advice.nodes import NodeRefusals, about_nodes, against_each, more_room
from pumice.questions.explain.advice.search import AdviceSearch, Found
from pumice.questions.explain.advice.trial import WAITING, Bench, TimeOverError, TrialResult, around, budget
from pumice.questions.explain.scene import Scene, jobs_of
from pumice.questions.oneshot.cycles import fill
from pumice.questions.oneshot.expand import expanded
from pumice.questions.oneshot.supposing import unasked
from pumice.questions.whatif.changes import node_like
from pumice.work import OBJECT, of_cycle

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task

# --- Unmade pods

REMARK: Final = "it has no pods before it is admitted: tried as if they were there"


def with_pods(scene: Scene, job: str) -> Scene | None:
    """Return that moment with the pods that the owner of the PodGroup "namespace/name" makes once it is admitted; None
    where there are pods, or no controller that would make some.
    """
    handle = scene.view.jobs.by_key[job]
    if handle.tasks or handle.spec is None:
        return None
    objects = scene.objects()
    group = next((each for each in objects if each["kind"] == "PodGroup" and _key(each) == job), None)
    owners = {each["uid"] for each in owners_of(group or {})}
    near = [each for each in objects if around(each, owners)]
    known = {id(each) for each in near}
    made = [each for each in expanded(near, scene.clock.now).objects if each["kind"] == "Pod" and id(each) not in known]
    if not made:
        return None
    grown = [*objects, *made]
    return replace(scene, view=fill(grown, scene.in_flight), recorded=None, objects=lambda: grown)


def _key(group: dict[str, object]) -> str:
    metadata = section(group, "metadata")
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


# --- Missing claims, priority classes and schedulers


def about_claims(task: Task, objects: Mapping[Identity, Object]) -> Iterator[ChangeFamily]:
    """Yield PersistentVolumeClaims that a pod's volumes name and that do not exist, or have no volume: each with a
    volume that is bound to it.
    """
    for volume in task.template.volumes:
        claim = section(volume, "persistentVolumeClaim").get("claimName")
        who = ("PersistentVolumeClaim", task.namespace, str(claim))
        there = objects.get(who, {})
        if claim and not section(there, "spec").get("volumeName"):
            words = f"bind PersistentVolumeClaim {claim}" if there else f"create PersistentVolumeClaim {claim}, bound"
            yield single(0, f"{words} to a volume that all nodes reach", *_bound(who, there))


def _bound(who: Identity, there: Object) -> tuple[Edit, Edit]:
    """Return the claim (which may be `there`) and a volume, bound to each other."""
    made, uid = f"made-for-{who[2]}", str(section(there, "metadata").get("uid") or "made")

    def change(claim: Object) -> None:
        notes = section(claim["metadata"], "annotations")
        claim["metadata"] |= {"uid": uid, "annotations": {**notes, "pv.kubernetes.io/bind-completed": "yes"}}
        plain = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        claim["spec"] = {**plain, **section(there, "spec"), "volumeName": made}
        claim["status"] = {"phase": "Bound"}

    return Edit(("PersistentVolume", "", made), _volume(who, uid)), Edit(who, change)


def _volume(claim: Identity, uid: str) -> Callable[[Object], None]:
    def change(volume: Object) -> None:
        reference = {"kind": claim[0], "namespace": claim[1], "name": claim[2], "uid": uid}
        volume["spec"] = {"claimRef": reference, "accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Ti"}}
        volume["status"] = {"phase": "Bound"}

    return change


def about_schedulers(pod_group: Object, objects: Mapping[Identity, Object]) -> Iterator[ChangeFamily]:
    """Yield pods of the PodGroup that name a scheduler that does not run here."""
    metadata = pod_group["metadata"]
    strangers: dict[str, list[Edit]] = {}
    pods = (who for who in objects if who[:2] == ("Pod", str(metadata.get("namespace") or "")))
    for who in pods:
        spec, annotations = section(objects[who], "spec"), section(section(objects[who], "metadata"), "annotations")
        if is_strange(spec) and annotations.get(GROUP_NAME) == metadata["name"]:
            strangers.setdefault(spec["schedulerName"], []).append(Edit(who, _of_volcano))
    for name, edits in sorted(strangers.items()):
        yield single(0, f"schedulerName {SCHEDULER} instead of {name}", *edits)


def _of_volcano(pod: Object) -> None:
    pod["spec"]["schedulerName"] = SCHEDULER


def about_priority_classes(pod_group: Object, objects: Mapping[Identity, Object]) -> Iterator[ChangeFamily]:
    """Yield the PriorityClasses that a PodGroup and the pod templates of its Job name, with value 0, or one above the
    others. With them its pods can be made as well.
    """
    for name in dict.fromkeys(_classes_of(pod_group, objects)):
        if name and ("PriorityClass", "", name) not in objects:
            yield _class(name, sorted({0} | {value + 1 for value in _values(objects) if 0 <= value + 1 <= HIGHEST}))


def _classes_of(pod_group: Object, objects: Mapping[Identity, Object]) -> Iterator[str]:
    yield str(section(pod_group, "spec").get("priorityClassName") or "")
    namespace = str(section(pod_group, "metadata").get("namespace") or "")
    for owner in owners_of(pod_group):
        job = objects.get((str(owner.get("kind")), namespace, str(owner.get("name"))), {})
        for task in section(job, "spec").get("tasks") or ():
            yield str(section(section(task, "template"), "spec").get("priorityClassName") or "")


def _class(name: str, values: Sequence[int]) -> ChangeFamily:
    def of(size: int) -> Change:
        value = values[size - 1]

        def change(made: Object) -> None:
            made |= {"apiVersion": "scheduling.k8s.io/v1", "value": value}

        return Change(
            f"create PriorityClass {name} (value {value})", (Edit(("PriorityClass", "", name), change),), remade=True
        )

    return ChangeFamily(0, len(values), of)


def _values(objects: Mapping[Identity, Object]) -> Iterator[int]:
    for who, obj in objects.items():
        if who[0] == "PriorityClass":
            yield int(obj.get("value") or 0)
        elif who[0] == "Pod":
            yield int(section(obj, "spec").get("priority") or 0)


# --- Further changes behind missing objects
# Objects that are missing hide the next refusal until they are made.

Candidates = Callable[[Bench], tuple[list[ChangeFamily], list[Group]]]


class Granted(NamedTuple):
    """The missing objects, `made`, and the bench with them. `most`: the greatest size of any."""

    made: tuple[Change, ...]
    bench: Bench
    most: int


def search_on(bench: Bench, search: AdviceSearch, candidates: Candidates) -> None:
    """Search with all missing objects added, if no change alone brings all pods of the job. They are made with the
    lowest value that they may have, then with the highest.
    """
    if _brings_all(search.found):
        return
    try:
        least = _granted(bench, 1)
        for granted in [least] if least.most == 1 else [least, _granted(bench, least.most)]:
            if granted.made:
                _continue(bench, search, granted, candidates)
    except TimeOverError:
        search.known += 1


def _brings_all(found: Iterable[Found]) -> bool:
    return any(one.result.kept >= one.result.pods > 0 for one in found)


def _granted(bench: Bench, size: int) -> Granted:
    """Return the granted objects. With one made, others may turn out to be missing: those that pods name which can only
    be made then.
    """
    made, most = list[Change](), 1
    while missing := [*_missing(bench)]:
        changes = [family.of(min(size, family.most)) for family in missing]
        most = max(most, *(family.most for family in missing))
        made += changes
        bench = bench.following(changes)
        if (grown := with_pods(bench.scene, bench.job)) is not None:
            bench = bench.elsewhere(grown)
    return Granted(tuple(made), bench, most)


def _missing(bench: Bench) -> Iterator[ChangeFamily]:
    told = set[str]()
    templates = {task.template.number: task for task in bench.waiting()}
    families = [each for task in templates.values() for each in about_claims(task, bench.objects)]
    for about in (about_priority_classes, about_schedulers):
        families += about(bench.pod_group(), bench.objects)
    for family in families:
        if (words := family.of(1).words) not in told:
            told.add(words)
            yield family


def _continue(bench: Bench, search: AdviceSearch, granted: Granted, candidates: Candidates) -> None:
    """Add the change that brings more of the job than all before; and those objects alone where they bring all
    of it.
    """
    most = max([search.before.kept, *(one.result.kept for one in search.found)])
    further = AdviceSearch(granted.bench, granted.bench.attempt())
    alone = Found((), further.before, least=True)
    if not _brings_all([*search.found, alone]):
        further.run(*candidates(granted.bench))
    found = [each for each in (alone, *further.found) if each.result.kept > most or _brings_all([each])]
    search.add([_whole(bench, one, granted.made) for one in found], further)


def _whole(bench: Bench, found: Found, made: Sequence[Change]) -> Found:
    """Add those of the objects made before that the found change needs for its result."""
    needed = tuple(made)
    try:
        for change in made:
            rest = tuple(each for each in needed if each is not change)
            both = (*rest, *found.changes)
            if _can_be_tried(bench, both) and bench.attempt(*both)[:3] >= found.result[:3]:
                needed = rest
        changes = (*needed, *found.changes)
        return replace(found, changes=changes, alone=_alone(bench, changes), made=needed)
    except TimeOverError:
        return replace(found, changes=(*needed, *found.changes), least=False, alone=(), made=needed)


def _alone(bench: Bench, changes: Sequence[Change]) -> tuple[int, ...]:
    """Return how far each change helps by itself: 0 for one that edits pods that only other changes make."""
    if len(changes) < 2:
        return ()
    return tuple(bench.attempt(each).kept if _can_be_tried(bench, [each]) else 0 for each in changes)


def _can_be_tried(bench: Bench, changes: Sequence[Change]) -> bool:
    return all(edit.who in bench.objects for each in changes for edit in each.edits if edit.who[0] == "Pod")


# --- Network topology

Place = Callable[[Object], Object]
"""Finds what is asked for in a PodGroup."""
ALLOWED: Final = "highestTierAllowed"
BY_NAME: Final = "highestTierName"


def about_topology(group: WaitingGroup) -> Iterator[ChangeFamily]:
    """Yield a wider tier, or a topology that need not hold, for each requested topology."""
    specs = [section(obj, "spec") for who, obj in group.objects.items() if who[0] == "HyperNode"]
    tiers = {int(spec.get("tier") or 0): str(spec.get("tierName") or "") for spec in specs}
    by_name = {name: tier for tier, name in tiers.items() if name}
    for who, place in _places(group):
        asked = place(group.pod_group)
        if asked.get("mode") == "soft":
            continue
        highest = asked.get(ALLOWED, by_name.get(str(asked.get(BY_NAME))))
        wider = sorted(tier for tier in tiers if highest is not None and tier > int(highest))
        if highest is not None and wider:
            yield _wider(group, who, place, [int(highest), *wider])
        yield single(1, f"network topology {who}soft instead of hard", Edit(group.who, _softened(place)))


def _places(group: WaitingGroup) -> Iterator[tuple[str, Place]]:
    spec = section(group.pod_group, "spec")
    if spec.get("networkTopology"):
        yield "", lambda obj: obj["spec"]["networkTopology"]
    for number, policy in enumerate(spec.get("subGroupPolicy") or ()):
        if policy.get("networkTopology"):
            yield f"of group {policy.get('name') or number} ", _of_policy(number)


def _of_policy(number: int) -> Place:
    return lambda obj: obj["spec"]["subGroupPolicy"][number]["networkTopology"]


def _wider(group: WaitingGroup, who: str, place: Place, tiers: list[int]) -> ChangeFamily:
    """Return wider tiers. `tiers`: the allowed one, and those above."""

    def of(size: int) -> Change:
        def change(obj: Object) -> None:
            asked = place(obj)
            asked[ALLOWED] = tiers[size]
            asked.pop(BY_NAME, None)

        words = f"network topology {who}{ALLOWED} {tiers[size]} instead of {tiers[0]}"
        return Change(words, (Edit(group.who, change),))

    return ChangeFamily(1, len(tiers) - 1, of)


def _softened(place: Place) -> Callable[[Object], None]:
    def change(obj: Object) -> None:
        asked = place(obj)
        asked["mode"] = "soft"
        for name in (ALLOWED, BY_NAME):
            asked.pop(name, None)

    return change


# --- More nodes

MOST: Final = 64
MOST_SORTS: Final = 3


def about_more_nodes(objects: Mapping[Identity, Object]) -> Iterator[ChangeFamily]:
    """Yield a family of changes for each sort of node (by amounts and taints): n more of it."""
    nodes = [obj for who, obj in objects.items() if who[0] == "Node"]
    for model in _sorts(nodes)[:MOST_SORTS]:
        yield ChangeFamily(5, MOST, _more(model, {str(obj["metadata"]["name"]) for obj in nodes}))


def _sorts(nodes: list[Object]) -> list[Object]:
    seen: dict[str, Object] = {}
    for obj in nodes:
        amounts: Any = section(obj, "status").get("allocatable")
        taints: Any = section(obj, "spec").get("taints")
        seen.setdefault(repr((amounts, taints or None)), obj)
    return list(seen.values())


def _more(model: Object, taken: set[str]) -> Callable[[int], Change]:
    name = str(model["metadata"]["name"])

    def of(size: int) -> Change:
        fresh = (made for number in range(len(taken) + size) if (made := f"{name}-more-{number}") not in taken)
        edits = tuple(Edit(("Node", "", next(fresh)), _like(model)) for _ in range(size))
        words = f"{size} more node{'s' * (size > 1)} like {name}"
        return Change(words, edits, amount=float(size))

    return of


def _like(model: Object) -> Callable[[Object], None]:
    def change(node: Object) -> None:
        node |= node_like(model, str(node["metadata"]["name"]))

    return change


# --- Admission

OVERCOMMIT: Final = "overcommit"
STEPS: Final = 100
"""The factor is raised by a tenth at a time, so often."""


def about_overcommit(config: SchedulerConfig) -> Iterator[ChangeFamily]:
    """Yield a greater factor, where the plugin is asked at all."""
    option = config.plugin(OVERCOMMIT)
    if option is None:
        return
    factor = FACTOR.of(option.arguments)

    def of(size: int) -> Change:
        greater = round(factor + size / 10, 3)
        words = f"{OVERCOMMIT}: {FACTOR.name} {greater:g} instead of {factor:g}"
        return Change(words, config=lambda before: _with_factor(before, greater), amount=greater / factor - 1)

    yield ChangeFamily(2, STEPS, of)


def _with_factor(config: SchedulerConfig, factor: float) -> SchedulerConfig:
    def option(one: PluginOption) -> PluginOption:
        if one.name != OVERCOMMIT:
            return one
        return msgspec.structs.replace(one, arguments={**one.arguments, FACTOR.name: factor})

    tiers = tuple(Tier(tuple(map(option, tier.plugins))) for tier in config.tiers)
    return msgspec.structs.replace(config, tiers=tiers)


@dataclass(frozen=True, slots=True)
class Advice:
    """Sentences, the best first; `remark`: why there are none, or not all. `data`: the same for programs. `supposed`:
    questions to outside processes that were not asked.
    """

    sentences: list[str] = field(default_factory=list[str])
    remark: str = ""
    data: list[Helps] = field(default_factory=list[Helps])
    supposed: list[str] = field(default_factory=list[str])


def advise(scene: Scene, kind: str, name: str, seconds: float) -> Advice:
    """Return the changes that bring the job of that pod, or of that name, further. Empty for a pod without a job or a
    job that does not wait. `seconds`: as work (see `pumice.work`), with the work up to here.
    """
    job = next(iter(jobs_of(scene.view, kind, name)), None)
    if job is None or scene.view.jobs.by_key[job].spec is None:
        return Advice()
    try:
        spent = budget(seconds)
        spent.demand()  # without a budget no pods are made either
        grown = with_pods(scene, job)
        scene = grown or scene
        tasks = len(scene.view.jobs.by_key[job].tasks)
        spent.demand(len(scene.objects()) * OBJECT + of_cycle(scene.view.nodes.count, len(scene.view.tasks.by_key)))
        bench = Bench.of(scene, job, spent)
        search = searched_on(bench, job)
    except TimeOverError:
        return Advice(remark=f"the work for trying ({seconds:g} s) was over before anything was tried (--budget)")
    if search is None:
        return Advice(remark=_untold(bench))
    told = _told(search, tasks, seconds)
    remark = "; ".join(filter(None, (told.remark, _untold(bench), REMARK if grown else "")))
    return replace(told, remark=remark, supposed=unasked(scene.config))


def _untold(bench: Bench) -> str:
    if not bench.untold:
        return ""
    return f"what the policies of {', '.join(sorted(bench.untold))} do about evicted pods was not tried"


def searched_on(bench: Bench, job: str) -> AdviceSearch | None:
    """Search for changes; None for a job that needs no help. Raises TimeOverError when it could not even begin."""
    tasks = len(bench.view.jobs.by_key[job].tasks)
    before = bench.attempt()
    if (tasks and before.kept >= tasks) or (not tasks and before.admitted and not _lacks_pods(bench)):
        return None
    search = AdviceSearch(bench, before)
    families, joint = candidates(bench)
    search.run(families, joint)
    search_on(bench, search, candidates)
    _add_nodes(bench, search)
    if any(one.result.kept for one in search.found):  # to be admitted only is not news then
        search.found = [one for one in search.found if one.result.kept]
    return search


def _add_nodes(bench: Bench, search: AdviceSearch) -> None:
    """Add nodes after all other changes: they nearly always help, and do not tell the cause."""
    if bench.spent():
        search.known += 1
        return
    more = AdviceSearch(bench, search.before)
    more.run([*about_more_nodes(bench.objects)])
    most = max([search.before.kept, *(one.result.kept for one in search.found)])
    search.tried, search.known = search.tried + more.tried, search.known + more.known
    search.found += [one for one in more.found if not one.in_pair and one.result.kept >= most]


def _lacks_pods(bench: Bench) -> bool:
    return bench.view.jobs.by_key[bench.job].pod_group.min_member > 0


def candidates(bench: Bench) -> tuple[list[ChangeFamily], list[Group]]:
    """Return all changes that might bring the job further, from the refusals of its waiting pods and from its objects;
    and those that may be needed together.
    """
    waiting = bench.waiting()
    alike: dict[int, list[Task]] = {}
    for task in waiting:
        alike.setdefault(task.template.number, []).append(task)
    watched = bench.look([tasks[0].key for tasks in alike.values()])
    nodes = {who[2]: obj for who, obj in bench.objects.items() if who[0] == "Node"}
    found, group = list[ChangeFamily](), _group(bench, waiting)
    for first, *others in alike.values():
        pods = [first.key, *(task.key for task in others)]
        look = watched.look(first.key)
        if look is not None:
            refused = NodeRefusals(first, pods, against_each(look), watched.room, nodes, group.grain)
            found += [*about_nodes(refused), *more_room(refused)]
        found += about_claims(first, bench.objects)
    found += about_priority_classes(group.pod_group, bench.objects)
    found += about_schedulers(group.pod_group, bench.objects)
    if bench.view.jobs.by_key[bench.job].pod_group.phase in WAITING:
        found += about_overcommit(bench.scene.config)
    found += about_misplaced(bench.scene.config, bench.objects)
    found += about_topology(group)
    return [*found, *about_group(group), *about_limits(group), *about_victims(group)], [*joint_limits(group)]


def _group(bench: Bench, waiting: Sequence[Task]) -> WaitingGroup:
    spec = bench.view.jobs.by_key[bench.job].pod_group
    asked: dict[str, float] = {}
    if waiting:
        for task in waiting:
            for name, value in amounts_in(task.template.request).items():
                asked[name] = asked.get(name, 0.0) + value
    elif spec.min_resources is not None:
        asked = amounts_in(spec.min_resources)
    actions = bench.scene.config.actions
    return WaitingGroup(
        bench.objects, bench.pod_group(), [task.key for task in waiting], asked, _grain(bench, asked), actions
    )


def _grain(bench: Bench, names: Iterable[str]) -> dict[str, int]:
    """Return the greatest amount that divides all requests of pods and PodGroups, by resource."""
    view, grain = bench.view, dict.fromkeys(names, 0)
    asked = [*{task.template.number: task.template.request for task in view.tasks.by_key.values()}.values()]
    groups = (job.pod_group for job in view.jobs.by_key.values() if job.spec is not None)
    asked += [group.min_resources for group in groups if group.min_resources is not None]
    for request in asked:
        for name, value in amounts_in(request).items():
            if name in grain:
                grain[name] = gcd(grain[name], round(value))
    return grain


# --- Words


def _told(search: AdviceSearch, tasks: int, seconds: float) -> Advice:
    told: dict[str, Found] = {}
    for found in search.found:
        told.setdefault(_sentence(found, tasks), found)  # several may say the same
    sentences, helpful = [*told], [*told.values()]
    remark = ""
    if search.tried < search.known:
        remark = (
            f"the work for trying ({seconds:g} s) was over after {search.tried} of {search.known} changes (--budget)"
        )
    elif not sentences:
        remark = "no change that was tried helps, nor any two of the nearest together"
    return Advice(sentences, remark, [_helps(found, tasks) for found in helpful])


def _sentence(found: Found, tasks: int) -> str:
    of = max(tasks, found.result.pods)
    alone = [f" (alone {kept} of {of})" if kept else "" for kept in found.alone or [0] * len(found.changes)]
    unsure = "" if found.least else " (less may do: the work for trying was over)"
    return f"{_how_far(found.result, of)} with: {in_words(found.changes, alone)}{unsure}"


def _how_far(result: TrialResult, of: int) -> str:
    if not result.kept:
        return "admitted"
    evicted = -result.spared
    price = f" ({evicted} pod{'s are' if evicted > 1 else ' is'} evicted for it)" if evicted else ""
    return f"{result.kept} of {of} fit{price}"


def _helps(found: Found, tasks: int) -> Helps:
    result = found.result
    return {
        "changes": [change.words for change in found.changes],
        "fit": result.kept,
        "alone": list(found.alone),
        "of": max(tasks, result.pods),
        "admitted": result.admitted,
        "evicted": -result.spared,
        "least": found.least,
    }
