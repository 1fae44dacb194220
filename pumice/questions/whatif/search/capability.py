"""The least capability of a queue that lets a job start.

First all resources are raised together, by what a pod asks for each time; then each alone is lowered again, as far as
the job still starts. What pods hold are sums of what they ask for, so it is enough to try the multiples of the greatest
amount that divides all of it; the next smaller amount that there is (1m of cpu, one byte, one piece) is tried as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil, gcd
from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import Object, section
from pumice.questions.replay.amounts import Amount, allocatable_of, request_of
from pumice.questions.whatif.belongings import asked_by, belongings
from pumice.questions.whatif.changes import ForkChange
from pumice.questions.whatif.search.least import least
from pumice.questions.whatif.search.start_answer import StartAnswer

if TYPE_CHECKING:
    from pumice.cluster.kernel.fork import Fork
    from pumice.questions.whatif.search.starting import StartQuestion

Units = dict[str, int]
MOST_STEPS: Final = 256
MOST_MULTIPLES: Final = 1 << 20


def least_capability(question: StartQuestion, queue: str, limits: Object, step: Amount) -> Iterator[StartAnswer]:
    """`limits`: the queue's capability; `step`: what one of its pods asks for, of the resources that are limited."""
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
    """Amounts in `limits` and in values are whole units: thousandths of cpu, bytes, pieces."""

    def __init__(self, question: StartQuestion, queue: str, limits: Object, now: Units) -> None:
        self._question, self._queue, self._limits, self._now = question, queue, limits, now
        self._grid = _dividing(question.fork)
        self.tried = 0

    def raised(self, step: Mapping[str, int], count: int) -> Units:
        """All at once."""
        return {key: self._now.get(key, 0) + count * more for key, more in step.items()}

    def does(self, values: Units) -> bool:
        """Whether the job starts with them."""
        self.tried += 1
        return self._question.starts(self.change(values)) is not None

    def lowered(self, values: Units, key: str) -> tuple[Units, bool]:
        """With the least of one resource, the others as they are; whether all that is smaller was tried."""
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
            best, every = self._between(others, key, low, best - 1), False
        return {**others, key: best}, every

    def _between(self, others: Units, key: str, low: int, high: int) -> int:
        """`low` does not do, `high` does."""
        while high - low > 1 and not self._question.spent():
            middle = (low + high) // 2
            low, high = (low, middle) if self.does({**others, key: middle}) else (middle, high)
        return high

    def change(self, values: Units) -> ForkChange:
        """The queue may have so much."""
        higher = {key: f"{value}m" if key == "cpu" else str(value) for key, value in sorted(values.items())}
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
    """By resource, the greatest amount of which all requests are multiples."""
    requests = [request_of(section(obj, "spec")) for obj in fork.objects if obj["kind"] == "Pod"]
    requests += [each for one in belongings(fork.objects).values() for each in asked_by(fork, one)]
    found: Units = {}
    for request in requests:
        for key, value in _units(request).items():
            found[key] = gcd(found.get(key, 0), value)
    return found
