"""What stands before every server of ours, be it of a run or of a journal: who may come in, and who is asked what takes
long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from pumice.actors.gateway.advice import AdviceDesk
from pumice.actors.gateway.security import Doorkeeper
from pumice.actors.gateway.settings import GatewaySettings
from pumice.actors.gateway.streams import Open
from pumice.actors.runtime.longest import Longest


@dataclass(kw_only=True)
class Front:
    """`open`: the requests that are being answered; `longest`: which of them held the event loop longest."""

    settings: GatewaySettings
    longest: Longest = field(default_factory=Longest)
    open: Open = field(default_factory=Open)

    @cached_property
    def desk(self) -> AdviceDesk:
        """Where questions are asked that take long."""
        return AdviceDesk(self.settings.adviser, self.settings.question_limit, self.settings.question_s)

    @cached_property
    def door(self) -> Doorkeeper:
        """Who may come in."""
        return Doorkeeper(self.settings.token, self.settings.address[0])
