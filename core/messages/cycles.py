"""What the session runner is asked, and what it answers."""

from __future__ import annotations

from pumice.core.messages.message import Message


class RunCycle(Message, frozen=True):
    """Run a cycle now, changed or not. Reply: Done after it."""


class OfferConfig(Message, frozen=True):
    """A configuration's text and where it stands: to be taken over before the next cycle, unless it is bad."""

    text: str
    source: str


class AwaitCycle(Message, frozen=True):
    """Reply: CyclesRun, once the cycle of this number has been run."""

    number: int = 0


class CyclesRun(Message, frozen=True):
    """The number of the newest cycle that has been carried out."""

    cycle: int


class TellQueues(Message, frozen=True):
    """Tell the metrics of the queues and cards as the newest session knew them. Reply: Done after it."""


RunnerCommand = RunCycle | OfferConfig | AwaitCycle | TellQueues
