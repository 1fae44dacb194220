"""SessionSteps of a session that stop at questions to processes outside, wherever in them these come up.

The core is plain functions; a question may come up deep inside one. So a step runs on a stack of its own (a greenlet),
which stops there and goes on with the answers: a coroutine, without a word about it in the core.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

import greenlet

from pumice.core.messages.questions import AskOutside
from pumice.core.outside import AskedOutside, Asking, nobody

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pumice.actors.system.ports import OutsidePort
    from pumice.core.messages.questions import OutsideAnswer, OutsideAnswers, OutsideQuestion
    from pumice.core.outside import Ask

T = TypeVar("T")


def stopping(cycle: int) -> Ask:
    """What a session asks with while its steps are `driven`."""

    def ask(questions: Sequence[OutsideQuestion]) -> Sequence[OutsideAnswer]:
        driver = greenlet.getcurrent().parent
        assert driver is not None, "a question outside of a step that is driven"
        return cast("Sequence[OutsideAnswer]", driver.switch(Asking(cycle, questions)))

    return ask


async def driven(step: Callable[[], T], ask: Callable[[Asking], Awaitable[Sequence[OutsideAnswer]]]) -> T:
    """Run the step to its end, asking what it stops at. Raises what it or `ask` raises."""
    stack = greenlet.greenlet(step)
    said: object = stack.switch()
    try:
        while not stack.dead:
            said = stack.switch(await ask(cast("Asking", said)))
    finally:
        if not stack.dead:  # nobody will go on with it
            stack.throw()
    return cast("T", said)


async def asked_of(outside: OutsidePort, asking: Asking) -> Sequence[OutsideAnswer]:
    """Have the extender's client ask."""
    return (await outside.ask(AskOutside(asking.cycle, tuple(asking.questions)))).answers


class SessionSteps:
    """The steps of one session: driven where there is somebody to ask (`outside`), else plainly called.

    `ask`: what the session is to ask with.
    """

    def __init__(self, outside: OutsidePort | None, cycle: int) -> None:
        self._outside = outside
        self.asking = outside is not None
        self.ask: Ask = nobody if outside is None else AskedOutside(stopping(cycle))

    async def run(self, step: Callable[[], T]) -> T:
        """One step to its end."""
        if self._outside is None:
            return step()
        return await driven(step, partial(asked_of, self._outside))

    def answers(self) -> OutsideAnswers | None:
        """What was said so far, for the record."""
        return self.ask.answers() if isinstance(self.ask, AskedOutside) else None
