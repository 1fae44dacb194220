"""The Job controller: pods and PodGroups from Volcano Jobs, their policies and retries, and their end.

Owns: what it has seen of Jobs and their pods (`actors.controllers.job_machine`), timers of policies and times to live.
Accepts: `Poke`.
Sends: asks the api.
When full and how it stops: see `actors.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.controllers.job_machine import JobMachine
from actors.reconciler import Reconciler

if TYPE_CHECKING:
    from actors.ports import ApiPort, Context, PokePort


class JobController(Reconciler):
    """See the module."""

    def __init__(self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort) -> None:
        super().__init__(name, mailbox, context, api=api, machines=(JobMachine(),))
