"""A question: a fork, two sets of changes, a horizon; and its answer."""

from __future__ import annotations

from collections.abc import Sequence

from core.messages.commands import RequestEviction
from pumice.errors import InputError
from pumice.whatif.changes import ForkChange, changed
from pumice.whatif.difference import FutureDifference, difference
from pumice.whatif.future import Future
from pumice.whatif.living import Advance, Witness, named
from pumice.whatif.state import Fork


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
) -> FutureDifference:
    """Both futures, from the fork with `against` and with `changes`, by the same seed to the same horizon.

    Raises InputError for a change that is impossible.
    """
    before, after = (lived_with(fork, each, horizon_s, seed, advance) for each in (against, changes))
    return difference(before, after)


def lived_with(
    fork: Fork, changes: Sequence[ForkChange], horizon_s: float, seed: int = 0, advance: Advance = ignored
) -> Future:
    """The future with these changes. Raises InputError for what the api does not take of them."""
    witness = Witness(changed(fork, changes), horizon_s, seed)
    given = set(map(id, fork.objects))
    for obj, reply in witness.life.refused:
        if id(obj) not in given:
            raise InputError(f"the api refuses {named(obj)}: {reply.message}")
    for ask, reply in witness.life.denied:
        if not isinstance(ask, RequestEviction):  # which a budget may forbid
            raise InputError(f"the api refuses it: {reply.message}")
    return witness.live(advance)
