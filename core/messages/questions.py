"""The questions of a cycle to processes outside, the answers, and how the cycle's record keeps both."""

from __future__ import annotations

from msgspec import Struct

from pumice.core.messages.message import Message


class AskedPod(Struct, frozen=True, gc=False, array_like=True):
    """A pod that a question holds as the api has it; `node`: where the cycle has put it, "" for nowhere."""

    namespace: str
    name: str
    uid: str
    node: str = ""


class OutsideQuestion(Struct, frozen=True, gc=False):
    """A POST of JSON to `url`. In `body`, `pods` are left out: the asker that has them writes them in where their
    numbers stand between zero bytes. `timeout_s`: 0.0 for no limit.
    """

    url: str
    body: bytes
    pods: tuple[AskedPod, ...] = ()
    timeout_s: float = 0.0


class OutsideAnswer(Struct, frozen=True, gc=False, array_like=True, omit_defaults=True):
    """The HTTP status and the body; or `error`: in words, why there is none of these."""

    code: int = 0
    body: bytes = b""
    error: str = ""


class OutsideAnswers(Struct, frozen=True, gc=False, omit_defaults=True):
    """All that a cycle was answered, in the order in which it asked.

    `questions`: the digest of each, 8 bytes one after the other; `which`: of each, the place of its answer in
    `distinct`. Most answers are alike.
    """

    questions: bytes = b""
    which: tuple[int, ...] = ()
    distinct: tuple[OutsideAnswer, ...] = ()


class AskOutside(Message, frozen=True):
    """Ask all of these, some at a time; `cycle` is that for which they are asked. Reply: OutsideAnswered."""

    cycle: int
    questions: tuple[OutsideQuestion, ...]


class OutsideAnswered(Message, frozen=True):
    """The answers, in the order of the questions."""

    answers: tuple[OutsideAnswer, ...]
