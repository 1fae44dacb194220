# SPDX-License-Identifier: Apache-2.0
"""Pulls of watchers: answered immediately when there is news for them, and held until then.

One that is held is answered again and again, each time from where the last answer ended: as soon as there is news and
the watcher has taken that answer. A watcher asks anew only when news came before it was ready.

A change is encoded once, for the journal and for however many pull it.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct

from pumice.actors.errors import ActorFailedError
from pumice.core.messages.commands import Pulled
from pumice.core.messages.replies import ApiReply
from pumice.storage import codec
from pumice.storage.shared_objects import BoundedTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from pumice.actors.runtime.envelope import Received
    from pumice.cluster.api.watch import ChangeLog
    from pumice.core.messages.commands import Pull
    from pumice.core.messages.events import Mutation

ENCODED: Final = 4096
"""Number of encoded changes that are remembered."""
ENCODED_BYTES: Final = 16 << 20
_REVISION: Final = attrgetter("revision")


class HeldPull(Struct):
    """A watcher that has seen everything up to revision `since`."""

    pull: Pull
    slot: Received[Pull, ApiReply]
    since: int


class Pulls:
    """Held pulls: at most one for each watcher.

    `gathers`: what is in an answer is read when the watcher takes it, so that news of one turn come together.
    """

    def __init__(self, name: str, log: ChangeLog, *, gathers: bool = False) -> None:
        self._name = name
        self._log = log
        self._gathers = gathers
        self._held: dict[str, HeldPull] = {}
        self._encoded = BoundedTable[int, bytes](ENCODED, ENCODED_BYTES, lambda revision, encoded: len(encoded))

    def encoded(self, changes: Sequence[Mutation], payloads: Sequence[bytes]) -> None:
        """Take the encoded form of changes before they are published; the bytes are the journal's."""
        for change, payload in zip(changes, payloads, strict=True):
            self._encoded.put(change.revision, payload)

    def take(self, slot: Received[Pull, ApiReply]) -> None:
        """Answer the watchers that wait for these kinds or parts of them."""
        pull = slot.message
        earlier = self._held.pop(pull.watcher, None)
        if earlier is not None:  # its asker does not wait any more
            earlier.slot.reply(Pulled(earlier.since))
        waiting = HeldPull(pull, slot, pull.since)
        if pull.held:
            self._held[pull.watcher] = waiting
        if not pull.held or self._log.head(pull.kinds) > pull.since:
            self._tell(waiting)

    def published(self, changed: AbstractSet[str]) -> None:
        """Answer the watchers that wait for these kinds or parts of them: there is news."""
        # A copy: an answer that fails takes its pull out of the table.
        for waiting in list(self._held.values()):
            # A watcher that has not taken its last answer yet gets this news with the next one.
            if waiting.slot.waits and not changed.isdisjoint(waiting.pull.kinds or changed):
                self._tell(waiting)

    def give_up(self, error: str, *, stopped: bool) -> None:
        """Fail the held pulls, which will get no other answer."""
        held, self._held = self._held, {}
        for waiting in held.values():
            waiting.slot.fail(self._name, error, stopped=stopped)

    def _tell(self, waiting: HeldPull) -> None:
        if self._gathers:
            waiting.slot.promise(partial(self._answer, waiting))
        else:
            self._answer(waiting)

    def _answer(self, waiting: HeldPull) -> None:
        pull = waiting.pull
        try:
            found = self._log.read(waiting.since, pull.kinds, pull.limit)
        except ActorFailedError as error:
            self._held.pop(pull.watcher, None)
            waiting.slot.fail(self._name, error.error)
            return
        waiting.since = found.revision
        revisions = tuple(map(_REVISION, found.events))
        frames = tuple(map(self._encoded.get, revisions))
        if None in frames:  # from before this server, or forgotten
            both = zip(frames, found.events, strict=True)
            frames = tuple([frame or codec.encode(event) for frame, event in both])
        waiting.slot.reply(Pulled(found.revision, revisions, cast("tuple[bytes, ...]", frames), found.gone, found.more))
