"""A change is encoded once for the journal and all who watch."""

from __future__ import annotations

import pytest
from msgspec import Struct

from pumice.actors.api_server import pulls
from pumice.actors.api_server.pulls import Pulls
from pumice.actors.runtime.envelope import Answer, Received
from pumice.cluster.api.watch import RevisionLog
from pumice.core.messages.commands import Pull, Pulled
from pumice.core.messages.events import Mutation
from pumice.core.messages.replies import ApiReply, Failed
from pumice.storage import codec


def pulled(asked: Pulls, since: int) -> Pulled:
    slot = Answer(1)
    asked.take(Received[Pull, ApiReply](Pull("me", since), b"", slot, 0))
    slot.redeem()
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
    assert again == [*changes[:2], *changes[6:]], "the older half was gone"


def test_encoded_changes_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulls, "ENCODED_BYTES", 500)
    log = RevisionLog()
    asked = Pulls("api-server", log)
    held: list[int] = []
    for revision in range(1, 40):
        change = Mutation(revision, "MODIFIED", "ConfigMap", "default", "large", bytes(10 * revision))
        payload = codec.encode(change)
        log.append(change, frozenset({"ConfigMap"}))
        asked.encoded([change], [payload])
        held.append(sum(map(len, vars(asked)["_encoded"].values())))
    assert max(held) <= 500
    log.publish(39)
    assert [codec.decode(bytes(frame), Mutation).revision for frame in pulled(asked, 30).events] == [*range(31, 40)]


def test_an_answer_holds_what_came_until_it_was_taken() -> None:
    log = RevisionLog()
    asked = Pulls("api-server", log, gathers=True)
    slot = Answer(1)
    asked.take(Received[Pull, ApiReply](Pull("me", 0), b"", slot, 0))
    for revision in (1, 2):
        log.append(Mutation(revision, "ADDED", "Pod", "default", f"p{revision}", b"x"), frozenset({"Pod"}))
        asked.published(log.publish(revision))
    slot.redeem()
    assert codec.decode(slot.frames[0], Pulled).revisions == (1, 2)


def test_a_promise_that_nobody_can_keep_any_more_is_a_failure() -> None:
    log = RevisionLog()
    asked = Pulls("api-server", log, gathers=True)
    slot = Answer(1)
    asked.take(Received[Pull, ApiReply](Pull("me", 0), b"", slot, 0))
    log.append(Mutation(1, "ADDED", "Pod", "default", "p1", b"x"), frozenset({"Pod"}))
    asked.published(log.publish(1))
    asked.give_up("crashed", stopped=False)
    slot.redeem()
    assert codec.decode(slot.frames[0], Failed).error == "crashed"
    assert slot.over
