# SPDX-License-Identifier: Apache-2.0
"""An action worker: it runs one action on the session that it gets. There is one for each action.

Owns: nothing but the baton while it holds it.
Accepts: `RunAction`, which names a session by its handle; answers `ActionDone` or `ActionFailed`.
Sends: nothing; the worker of an action that stops at dry runs asks the dry-run workers; where processes outside have
a say, it asks the extender client.
When full: never; there is one baton.
Stops: after the action in hand. When the action raises, the answer says so, the worker crashes and is started again:
that costs the cycle, never the process.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pumice.actors.runtime.actor import Actor
from pumice.actors.scheduling.core_decider import asked_of, driven
from pumice.core.messages.commands import RunAction
from pumice.core.messages.replies import ActionDone, ActionFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actors.dry_run.pool import DryRunDriver
    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.envelope import Received
    from pumice.actors.scheduling.decider import Decider
    from pumice.actors.system.ports import ActionPort, OutsidePort
    from pumice.cluster.handles import HandleTable
    from pumice.core.session.session import Session

ActionReply = ActionDone | ActionFailed


class ActionWorker(Actor[RunAction, ActionReply]):
    """Runs one action. `stopwatch` gives seconds, for the metrics only."""

    def __init__(
        self,
        name: str,
        mailbox: ActionPort,
        context: Context,
        *,
        sessions: HandleTable[Session],
        decider: Decider,
        dry_runs: DryRunDriver,
        outside: OutsidePort,
        stopwatch: Callable[[], float],
    ) -> None:
        super().__init__(name, mailbox, context)
        self._sessions = sessions
        self._decider = decider
        self._dry_runs = dry_runs
        self._outside = outside
        self._stopwatch = stopwatch

    def delivers_inline(self, message: RunAction) -> bool:
        """Return True for any action without outside questions."""
        return not message.asking and message.action not in self._decider.stepped

    async def handle_batch(self, batch: Sequence[Received[RunAction, ActionReply]]) -> None:
        """Run it, hand the baton back."""
        for item in self.each(batch):
            began = self._stopwatch()
            order = item.message
            # a runner that gives a session up drops its handle; the order may still be queued here
            if order.session not in self._sessions:
                item.reply(ActionFailed(order.session, order.action, "the session's last holder has crashed"))
                continue
            try:
                await self._run(self._sessions.get(order.session), order)
            except Exception as error:
                # the answer before the crash: the runner must not wait for a restart
                item.reply(ActionFailed(order.session, order.action, repr(error)))
                raise
            item.reply(ActionDone(order.session, order.action, self._stopwatch() - began))

    async def _run(self, session: Session, order: RunAction) -> None:
        steps = self._decider.stepped.get(order.action)
        if order.asking:  # in one piece: dry runs may ask, too
            decide = partial(self._decider.run_action, session, order.action)
            await driven(decide, partial(asked_of, self._outside))
        elif steps is None:
            self._decider.run_action(session, order.action)
        else:
            await self._dry_runs.drive(steps(session))
