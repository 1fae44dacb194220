"""A workload with arrivals, lived through: what came of it, and moments of it as forks that know nothing later."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from pumice.cluster.kernel.life import Life
from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.questions.eta.runs import RunBook
from pumice.questions.oneshot.moment import BEGAN
from pumice.questions.whatif.sources import handed_in, with_deadline
from pumice.runtime.arrivals import arrival_at, arriving

if TYPE_CHECKING:
    from pumice.cluster.kernel.fork import Fork
    from pumice.core.messages.events import ConfigLoaded

FAR_S: Final = 10 * 365 * 86_400.0


@dataclass(slots=True)
class Rehearsal:
    """`book`: all that came; `moments`: forks without what comes after."""

    book: RunBook = field(default_factory=RunBook)
    moments: list[Fork] = field(default_factory=list["Fork"])


def to_rehearse(objects: Iterable[Object], told: ConfigLoaded, first: int | None, denser: float) -> Fork:
    """A fork in which objects come at their time, of those that do the `first` so many (None: all), `denser` times as
    soon after each other; they run as long as they say.
    """
    now: list[Object] = []
    later: list[tuple[float, Object]] = []
    for obj in objects:
        said = arriving(obj)
        at = None if said is None else arrival_at(said, BEGAN)
        if at is None:
            now.append(obj)
        else:
            later.append((max(at - BEGAN, 0.0), with_deadline(obj)))
    later.sort(key=lambda each: each[0])
    return replace(
        handed_in(now, BEGAN, told), later=tuple((after_s / denser, obj) for after_s, obj in islice(later, first))
    )


def rehearsed(fork: Fork, number: int, advance: Callable[[int], None] = lambda step: None) -> Rehearsal:
    """Live through a fork whose `later` jobs are all to come, and stop `number` times on the way: each time as many
    more of them have come. It ends when all that came has started, or nothing happens any more. Raises InputError
    where there are fewer arrivals than moments.
    """
    arrivals = sorted(after_s for after_s, _ in fork.later)
    if len(arrivals) < number + 1:
        raise InputError(f"{number} moments want {number + 1} arrivals at least, there are {len(arrivals)}")
    due = [arrivals[len(arrivals) * place // (number + 1)] for place in range(1, number + 1)]
    found, last = Rehearsal(), arrivals[-1]
    life = Life(fork, 0, found.book.note, lambda result, at: None)
    for elapsed in life.moments(FAR_S):
        while len(found.moments) < number and elapsed >= due[len(found.moments)]:
            found.moments.append(replace(life.fork(), later=()))
            advance(1)
        if elapsed >= last and len(found.book.started) >= len(found.book.asked):
            break
    return found
