"""A step that stops at a question to somebody outside."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pumice.actors.errors import ActorFailedError
from pumice.actors.scheduling.core_decider import driven, stopping
from pumice.core.messages.questions import OutsideAnswer, OutsideQuestion
from pumice.core.outside import Asking

pytestmark = pytest.mark.anyio
CYCLE = 7
QUESTION = OutsideQuestion("http://localhost/filter", b"{}")
ANSWER = OutsideAnswer(200, b"[]")


async def test_a_step_goes_on_with_the_answers_to_what_it_asks() -> None:
    asked: list[Asking] = []

    async def answer(asking: Asking) -> Sequence[OutsideAnswer]:
        asked.append(asking)
        return [ANSWER] * len(asking.questions)

    ask = stopping(CYCLE)
    assert await driven(lambda: [*ask([QUESTION]), *ask([QUESTION] * 2)], answer) == [ANSWER] * 3
    assert asked == [(CYCLE, [QUESTION]), (CYCLE, [QUESTION] * 2)]


async def test_a_step_whose_question_nobody_answers_has_ended_when_that_is_said() -> None:
    """What it holds is given back, though whoever looks into the error still sees where it was asked."""
    ended: list[int] = []
    ask = stopping(CYCLE)

    def step() -> None:
        try:
            ask([QUESTION])
        finally:
            ended.append(CYCLE)

    async def fail(_: Asking) -> Sequence[OutsideAnswer]:
        raise ActorFailedError("outside", "planted")

    with pytest.raises(ActorFailedError) as failed:
        await driven(step, fail)
    assert ended == [CYCLE], failed.traceback
