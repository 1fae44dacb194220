"""A change is encoded once for the journal and all who watch."""

from __future__ import annotations

import pytest
from msgspec import Struct

from actors.api import pulls
from actors.api.pulls import Pulls
from actors.api.watch import RevisionLog
from actors.runtime.envelope import Answer, Received
from core.messages.events import Mutation
from core.messages.replies import ApiReply
from core.messages.watch import Pull, Pulled
from storage import codec


class Slot(Answer):
    """Takes one answer, which nobody waits for."""

    def __init__(self) -> None:
        self.frames = [b""]

    def fill(self, index: int, frame: bytes) -> None:
        self.frames[index] = frame


def pulled(asked: Pulls, since: int) -> Pulled:
    slot = Slot()
    asked.take(Received[Pull, ApiReply](Pull("me", since), b"", slot, 0))
    return codec.decode(slot.frames[0], Pulled)


def test_what_the_journal_got_is_what_is_pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulls, "ENCODED", 4)
    log = RevisionLog()
    asked = Pulls("api-server", log)
    changes = [Mutation(revision, "ADDED", "Pod", "default", f"p{revision}", b"x") for revision in range(1, 9)]
    for each in changes:
        log.append(each, frozenset({"Pod"}))
    log.publish(8)
    asked.encoded(changes[:6], [codec.encode(each) for each in changes[:6]])
    again: list[Mutation] = []

    def encode(message: Struct) -> bytes:
        if isinstance(message, Mutation):
            again.append(message)
        return codec.encode_many([message])[0]

    monkeypatch.setattr(codec, "encode", encode)
    found = pulled(asked, 0)
    assert [codec.decode(bytes(frame), Mutation) for frame in found.events] == changes
    assert again == [*changes[:4], *changes[6:]], "the older were gone"
