"""What the supervisor is asked: to take an actor away, and how the process is doing."""

from __future__ import annotations

from msgspec import Struct

from pumice.core.messages.message import Message


class Restart(Message, frozen=True):
    """Take a hung actor away and put a new instance on its mailbox; one that has not been started yet is left alone.

    `injected`: it is a storm's doing, no bug.
    """

    actor: str
    injected: bool = False


class MeasureProcess(Message, frozen=True):
    """Reply: ProcessMeasured."""


SupervisorCommand = Restart | MeasureProcess


class MailboxStatistics(Struct, frozen=True, gc=False):
    """Counts of one mailbox; `high_water` is the largest number of envelopes that were ever found waiting."""

    name: str
    capacity: int
    queued: int
    sent: int
    received: int
    blocked_senders: int
    high_water: int
    closed: bool


class ProcessMeasured(Message, frozen=True):
    """Its mailboxes by name, and the request of which a step held the event loop longest: so many seconds."""

    mailboxes: tuple[MailboxStatistics, ...] = ()
    longest_s: float = 0.0
    longest_request: str = ""
