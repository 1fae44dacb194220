"""A question: a fork, two sets of changes, a horizon; and its answer."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

from pumice.cluster.kernel.fork import Fork
from pumice.core.messages.commands import RequestEviction
from pumice.errors import InputError
from pumice.questions.whatif.changes import ForkChange, changed
from pumice.questions.whatif.difference import FutureDifference, difference
from pumice.questions.whatif.future import Future
from pumice.questions.whatif.living import Advance, Witness, named


def ignored(seconds: float) -> None:
    """Nobody looks on."""
    del seconds


def what_if(
    fork: Fork,
    changes: Sequence[ForkChange],
    horizon_s: float,
    *,
    against: Sequence[ForkChange] = (),
    seed: int = 0,
    advance: Advance = ignored,
    executor: Executor | None = None,
) -> FutureDifference:
    """Both futures, from the fork with `against` and with `changes`, by the same seed to the same horizon; the first of
    them by the executor, where there is one.

    Raises InputError for a change that is impossible.
    """
    instead = changed(fork, against)
    if executor is None:
        before = lived(instead, _fresh(instead, fork), horizon_s, seed, advance)
        return difference(before, lived_with(fork, changes, horizon_s, seed, advance))
    other = executor.submit(lived, instead, _fresh(instead, fork), horizon_s, seed)
    after = lived_with(fork, changes, horizon_s, seed, advance)
    return difference(other.result(), after)


def lived_with(
    fork: Fork, changes: Sequence[ForkChange], horizon_s: float, seed: int = 0, advance: Advance = ignored
) -> Future:
    """The future with these changes. Raises InputError for what the api does not take of them."""
    other = changed(fork, changes)
    return lived(other, _fresh(other, fork), horizon_s, seed, advance)


def lived(fork: Fork, fresh: frozenset[int], horizon_s: float, seed: int = 0, advance: Advance = ignored) -> Future:
    """The future of a fork. Raises InputError where the api does not take its `fresh` objects, by their places."""
    witness = Witness(fork, horizon_s, seed)
    mine = {id(fork.objects[place]) for place in fresh}
    for obj, reply in witness.life.refused:
        if id(obj) in mine:
            raise InputError(f"the api refuses {named(obj)}: {reply.message}")
    for ask, reply in witness.life.denied:
        if not isinstance(ask, RequestEviction):  # which a budget may forbid
            raise InputError(f"the api refuses it: {reply.message}")
    return witness.live(advance)


def _fresh(fork: Fork, origin: Fork) -> frozenset[int]:
    """The places of what has come, or has become otherwise."""
    given = set(map(id, origin.objects))
    return frozenset(place for place, obj in enumerate(fork.objects) if id(obj) not in given)
