# SPDX-License-Identifier: Apache-2.0
"""Advice of `pumice explain`, tried in futures: what lets a job start beside the searches of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from pumice.cluster.api.bootstrap import assumed_queues
from pumice.cluster.kernel.life import Life
from pumice.cluster.kube.merge_patch import diff_patch, merge_patch
from pumice.core.objects.metadata import Object, section
from pumice.core.session.carry import Carry, CycleClock
from pumice.errors import InputError
from pumice.questions.explain.advice.advise import searched_on, with_pods
from pumice.questions.explain.advice.changes import Change, Identity, identity_of, in_words
from pumice.questions.explain.advice.trial import Bench
from pumice.questions.explain.scene import Scene, jobs_of
from pumice.questions.measures.amounts import allocatable_of
from pumice.questions.oneshot.cycles import fill
from pumice.questions.whatif.changes import ForkChange
from pumice.questions.whatif.naming import identity_in_full
from pumice.questions.whatif.search.defragment import StartAnswer, plans
from pumice.questions.whatif.search.searches import searched
from pumice.reduction import LeastSearch, Sizes
from pumice.work import CHANGE, WorkOverError

if TYPE_CHECKING:
    from pumice.cluster.kernel.fork import Fork
    from pumice.questions.explain.advice.search import AdviceSearch, Found
    from pumice.questions.whatif.search.starting import StartQuestion

PERIODS: Final = 3
"""Schedule periods that controllers get to make what the cluster needs immediately."""
MOST: Final = 5
"""The most answers, the best first."""
MADE: Final = ("Pod", "PodGroup")
"""Kinds that a change edits, and never makes: controllers do."""


def answered(question: StartQuestion, like: Sequence[str] = ()) -> Iterator[StartAnswer]:
    """Yield the answers of all searches. `like`: nodes whose likes may be added."""
    known = list[StartAnswer]()
    for answer in searched(question, like):
        known.append(answer)
        yield answer
    yield from advised(question, known)
    yield from plans(question)


def advised(question: StartQuestion, known: Sequence[StartAnswer] = ()) -> Iterator[StartAnswer]:
    """Yield answers of explain's search, as far as the job starts by them in time, without those that change what a
    `known` one changes.
    """
    fork = _settled(question)
    objects = list(fork.objects)
    view, clock = fill(objects, fork.in_flight), CycleClock(fork.cycle + 1, fork.now, question.seed)
    carry = Carry.from_dict(dict(fork.carry))
    scene = Scene(view, fork.config, clock, carry, objects=lambda: objects, in_flight=fork.in_flight)
    job = next(iter(jobs_of(view, "job", question.job) or jobs_of(view, "podgroup", question.job)), None)
    if job is None or view.jobs.by_key[job].spec is None:
        return
    bench = Bench.of(with_pods(scene, job) or scene, job, question.work)
    search, told = searched_on(bench, job), set[str]()
    if search is None:
        return
    known_ends = [_ended(question, answer, fork) for answer in known]
    for answer, end in _lived(question, fork, bench, search):
        if answer.changes[0] in told or end in known_ends:  # alike nodes may be named alike
            continue
        told.add(answer.changes[0])
        yield answer
        if len(told) == MOST:
            return


def _settled(question: StartQuestion) -> Fork:
    """Return the fork after the controllers' immediate work, which explain looks at."""
    fork, work = question.fork, question.work
    life = Life(fork, question.seed, lambda mutation, at: work.demand(CHANGE), lambda result, now: None)
    life.run(PERIODS * fork.config.pumice.schedule_period_s)
    return life.fork()


def _lived(
    question: StartQuestion, fork: Fork, bench: Bench, search: AdviceSearch
) -> Iterator[tuple[StartAnswer, Ended]]:
    """Yield an answer for each advice by which the job starts in time, with what it leads to."""

    def change_to(found: Found, sizes: Sizes) -> ForkChange:
        changes = found.of(sizes)
        return ForkChange(in_words(changes, [""] * len(changes)), _made(fork, bench, changes))

    def does(found: Found, sizes: Sizes) -> bool:
        return question.starts(change_to(found, sizes)) is not None

    for found in search.found:
        if not does(found, found.sizes):
            continue
        sizes, least = _least(found, partial(does, found))
        change = change_to(found, sizes)
        starts_s = question.starts(change)
        assert starts_s is not None
        yield (
            StartAnswer(
                "Change", len(found.of(sizes)), (question.job,), (change.words,), starts_s, least, search.tried
            ),
            _difference(fork.objects, change.on(fork)),
        )


def _least(found: Found, does: Callable[[Sizes], bool]) -> tuple[Sizes, bool]:
    """Return the smallest sizes that suffice in a future, where more time may pass than in the cycle that explain
    looked at; and whether one less of any was tried, and does not suffice.
    """
    search, lowest = LeastSearch(does, found.sizes), tuple(family.least for family in found.group)
    with suppress(WorkOverError):
        if search.one_less(lowest) is not None:
            for place, low in enumerate(lowest):
                search.halve(place, low)
            search.step_down(lowest)
        return search.best, found.least
    return search.best, False


def _made(settled: Fork, bench: Bench, changes: Sequence[Change]) -> Callable[[Fork], Fork]:
    """Return a function that makes the changes before the fork's first cycle, as `whatif --set` does: otherwise the job
    would start at another time there. Objects that controllers have still to make are changed in the `settled` fork,
    which is later.
    """
    edited = bench.edited(changes)
    patches = {who: diff_patch(bench.objects[who], obj) for who, obj in edited.items() if who in bench.objects}
    new = [obj for who, obj in edited.items() if who not in bench.objects]

    def on(fork: Fork) -> Fork:
        assumed = {identity_in_full(obj): obj for obj in assumed_queues(fork.objects)}
        given = [*fork.objects, *(obj for who, obj in assumed.items() if who in patches)]
        places = {identity_in_full(obj): place for place, obj in enumerate(given)}
        if patches.keys() <= places.keys() and not any(obj["kind"] in MADE for obj in new):
            for who, patch in patches.items():
                given[places[who]] = merge_patch(given[places[who]], patch)
            objects = [*given, *new]
        else:
            fork, objects = settled, [*{**bench.objects, **bench.after(changes)}.values()]
        config = fork.config
        for change in changes:
            config = change.config(config) if change.config is not None else config
        return replace(fork, objects=tuple(objects), config=config)

    return on


# --- Changes that are the same

Ended = tuple[object, dict[Identity, Object | None]]


def _ended(question: StartQuestion, answer: StartAnswer, settled: Fork) -> Ended | None:
    """Return what the answer's changes make of the fork; None where they cannot be made there."""
    fork = settled
    for change in question.made.get(answer.changes, ()):
        try:
            fork = change.on(fork)
        except InputError:
            return None
    return _difference(settled.objects, fork)


def _difference(before: Iterable[Object], after: Fork) -> Ended:
    """Return the configuration, and the objects that differ: None for one that is gone. Capabilities are compared as
    numbers, for 4 is 4000m.
    """
    old, new = ({identity_of(obj): obj for obj in objects} for objects in (before, after.objects))
    changed = {who: _numbered(obj) for who, obj in new.items() if obj is not old.get(who) and obj != old.get(who)}
    return after.config, {**dict.fromkeys(old.keys() - new.keys()), **changed}


def _numbered(obj: Object) -> Object:
    if obj["kind"] != "Queue":
        return obj
    spec = section(obj, "spec")
    return {**obj, "spec": {**spec, "capability": allocatable_of({"allocatable": section(spec, "capability")})}}
