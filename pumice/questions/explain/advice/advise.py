"""Advice for what waits: candidates out of the trail, tried, and told in words with how far each helps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import gcd
from typing import TYPE_CHECKING

from pumice.questions.explain.advice.admission import about_overcommit
from pumice.questions.explain.advice.changes import ChangeFamily, Group, in_words
from pumice.questions.explain.advice.deadline import TimeOverError, budget
from pumice.questions.explain.advice.granted import search_on
from pumice.questions.explain.advice.groups import WaitingGroup, about_group, about_misplaced, amounts_in
from pumice.questions.explain.advice.limits import about_limits, joint_limits
from pumice.questions.explain.advice.missing import about_claims, about_priority_classes, about_schedulers
from pumice.questions.explain.advice.more_nodes import about_more_nodes
from pumice.questions.explain.advice.nodes import NodeRefusals, about_nodes, against_each
from pumice.questions.explain.advice.room import more_room
from pumice.questions.explain.advice.search import AdviceSearch, Found
from pumice.questions.explain.advice.topology import about_topology
from pumice.questions.explain.advice.trial import WAITING, Bench, TrialResult
from pumice.questions.explain.advice.unmade import REMARK, with_pods
from pumice.questions.explain.advice.victims import about_victims
from pumice.questions.explain.scene import Scene, jobs_of
from pumice.questions.oneshot.supposing import unasked
from pumice.work import OBJECT, of_cycle

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task


@dataclass(frozen=True, slots=True)
class Advice:
    """Sentences, the best first; `remark`: why there are none, or not all. `data`: the same to compute with.
    `supposed`: what was not asked of processes outside.
    """

    sentences: list[str] = field(default_factory=list[str])
    remark: str = ""
    data: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    supposed: list[str] = field(default_factory=list[str])


def advise(scene: Scene, kind: str, name: str, seconds: float) -> Advice:
    """What brings the job of that pod, or of that name, further. An empty one for what is nobody's or waits not.
    `seconds`: as work (see `pumice.work`), what it took to get there included.
    """
    job = next(iter(jobs_of(scene.view, kind, name)), None)
    if job is None or scene.view.jobs.by_key[job].spec is None:
        return Advice()
    grown = with_pods(scene, job)
    scene = grown or scene
    tasks = len(scene.view.jobs.by_key[job].tasks)
    try:
        spent = budget(seconds)
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
    """None for a job that needs no help. Raises TimeOverError when it could not even begin."""
    tasks = len(bench.view.jobs.by_key[job].tasks)
    before = bench.attempt()
    if (tasks and before.kept >= tasks) or (not tasks and before.admitted and not _lacks_pods(bench)):
        return None
    search = AdviceSearch(bench, before)
    families, joint = candidates(bench)
    search.run(families, joint)
    search_on(bench, search, candidates)
    _add_nodes(bench, search)
    if any(one.result.kept for one in search.found):  # to be admitted only is no news then
        search.found = [one for one in search.found if one.result.kept]
    return search


def _add_nodes(bench: Bench, search: AdviceSearch) -> None:
    """More nodes, after all else: they help nearly always, and say nothing of what is wrong."""
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
    """All that might bring the job further, out of what refused its pods that wait, and out of its objects; and what of
    it may be needed together.
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
    """Of what all that pods and PodGroups ask for is a multiple, by resource."""
    view, grain = bench.view, dict.fromkeys(names, 0)
    asked = [*{task.template.number: task.template.request for task in view.tasks.by_key.values()}.values()]
    groups = (job.pod_group for job in view.jobs.by_key.values() if job.spec is not None)
    asked += [group.min_resources for group in groups if group.min_resources is not None]
    for request in asked:
        for name, value in amounts_in(request).items():
            if name in grain:
                grain[name] = gcd(grain[name], round(value))
    return grain


# --- words


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
    return Advice(sentences, remark, [_plain(found, tasks) for found in helpful])


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


def _plain(found: Found, tasks: int) -> dict[str, object]:
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
