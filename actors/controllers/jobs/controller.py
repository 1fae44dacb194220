"""The Job controller: pods and PodGroups from Volcano Jobs, their policies and retries, and their end.

Owns: what it has seen of Jobs and their pods (`actors.controllers.jobs.machine`), timers of policies and times to live.
Accepts: `Poke`.
Sends: asks the api.
When full and how it stops: see `actors.runtime.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.controllers.jobs.machine import JobMachine
from actors.runtime.reconciler import Reconciler

if TYPE_CHECKING:
    from actors.runtime.context import Context
    from actors.system.ports import ApiPort, PokePort


class JobController(Reconciler):
    """See the module."""

    def __init__(self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort) -> None:
        super().__init__(name, mailbox, context, api=api, machines=(JobMachine(context.objects.unpack),))
