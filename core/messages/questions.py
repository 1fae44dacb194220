# SPDX-License-Identifier: Apache-2.0
"""The questions of a cycle to processes outside, the answers, and their form in the cycle's record."""

from __future__ import annotations

from msgspec import Struct

from pumice.core.messages.message import Message


# As arrays: the names of the fields would be longer than most values, and a question may list all pods of a node.
class AskedPod(Struct, frozen=True, gc=False, array_like=True):
    """A pod in a question, as the api has it; `node`: where the cycle has put it, "" for nowhere."""

    namespace: str
    name: str
    uid: str
    node: str = ""


class OutsideQuestion(Struct, frozen=True, gc=False):
    """A POST of JSON to `url`. `body` leaves out the `pods`: the asker that has them writes them where their numbers
    stand between zero bytes. `timeout_s`: 0.0 for no limit.
    """

    url: str
    body: bytes
    pods: tuple[AskedPod, ...] = ()
    timeout_s: float = 0.0


class OutsideAnswer(Struct, frozen=True, gc=False, array_like=True, omit_defaults=True):
    """The HTTP status and the body; or `error`: a sentence why there is neither."""

    code: int = 0
    body: bytes = b""
    error: str = ""


class OutsideAnswers(Struct, frozen=True, gc=False, omit_defaults=True):
    """All answers of a cycle, in the order of its questions.

    `questions`: the digest of each, 8 bytes one after the other; `which`: of each, the place of its answer in
    `distinct`. Most answers are alike.
    """

    # 8 bytes of a digest each: a replay only compares them, and the questions would fill the record.
    questions: bytes = b""
    which: tuple[int, ...] = ()
    distinct: tuple[OutsideAnswer, ...] = ()


class AskOutside(Message, frozen=True):
    """Ask all of these, some at a time, for the cycle `cycle`. Reply: OutsideAnswered."""

    cycle: int
    questions: tuple[OutsideQuestion, ...]


class OutsideAnswered(Message, frozen=True):
    """The answers, in the order of the questions."""

    answers: tuple[OutsideAnswer, ...]
