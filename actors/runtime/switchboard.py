"""The mailboxes of a system, given out by the table of links and by nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from actors.errors import WiringError
from actors.runtime.mailbox import Mailbox
from actors.system.links import LINKS, RANKS
from core.messages import commands, events, orders, replies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from actors.runtime.context import Context

ACCEPTS: dict[str, tuple[Any, Any]] = {
    "action-worker": (commands.ActionCommand, replies.ActionDone | replies.ActionFailed),
    "api-server": (commands.ApiRequest, replies.ApiReply),
    "bind-worker": (orders.BindWorkerCommand, replies.Done),
    "cache": (commands.CacheCommand | events.CacheEvent, replies.SnapshotTaken | replies.Assumed | replies.ViewChecked),
    "checkpointer": (commands.Poke, replies.Done),
    "config-watcher": (commands.Poke, replies.Done),
    "disruption-controller": (commands.Poke, replies.Done),
    "dry-run-worker": (commands.DryRunCommand, replies.Candidates | replies.DryRunFailed),
    "evict-worker": (orders.EvictWorkerCommand, replies.Done),
    "gateway": (commands.Poke, replies.Done),
    "job-controller": (commands.Poke, replies.Done),
    "metrics": (commands.MetricsCommand | events.MetricsEvent, replies.Exposition),
    "node-agents": (commands.Poke, replies.Done),
    "pod-events": (commands.Poke, replies.Done),
    "pod-group-controller": (commands.Poke, replies.Done),
    "pre-bind-worker": (orders.BindWorkerCommand, replies.Done),
    "queue-controller": (commands.Poke, replies.Done),
    "recorder": (commands.RecorderCommand, replies.Appended),
    "session-runner": (commands.RunnerCommand, replies.Done),
    "status-writer": (orders.StatusWriterCommand, replies.Done),
    "usage-collector": (commands.Poke, replies.Done),
    "volume-controller": (commands.Poke, replies.Done),
}
"""Role -> the closed union it accepts, and the one it answers with."""


class Switchboard:
    """One mailbox for each actor, receivers first. Several actors of one role are called `role:what`.

    `instances`: role -> what its actors are told apart by; a role that is not in it has one actor, called as the role.
    """

    def __init__(self, instances: Mapping[str, Sequence[str]], capacity: int, context: Context) -> None:
        own: dict[str, Any] = {"capacity": capacity, "activity": context.activity, "alarm": context.alarm()}
        self._of_role: dict[str, dict[str, Mailbox[Any, Any]]] = {}
        self.rank: dict[str, int] = {}
        for rank, roles in enumerate(RANKS):
            for role in roles:
                names = [f"{role}:{each}" for each in instances[role]] if role in instances else [role]
                self.rank.update(dict.fromkeys(names, rank))
                self._of_role[role] = {name: Mailbox(name, *ACCEPTS[role], **own) for name in names}
        self.mailboxes = {name: box for boxes in self._of_role.values() for name, box in boxes.items()}

    def all(self, sender: str, role: str) -> list[Any]:
        """The mailboxes of a role. Raises WiringError when the table has no link from the sender to it."""
        if role not in LINKS[role_of(sender)]:
            raise WiringError(f"{sender} is not to send to {role}: there is no such link in the table")
        return list(self._of_role[role].values())

    def one(self, sender: str, role: str) -> Any:
        """The mailbox of the only actor of a role."""
        (mailbox,) = self.all(sender, role)
        return mailbox


def role_of(name: str) -> str:
    """The role an actor's name begins with."""
    return name.partition(":")[0]
