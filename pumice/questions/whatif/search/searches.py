"""What would let a job start: nodes, capability, priority, or fewer running jobs; each the least that was found to do,
and each found by living through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, islice
from typing import Any, Final

from pumice.cluster.kernel.fork import Fork
from pumice.core.objects.metadata import Object, section
from pumice.questions.whatif.belongings import Belongings, asked_by, belongings, running
from pumice.questions.whatif.changes import ForkChange, nodes_like
from pumice.questions.whatif.search.capability import least_capability
from pumice.questions.whatif.search.least import least
from pumice.questions.whatif.search.start_answer import StartAnswer
from pumice.questions.whatif.search.starting import StartQuestion

MOST_NODES: Final = 64
MOST_SORTS: Final = 3
CHOICES: Final = 300
"""So many choices of running jobs of one size are tried; of more only those that come first."""
CLASS: Final = "whatif"


def searched(question: StartQuestion, like: Sequence[str] = ()) -> Iterator[StartAnswer]:
    """The answers, one search after the other."""
    yield from more_nodes(question, like)
    yield from more_capability(question)
    yield from higher_priority(question)
    yield from fewer_jobs(question)


def _answer(
    question: StartQuestion, code: str, amount: int, of: Sequence[str], change: ForkChange, *, least: bool, tried: int
) -> StartAnswer:
    starts_s = question.starts(change)
    assert starts_s is not None
    return StartAnswer(code, amount, tuple(of), (change.words,), starts_s, least, tried)


def _least_of(
    question: StartQuestion, code: str, of: Sequence[str], make: Callable[[int], ForkChange], most: int
) -> Iterator[StartAnswer]:
    found = least(
        lambda amount: question.starts(make(amount)) is not None,
        most,
        question.spent,
        lambda amounts: question.ahead(map(make, amounts)),
    )
    if found is not None:
        change = make(found.amount)
        yield _answer(question, code, found.amount, of, change, least=found.least, tried=len(found.tried))


# --- nodes


def more_nodes(question: StartQuestion, like: Sequence[str] = ()) -> Iterator[StartAnswer]:
    """The least number of nodes like one; of each sort there is, unless some are named."""
    for name in like or sorts(question.fork):
        yield from _least_of(question, "Nodes", (name,), partial(nodes_like, name), MOST_NODES)


def sorts(fork: Fork) -> list[str]:
    """The first node of each sort: amounts and taints."""
    seen: dict[str, str] = {}
    for obj in fork.objects:
        if obj["kind"] == "Node":
            amounts: Any = section(obj, "status").get("allocatable")
            taints: Any = section(obj, "spec").get("taints") or []
            seen.setdefault(repr((amounts, taints)), obj["metadata"]["name"])
    return list(seen.values())[:MOST_SORTS]


# --- capability


def more_capability(question: StartQuestion) -> Iterator[StartAnswer]:
    """The least capability of its queue."""
    one = _own(question)
    name, asked = one.queue, asked_by(question.fork, one)
    queue = next(
        (obj for obj in question.fork.objects if obj["kind"] == "Queue" and obj["metadata"]["name"] == name), None
    )
    limits: Object = section(section(queue, "spec"), "capability") if queue else {}
    step = {key: max(each.get(key, 0.0) for each in asked) for key in limits} if asked else {}
    if any(step.values()):
        yield from least_capability(question, name, limits, step)


# --- priority


def higher_priority(question: StartQuestion) -> Iterator[StartAnswer]:
    """The lowest priority: one more than some other job's, from the lowest on, until one does."""
    own = _priority(question, question.job)
    others = {_priority(question, job) for job in belongings(question.fork.objects) if job != question.job}
    values = sorted(other + 1 for other in others if other >= own)
    question.ahead(_prioritised(_own(question), value) for value in values)
    for tried, value in enumerate(values, 1):
        if question.spent():
            return
        change = _prioritised(_own(question), value)
        if question.starts(change) is not None:
            yield _answer(question, "Priority", value, (question.job,), change, least=True, tried=tried)
            return


def _priority(question: StartQuestion, job: str) -> int:
    objects, one = question.fork.objects, belongings(question.fork.objects)[job]
    classes = {obj["metadata"]["name"]: int(obj.get("value") or 0) for obj in objects if obj["kind"] == "PriorityClass"}
    named = [section(objects[place], "spec").get("priorityClassName") for place in one.places]
    return max((classes.get(name, 0) for name in named if name), default=0)


def _prioritised(one: Belongings, value: int) -> ForkChange:
    def on(fork: Fork) -> Fork:
        objects = list(fork.objects)
        for place in one.places:
            spec = {**objects[place]["spec"], "priorityClassName": CLASS}
            if objects[place]["kind"] == "Pod":
                spec["priority"] = value
            objects[place] = {**objects[place], "spec": spec}
        made = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": CLASS},
            "value": value,
        }
        return replace(fork, objects=(*objects, made))

    return ForkChange(f"a PriorityClass of value {value} for it", on)


# --- running jobs


def fewer_jobs(question: StartQuestion) -> Iterator[StartAnswer]:
    """The fewest running jobs that must end: every choice of one, of two … while those are not too many; beyond, a set
    of which none can be left out.
    """
    objects = question.fork.objects
    jobs = {name: one for name, one in belongings(objects).items() if name != question.job and running(objects, one)}
    names = sorted(jobs, key=lambda name: (len(running(objects, jobs[name])), name))
    if not names or question.starts(_ended(jobs, names)) is None:
        return
    tried, every = 1, True
    for size in range(1, len(names)):
        question.ahead(_ended(jobs, chosen) for chosen in islice(combinations(names, size), CHOICES))
        for chosen in islice(combinations(names, size), CHOICES):
            tried += 1
            if question.spent():
                break
            if question.starts(_ended(jobs, chosen)) is not None:
                yield _answer(question, "FewerJobs", size, chosen, _ended(jobs, chosen), least=every, tried=tried)
                return
        if question.spent() or _choices(len(names), size) > CHOICES:
            every = False
            break
    left, more = _without_spare(question, jobs, names)
    change = _ended(jobs, left)
    yield _answer(question, "FewerJobs", len(left), left, change, least=every, tried=tried + more)


def _choices(count: int, size: int) -> int:
    found = 1
    for step in range(size):
        found = found * (count - step) // (step + 1)
    return found


def _without_spare(question: StartQuestion, jobs: dict[str, Belongings], names: Sequence[str]) -> tuple[list[str], int]:
    """Those that are left when each was left out with which it starts as well; the greatest are left out last."""
    left, tried = list(names), 0
    for name in names:
        fewer = [other for other in left if other != name]
        tried += 1
        if fewer and question.starts(_ended(jobs, fewer)) is not None:
            left = fewer
    return left, tried


def _ended(jobs: dict[str, Belongings], names: Sequence[str]) -> ForkChange:
    gone = {place for name in names for place in jobs[name].places}

    def on(fork: Fork) -> Fork:
        return replace(fork, objects=tuple(obj for place, obj in enumerate(fork.objects) if place not in gone))

    return ForkChange(f"{', '.join(names)} ended", on)


def _own(question: StartQuestion) -> Belongings:
    return belongings(question.fork.objects).get(question.job, Belongings())
