# SPDX-License-Identifier: Apache-2.0
"""The questions of a cycle to processes outside, and the answers.

The core asks no process itself: a session receives a function that asks, or that remembers. Questions name the pods
they are about, so that the same question has the same digest where only the scheduler's view of a pod is at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from pumice.core.messages.questions import AskedPod, OutsideAnswer, OutsideAnswers, OutsideQuestion
from pumice.core.objects.metadata import Object

SIZE: Final = 8
"""Bytes of a question's digest."""
HOLE: Final = b"\0"
"""Around the number of a pod in a question; JSON has no such byte."""
NOT_RECORDED: Final = OutsideAnswer(error="this was not asked when the cycle was recorded")
NOT_ASKED: Final = OutsideAnswer(error="no process outside is asked here")
SUPPOSED: Final = OutsideAnswer(error="it was not asked, and is supposed to agree")
"""Where something is only tried: who is not asked has no objection and no wish."""

Ask = Callable[[Sequence[OutsideQuestion]], Sequence[OutsideAnswer]]
"""Asks all of them, in any order or concurrently; the answers in the order of the questions."""


class WholePod:
    """A placeholder in the body of a question for all that the api has of a pod."""

    __slots__ = ("pod",)

    def __init__(self, pod: AskedPod) -> None:
        self.pod = pod


class Asking(NamedTuple):
    """Questions of a cycle, as the cycle's driver sees them."""

    cycle: int
    questions: Sequence[OutsideQuestion]


def question(url: str, body: Object, timeout_s: float) -> OutsideQuestion:
    """Return a POST of that body."""
    pods: dict[AskedPod, int] = {}

    def leave_out(whole: object) -> msgspec.Raw:
        assert isinstance(whole, WholePod)
        return msgspec.Raw(HOLE + b"%d" % pods.setdefault(whole.pod, len(pods)) + HOLE)

    content = msgspec.json.encode(body, enc_hook=leave_out)
    return OutsideQuestion(url, content, tuple(pods), timeout_s)


def filled(question: OutsideQuestion, pods: Sequence[bytes]) -> bytes:
    """Return the body, with each of its pods as JSON."""
    parts = question.body.split(HOLE)
    parts[1::2] = [pods[int(number)] for number in parts[1::2]]
    return b"".join(parts)


def ask_nothing(questions: Sequence[OutsideQuestion]) -> Sequence[OutsideAnswer]:
    """Answer that no process can be asked."""
    return [NOT_ASKED] * len(questions)


def digest_of(question: OutsideQuestion) -> bytes:
    """Return what tells one question from another."""
    return blake2b(msgspec.msgpack.encode(question), digest_size=SIZE).digest()


class AskedOutside:
    """An asker that remembers the answers for the record of the cycle."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._questions: list[bytes] = []
        self._which: list[int] = []
        self._distinct: dict[OutsideAnswer, int] = {}

    def __call__(self, questions: Sequence[OutsideQuestion]) -> Sequence[OutsideAnswer]:
        """Return the answers."""
        answers = self._ask(questions)
        self._questions += map(digest_of, questions)
        self._which += [self._distinct.setdefault(answer, len(self._distinct)) for answer in answers]
        return answers

    def answers(self) -> OutsideAnswers | None:
        """Return all answers so far; None when no process was asked."""
        if not self._questions:
            return None
        return OutsideAnswers(b"".join(self._questions), tuple(self._which), tuple(self._distinct))


class Recorded:
    """The recorded answers, without asking any process: an equal question gets its answers one after the other, and the
    last one from then on. `in_order`: an unknown question gets the answer at its place, since the same cycle asks in
    the same order and an older version may have worded it differently.
    """

    def __init__(self, answers: OutsideAnswers | None, *, in_order: bool = False) -> None:
        self._asked = 0
        self._left: dict[bytes, list[OutsideAnswer]] = {}
        known = answers or OutsideAnswers()
        # `pop` takes from the end, so that reversed answers come out in the recorded order.
        for place, which in reversed(list(enumerate(known.which))):
            digest = known.questions[place * SIZE : (place + 1) * SIZE]
            self._left.setdefault(digest, []).append(known.distinct[which])
        self._in_order = [known.distinct[which] for which in known.which] if in_order else []

    def __call__(self, questions: Sequence[OutsideQuestion]) -> Sequence[OutsideAnswer]:
        """Return the answers; NOT_RECORDED where a question has none."""
        return list(map(self._one, questions))

    def _one(self, asked: OutsideQuestion) -> OutsideAnswer:
        place, self._asked = self._asked, self._asked + 1
        left = self._left.get(digest_of(asked))
        if left is None:
            return self._in_order[place] if place < len(self._in_order) else NOT_RECORDED
        return left.pop() if len(left) > 1 else left[0]


class Supposing:
    """Answers for trials, without asking any process: an equal question gets the recorded answers, any other SUPPOSED.
    `unasked`: questions of the second kind.
    """

    def __init__(self, answers: OutsideAnswers | None = None) -> None:
        self._recorded = Recorded(answers)
        self.unasked = 0

    def __call__(self, questions: Sequence[OutsideQuestion]) -> Sequence[OutsideAnswer]:
        """Return the answers."""
        found = [SUPPOSED if answer is NOT_RECORDED else answer for answer in self._recorded(questions)]
        self.unasked += sum(answer is SUPPOSED for answer in found)
        return found
