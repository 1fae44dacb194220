"""What the workers have in common that carry decisions to the api: orders in small batches, carried out again after a
crash, outcomes brought back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, TypeVar

from pumice.actors.effects.outcomes import Outcomes
from pumice.actors.runtime.actor import Actor
from pumice.core.messages.message import Message
from pumice.core.messages.replies import Done

if TYPE_CHECKING:
    from typing import Unpack

    from pumice.actors.runtime.context import Context
    from pumice.actors.runtime.mailbox import Mailbox
    from pumice.actors.system.ports import ApiPort, CachePort, RecorderPort

M = TypeVar("M", bound=Message)


class EffectPorts(TypedDict):
    """Where such a worker sends; `timeout_s`: how long an answer of the api is waited for."""

    api: ApiPort
    cache: CachePort
    recorder: RecorderPort
    timeout_s: float


class EffectWorker(Actor[M, Done]):
    """Carries out orders of one kind."""

    cap = 8
    redeliver = True

    def __init__(self, name: str, mailbox: Mailbox[M, Done], context: Context, **ports: Unpack[EffectPorts]) -> None:
        super().__init__(name, mailbox, context)
        self._api = ports["api"]
        self._outcomes = Outcomes(ports["cache"], ports["recorder"])
        self._timeout_s = ports["timeout_s"]
