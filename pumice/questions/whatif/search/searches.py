# SPDX-License-Identifier: Apache-2.0
"""Searches for changes that let a job start: nodes, capability, priority, or fewer running jobs.

Each is the least that was found to do, and each is found by living through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, islice
from math import ceil, gcd
from typing import Any, Final

from pumice.cluster.kernel.fork import Fork
from pumice.core.objects.metadata import Object, section
from pumice.questions.measures.amounts import Amount, allocatable_of, request_of
from pumice.questions.whatif.changes import ForkChange, nodes_like
from pumice.questions.whatif.naming import Belongings, asked_by, belongings, running
from pumice.questions.whatif.search.defragment import StartAnswer
from pumice.questions.whatif.search.starting import StartQuestion
from pumice.reduction import LeastSearch
from pumice.units import milli
from pumice.work import WorkOverError

# --- The least amount
# Scheduling is not monotone: more may be worse than less, so an amount is only called the least where everything
# smaller was tried and failed; otherwise one less was tried.

ONE_BY_ONE: Final = 8
"""Up to so much everything is tried, from one on."""


@dataclass(frozen=True, slots=True)
class LeastAmount:
    """The smallest amount: `amount` suffices and one less does not; `least`: nor does anything smaller. `tried`: all
    tried amounts.
    """

    amount: int
    least: bool
    tried: tuple[int, ...]


def least(
    does: Callable[[int], bool],
    most: int,
    spent: Callable[[], bool] = lambda: False,
    ahead: Callable[[Iterable[int]], None] = lambda amounts: None,
) -> LeastAmount | None:
    """Search 1 … `most` for the smallest amount: one by one at first, then doubling, then halving, and down while one
    less suffices. `ahead` receives the values that will be tried unless an earlier one suffices.

    None: nothing that was tried does. When the work is over in the middle of a try, what was found by then counts.
    Raises WorkOverError when that was nothing.
    """
    tried: dict[int, bool] = {}

    def tries(amount: int) -> bool:
        if amount not in tried:
            tried[amount] = does(amount)
        return tried[amount]

    every_small = range(1, min(ONE_BY_ONE, most) + 1)
    with suppress(WorkOverError):
        ahead(every_small)
        found = next((amount for amount in every_small if not spent() and tries(amount)), None)
        low, high = every_small.stop - 1, min(2 * ONE_BY_ONE, most)
        if found is None:
            ahead(min(high * 2**step, most) for step in range(most.bit_length()))
        while found is None and high > low and not spent():
            if tries(high):
                found = high
            else:
                low, high = high, min(2 * high, most)
        if found is None:
            return None
        search = LeastSearch(lambda sizes: tries(*sizes), (found,), spent)
        search.halve(0, low + 1)
        search.step_down((1,))
    best = min((amount for amount, did in tried.items() if did), default=None)
    if best is None:
        raise WorkOverError
    return LeastAmount(best, all(amount in tried for amount in range(1, best)), tuple(sorted(tried)))


# --- The least capability
# First all resources are raised together, by what a pod asks for each time; then each alone is lowered again, as far
# as the job still starts. What pods hold are sums of what they ask for, so it is enough to try the multiples of the
# greatest amount that divides all of it; the next smaller amount that there is (1m of cpu, one byte, one piece) is
# tried as well.

Units = dict[str, int]
MOST_STEPS: Final = 256
MOST_MULTIPLES: Final = 1 << 20


def least_capability(question: StartQuestion, queue: str, limits: Object, step: Amount) -> Iterator[StartAnswer]:
    """Yield the smallest capability. `limits`: the queue's capability; `step`: the request of one of its pods, of the
    limited resources.
    """
    search = _Lowering(question, queue, limits, _units(allocatable_of({"allocatable": limits})))
    steps = {key: value for key, value in _units(step).items() if value}
    found = least(
        lambda count: search.does(search.raised(steps, count)),
        MOST_STEPS,
        question.spent,
        lambda counts: question.ahead(search.change(search.raised(steps, count)) for count in counts),
    )
    if found is None:
        return
    values, every = search.raised(steps, found.amount), True
    for key in sorted(values):
        values, all_smaller = search.lowered(values, key)
        every = every and all_smaller
    change = search.change(values)
    starts_s = question.starts(change)
    if starts_s is not None:
        alone = every and len(values) == 1
        yield StartAnswer("Capability", len(values), (queue,), (change.words,), starts_s, alone, search.tried)


class _Lowering:
    """Lowers amounts in `limits` and in values, which are whole units: thousandths of cpu, bytes, pieces."""

    def __init__(self, question: StartQuestion, queue: str, limits: Object, now: Units) -> None:
        self._question, self._queue, self._limits, self._now = question, queue, limits, now
        self._grid = _dividing(question.fork)
        self.tried = 0

    def raised(self, step: Mapping[str, int], count: int) -> Units:
        """Return all limits, each raised by `count` steps."""
        return {key: self._now.get(key, 0) + count * more for key, more in step.items()}

    def does(self, values: Units) -> bool:
        """Return whether the job starts with these values."""
        self.tried += 1
        return self._question.starts(self.change(values)) is not None

    def lowered(self, values: Units, key: str) -> tuple[Units, bool]:
        """Return lower one resource to its least, the others as they are; return whether all smaller values
        were tried.
        """
        others = {name: value for name, value in values.items() if name != key}
        if others and self.does(others):
            return others, True
        grid, high, now = max(self._grid.get(key, 1), 1), values[key], self._now.get(key, 0)
        first = now // grid

        def at(multiple: int) -> int:
            return min((first + multiple) * grid, high)

        most = min(max(ceil(high / grid) - first, 1), MOST_MULTIPLES)
        found = least(lambda multiple: self.does({**others, key: at(multiple)}), most, self._question.spent)
        if found is None:
            return values, False
        best, every = at(found.amount), found.least
        low = max(at(found.amount - 1) if found.amount > 1 else now, now)
        if best - 1 > low and not self._question.spent() and self.does({**others, key: best - 1}):
            search = LeastSearch(lambda sizes: self.does({**others, key: sizes[0]}), (best - 1,), self._question.spent)
            search.halve(0, low + 1)
            best, every = search.best[0], False
        return {**others, key: best}, every

    def change(self, values: Units) -> ForkChange:
        """Return the change to this capability."""
        higher = {key: milli(value) if key == "cpu" else str(value) for key, value in sorted(values.items())}
        queue, capability = self._queue, {**self._limits, **higher}

        def changed(obj: Object) -> Object:
            if obj["kind"] != "Queue" or obj["metadata"].get("name") != queue:
                return obj
            return {**obj, "spec": {**section(obj, "spec"), "capability": capability}}

        told = " ".join(f"--set 'queue/{queue}:spec.capability[\"{key}\"]={value}'" for key, value in higher.items())
        return ForkChange(told, lambda fork: replace(fork, objects=tuple(map(changed, fork.objects))))


def _units(amounts: Mapping[str, float]) -> Units:
    return {key: round(value * 1000) if key == "cpu" else round(value) for key, value in amounts.items()}


def _dividing(fork: Fork) -> Units:
    """Return by resource the greatest amount that divides all requests."""
    requests = [request_of(section(obj, "spec")) for obj in fork.objects if obj["kind"] == "Pod"]
    requests += [each for one in belongings(fork.objects).values() for each in asked_by(fork, one)]
    found: Units = {}
    for request in requests:
        for key, value in _units(request).items():
            found[key] = gcd(found.get(key, 0), value)
    return found


MOST_NODES: Final = 64
MOST_SORTS: Final = 3
CHOICES: Final = 300
"""Number of choices of running jobs of one size that are tried; of more only those that come first."""
CLASS: Final = "whatif"


def searched(question: StartQuestion, like: Sequence[str] = ()) -> Iterator[StartAnswer]:
    """Yield the answers, one search after the other."""
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


# --- Nodes


def more_nodes(question: StartQuestion, like: Sequence[str] = ()) -> Iterator[StartAnswer]:
    """Yield the smallest number of nodes like an existing one, of each sort, unless some are named."""
    for name in like or sorts(question.fork):
        yield from _least_of(question, "Nodes", (name,), partial(nodes_like, name), MOST_NODES)


def sorts(fork: Fork) -> list[str]:
    """Return the first node of each sort: amounts and taints."""
    seen: dict[str, str] = {}
    for obj in fork.objects:
        if obj["kind"] == "Node":
            amounts: Any = section(obj, "status").get("allocatable")
            taints: Any = section(obj, "spec").get("taints") or []
            seen.setdefault(repr((amounts, taints)), obj["metadata"]["name"])
    return list(seen.values())[:MOST_SORTS]


# --- Capability


def more_capability(question: StartQuestion) -> Iterator[StartAnswer]:
    """Yield the least capability of its queue."""
    one = _own(question)
    name, asked = one.queue, asked_by(question.fork, one)
    queue = next(
        (obj for obj in question.fork.objects if obj["kind"] == "Queue" and obj["metadata"]["name"] == name), None
    )
    limits: Object = section(section(queue, "spec"), "capability") if queue else {}
    step = {key: max(each.get(key, 0.0) for each in asked) for key in limits} if asked else {}
    if any(step.values()):
        yield from least_capability(question, name, limits, step)


# --- Priority


def higher_priority(question: StartQuestion) -> Iterator[StartAnswer]:
    """Yield the lowest priority: one more than some other job's, from the lowest on, until one does."""
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
    objects = question.fork.objects
    one = belongings(objects).get(job, Belongings())  # it may come later
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


# --- Running jobs


def fewer_jobs(question: StartQuestion) -> Iterator[StartAnswer]:
    """Yield the fewest running jobs that must end: every choice of one, of two … while those are not too many; beyond,
    a set from which none can be left out.
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
    """Return the remaining jobs after leaving out each with which it starts as well; the greatest are left out last."""
    left, tried = list(names), 0
    for name in names:
        fewer = [other for other in left if other != name]
        tried += 1
        if fewer and question.starts(_ended(jobs, fewer)) is not None:
            left = fewer
    return left, tried


def _ended(jobs: dict[str, Belongings], names: Sequence[str]) -> ForkChange:
    gone = {place for name in names for place in jobs[name].places}
    return ForkChange(f"{', '.join(names)} ended", lambda fork: fork.without(gone))


def _own(question: StartQuestion) -> Belongings:
    return belongings(question.fork.objects).get(question.job, Belongings())
