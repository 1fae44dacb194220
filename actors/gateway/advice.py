"""Questions that take long, answered by a process of their own: so many at a time, for as long as somebody waits.

The gateway knows what may be asked; the adviser that it is given knows the answers. The serving loop only waits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, NamedTuple

from pumice.actors.gateway.problems import ApiError, internal, too_many, unavailable
from pumice.actors.gateway.workers import AnswererDiedError, Workers
from pumice.core.messages.replies import Refused

GROUP: Final = "pumice.dev"
VERSION: Final = "v1"
BUSY_S: Final = 2
"""Seconds after which somebody who was turned away may try again."""


class AdviserQuestion(NamedTuple):
    """What was asked: the parts of the path, the query, and the body of a POST."""

    resource: str
    namespace: str = ""
    name: str = ""
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class AdviserAnswer(NamedTuple):
    """`body`: JSON, when the `code` is 200; else `reason` and `message` say why there is none."""

    code: int
    body: bytes = b""
    reason: str = ""
    message: str = ""


Adviser = Callable[[AdviserQuestion], AdviserAnswer]
"""A function that a process of its own can be handed; it must be found by its name."""


class AdviceKind(NamedTuple):
    """One resource of the group. `of_all`: it may be asked without a name; `of_one`: with one."""

    plural: str
    kind: str
    namespaced: bool = False
    of_all: bool = False
    of_one: bool = False
    verb: str = "get"


KINDS: Final = {
    row.plural: row
    for row in (
        AdviceKind("boards", "Board", of_one=True),
        AdviceKind("configurations", "Configuration", of_all=True),
        AdviceKind("courses", "Course", of_all=True),
        AdviceKind("cycles", "DecidedCycle", of_one=True),
        AdviceKind("estimates", "Estimate", namespaced=True, of_all=True, of_one=True),
        AdviceKind("explanations", "Explanation", namespaced=True, of_one=True),
        AdviceKind("measures", "Measures", of_all=True),
        AdviceKind("standings", "Standing", of_all=True, of_one=True),
        AdviceKind("stories", "Story", namespaced=True, of_one=True),
        AdviceKind("waitclasses", "WaitClasses", of_all=True),
        AdviceKind("whatifs", "WhatIf", of_all=True, verb="create"),
    )
}


class AdviceDesk:
    """`limit` questions at a time, none longer than `patience_s`. A question whose asker is cancelled counts until its
    process has ended with it, or has answered after all.
    """

    def __init__(self, adviser: Adviser | None, limit: int, patience_s: float) -> None:
        self._adviser, self._limit, self._patience_s = adviser, limit, patience_s
        self._asked = 0

    @functools.cached_property
    def workers(self) -> Workers:
        """Within an event loop only: one more than are taken, for what the desk asks by itself."""
        return Workers(self._limit + 1, self._patience_s)

    async def keep(self) -> None:
        """Keep the processes that answer, until cancelled."""
        await self.workers.keep()

    async def ask(self, question: AdviserQuestion) -> AdviserAnswer:
        """The adviser's answer. Raises ApiError: 429 when as many are being answered as may be, 503 when there is no
        adviser or it takes too long, 500 when its process died.
        """
        with self._one_more():
            return await self.look(question)

    async def look(self, question: AdviserQuestion) -> AdviserAnswer:
        """`ask` without the limit: for the one question that the desk itself has."""
        if self._adviser is None:
            raise unavailable("nobody here answers such questions")
        try:
            return await self.workers.run(self._adviser, question)
        except TimeoutError:
            raise unavailable(f"no answer within {self._patience_s:g} s") from None
        except AnswererDiedError as error:
            raise internal("the process that was to answer has died") from error

    @contextmanager
    def _one_more(self) -> Generator[None]:
        if self._asked >= self._limit:
            raise too_many(f"too many questions: {self._limit} are being answered", BUSY_S)
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1


def refusal(answer: AdviserAnswer) -> ApiError:
    """What the adviser says instead of an answer."""
    return ApiError(Refused(answer.code, answer.reason, answer.message))
