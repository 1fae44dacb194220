# SPDX-License-Identifier: Apache-2.0
"""Machines that share one reading of the store's log: each sees all changes and is asked in turn, round after round.

Their host reads the log, sends their requests and keeps the time: `pumice.cluster.kernel.machine_host` at
once, `pumice.actors.runtime.reconciler` by messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pumice.core.objects.parts import kind_of

if TYPE_CHECKING:
    from pumice.cluster.machine import Machine
    from pumice.core.messages.commands import ApiRequest
    from pumice.core.messages.events import Mutation
    from pumice.core.messages.replies import ApiReply
    from pumice.core.objects.metadata import Object

AGAIN_MOST: Final = 1000
"""Rounds of asking that one piece of news may lead to; more means a machine that never rests."""


class Turns:
    """The machines of a group in turn. `kinds`: those that they watch together. `endless`: the last rounds were given
    up.
    """

    def __init__(self, machines: Sequence[Machine]) -> None:
        self.machines = tuple(machines)
        self.kinds = tuple(dict.fromkeys(kind for machine in machines for kind in machine.kinds))
        watching = [(machine, frozenset(map(kind_of, machine.kinds))) for machine in machines]
        self._interested = {
            kind: [machine for machine, kinds in watching if kind in kinds] for kind in map(kind_of, self.kinds)
        }
        self._now = 0.0
        self._asking: tuple[Machine, Sequence[ApiRequest]] | None = None
        self.endless = False

    @property
    def whole_kinds(self) -> Iterable[str]:
        """Return the kinds that are watched, at least in part."""
        return self._interested

    def tell(self, events: Sequence[Mutation], unpack: Callable[[bytes], Object], since: int = -1) -> None:
        """Show changes; of a relisted object that is not newer than `since` only deletions are shown."""
        for event in events:
            deleted = event.type == "DELETED"
            if event.revision > since or deleted:
                self.observe(event.kind, unpack(event.blob), event.revision, deleted=deleted)

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Tell of one object."""
        # One decoded object for all: none of them may change it.
        for machine in self._interested[kind]:
            machine.observe(kind, obj, revision, deleted=deleted)

    def rounds(self, now: float, most: int = AGAIN_MOST) -> Iterator[Sequence[ApiRequest]]:
        """Yield the machines' requests until none has any; the caller must pass the answers to `answered` before the
        next round.

        In a round each asks once. Those that did have another: the others have heard nothing since.
        """
        self._now, self.endless = now, False
        asking: Sequence[Machine] = self.machines
        for _ in range(most):
            asked: list[Machine] = []
            for machine in asking:
                if requests := machine.step(self._now):
                    # The host answers while this generator waits at `yield`, and `answered` moves the time on for the
                    # next machine.
                    self._asking = machine, requests
                    yield requests
                    asked.append(machine)
            if not asked:
                return
            asking = asked
        self.endless = True

    def answered(self, replies: Sequence[ApiReply], now: float) -> None:
        """Take the answers to the requests that have come out last."""
        assert self._asking is not None, "there is something to answer"
        machine, requests = self._asking
        self._now, self._asking = now, None
        for request, reply in zip(requests, replies, strict=True):
            machine.answered(request, reply, now)

    def next_due(self) -> float | None:
        """Return when one of them has work without any change; None for never."""
        earliest = None
        for machine in self.machines:
            due = machine.next_due()
            if due is not None and (earliest is None or due < earliest):
                earliest = due
        return earliest

    def running_timers(self) -> int:
        """Return the number of running timers that an idle run must have waited for."""
        return sum([machine.running_timers() for machine in self.machines])
