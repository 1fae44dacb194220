# SPDX-License-Identifier: Apache-2.0
"""The mailboxes of a system, and the order in which their actors start and stop: it follows from the sends.

Sends that wait for room (tell and ask) make no cycle, so no actor waits for ever on a full mailbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from pumice.actors.errors import WiringError
from pumice.actors.runtime.mailbox import Mailbox

if TYPE_CHECKING:
    from pumice.actors.runtime.actor import Context

Links = Mapping[str, Sequence[str]]
"""Role -> the roles it sends to."""


def ranks(links: Links) -> list[list[str]]:
    """Return receivers before senders: those of one rank send to lower ranks only, and not to each other; by name.

    Raises WiringError for a cycle or an unknown name.
    """
    for sender, receivers in links.items():
        for receiver in receivers:
            # the sorter would take an unknown receiver for one more node, and never complain
            if receiver not in links:
                raise WiringError(f"{sender} sends to {receiver!r}, which is not a role")
    sorter = TopologicalSorter(links)
    try:
        sorter.prepare()
    except CycleError as error:
        raise WiringError(f"a cycle of blocking sends: {' -> '.join(reversed(error.args[1]))}") from error
    found: list[list[str]] = []
    while sorter.is_active():
        # by name: the order does not depend on how the links are written down
        ready = sorted(sorter.get_ready())
        found.append(ready)
        sorter.done(*ready)
    return found


class Switchboard:
    """One mailbox for each actor, receivers first.

    `names`: role -> the names of its actors. `unions`: role -> what it accepts and what it answers. `rank`: by role.
    Raises WiringError for a cycle in the links.
    """

    def __init__(
        self,
        links: Links,
        names: Mapping[str, Sequence[str]],
        unions: Mapping[str, tuple[Any, Any]],
        capacity: int,
        context: Context,
    ) -> None:
        own: dict[str, Any] = {"capacity": capacity, "activity": context.activity, "alarm": context.alarm()}
        self.rank = {role: rank for rank, roles in enumerate(ranks(links)) for role in roles}
        self.role = {name: role for role in self.rank for name in names[role]}
        self.mailboxes: dict[str, Mailbox[Any, Any]] = {
            name: Mailbox(name, *unions[role], **own) for name, role in self.role.items()
        }
        self._of_role = {role: tuple(self.mailboxes[name] for name in names[role]) for role in self.rank}

    def all(self, role: str) -> list[Mailbox[Any, Any]]:
        """Return the mailboxes of a role."""
        return [*self._of_role.get(role, ())]

    def one(self, role: str) -> Mailbox[Any, Any] | None:
        """Return the mailbox of the only actor of a role; None in a system without it."""
        return next(iter(self.all(role)), None)
