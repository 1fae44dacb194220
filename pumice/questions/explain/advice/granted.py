"""What else it takes once objects that are named and not there are made: until then they hide the next refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pumice.questions.explain.advice.changes import Change, ChangeFamily, Group
from pumice.questions.explain.advice.deadline import TimeOverError
from pumice.questions.explain.advice.missing import about_claims, about_priority_classes, about_schedulers
from pumice.questions.explain.advice.search import AdviceSearch, Found
from pumice.questions.explain.advice.trial import Bench
from pumice.questions.explain.advice.unmade import with_pods

Candidates = Callable[[Bench], tuple[list[ChangeFamily], list[Group]]]


class Granted(NamedTuple):
    """All objects that are missing, `made`, and where things are tried then. `most`: the greatest size of any."""

    made: tuple[Change, ...]
    bench: Bench
    most: int


def search_on(bench: Bench, search: AdviceSearch, candidates: Candidates) -> None:
    """Where nothing of a search brings all pods of the job: what does beside all objects that are missing. They are
    made with the least that they may be worth, then with the most.
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
    """With one made, others may turn out to be missing: those that pods name which can only be made then."""
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
    """Adds what brings more of the job than anything before; and those objects alone where they bring all of it."""
    most = max([search.before.kept, *(one.result.kept for one in search.found)])
    further = AdviceSearch(granted.bench, granted.bench.attempt())
    alone = Found((), further.before, least=True)
    if not _brings_all([*search.found, alone]):
        further.run(*candidates(granted.bench))
    found = [each for each in (alone, *further.found) if each.result.kept > most or _brings_all([each])]
    search.add([_whole(bench, one, granted.made) for one in found], further)


def _whole(bench: Bench, found: Found, made: Sequence[Change]) -> Found:
    """With those of the objects that were made before without which it does not come as far."""
    changes = (*made, *found.changes)
    try:
        for change in made:
            rest = tuple(each for each in changes if each is not change)
            if _can_be_tried(bench, rest) and bench.attempt(*rest)[:3] >= found.result[:3]:
                changes = rest
        return replace(found, changes=changes, alone=_alone(bench, changes))
    except TimeOverError:
        return replace(found, changes=changes, least=False, alone=())


def _alone(bench: Bench, changes: Sequence[Change]) -> tuple[int, ...]:
    """How far each change comes by itself: 0 for one that edits pods that only other changes make."""
    if len(changes) < 2:
        return ()
    return tuple(bench.attempt(each).kept if _can_be_tried(bench, [each]) else 0 for each in changes)


def _can_be_tried(bench: Bench, changes: Sequence[Change]) -> bool:
    return all(edit.who in bench.objects for each in changes for edit in each.edits if edit.who[0] == "Pod")
