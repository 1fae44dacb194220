"""The advice of `pumice explain`, tried in futures: changes of the job, its topology, its pods, nodes and queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry, CycleClock
from pumice.questions.explain.advice.advise import searched_on
from pumice.questions.explain.advice.changes import Change, Identity, in_words
from pumice.questions.explain.advice.trial import Bench
from pumice.questions.explain.advice.unmade import with_pods
from pumice.questions.explain.scene import Scene, jobs_of
from pumice.questions.oneshot.cycles import fill
from pumice.questions.whatif.changes import ForkChange
from pumice.questions.whatif.search.defragment import StartAnswer
from pumice.questions.whatif.search.starting import StartQuestion
from pumice.work import CHANGE

PERIODS: Final = 3
"""Schedule periods that controllers get to make what the cluster needs at once."""
MOST: Final = 5
"""The most answers, the best first."""


def advised(question: StartQuestion) -> Iterator[StartAnswer]:
    """Answers of the search that explain has, as far as the job starts by them in time."""
    fork = _settled(question)
    objects = list(fork.objects)
    view, clock = fill(objects, fork.in_flight), CycleClock(fork.cycle + 1, fork.now, question.seed)
    carry = Carry.from_dict(dict(fork.carry))
    scene = Scene(view, fork.config, clock, carry, objects=lambda: objects, in_flight=fork.in_flight)
    job = next(iter(jobs_of(view, "job", question.job) or jobs_of(view, "podgroup", question.job)), None)
    if job is None or view.jobs.by_key[job].spec is None:
        return
    bench = Bench.of(with_pods(scene, job) or scene, job, question.work)
    search, told = searched_on(bench, job), 0
    if search is None:
        return
    for found in search.found:
        words = in_words(found.changes, [""] * len(found.changes))
        starts_s = question.starts(ForkChange(words, _made(fork, bench, found.changes)))
        if starts_s is not None:
            told += 1
            yield StartAnswer("Change", len(found.changes), (question.job,), (words,), starts_s, False, search.tried)
        if told == MOST:
            return


def _settled(question: StartQuestion) -> Fork:
    """The fork as it is when controllers have made what they make at once: what explain looks at."""
    fork, work = question.fork, question.work
    life = Life(fork, question.seed, lambda mutation, at: work.demand(CHANGE), lambda result, now: None)
    life.run(PERIODS * fork.config.pumice.schedule_period_s)
    return life.fork()


def _made(settled: Fork, bench: Bench, changes: Sequence[Change]) -> Callable[[Fork], Fork]:
    after = bench.after(changes)

    def on(fork: Fork) -> Fork:
        del fork  # it is lived through from where explain looked at it
        objects: dict[Identity, Object] = {**bench.objects, **after}
        config = settled.config
        for change in changes:
            config = change.config(config) if change.config is not None else config
        return replace(settled, objects=tuple(objects.values()), config=config)

    return on
