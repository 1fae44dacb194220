"""No cycle of blocking sends, and nobody gets a mailbox that the table does not give him."""

from __future__ import annotations

import pytest

from actors.errors import WiringError
from actors.runtime.clock import RealClock
from actors.runtime.context import Context
from actors.runtime.switchboard import ACCEPTS, Switchboard
from actors.system.links import LINKS, ranks


def test_the_table_has_no_cycle_and_receivers_come_first() -> None:
    rank = {role: number for number, roles in enumerate(ranks(LINKS)) for role in roles}
    assert sorted(rank) == sorted(LINKS)
    assert max(rank.values()) + 1 < len(LINKS) / 3, "most of them stop together"
    for sender, receivers in LINKS.items():
        for receiver in receivers:
            assert rank[receiver] < rank[sender], f"{receiver} must be there before {sender}, and after it"


@pytest.mark.parametrize("receiver", sorted(LINKS))
def test_any_link_back_would_be_found(receiver: str) -> None:
    """Close each path once: what the recorder, the api or the cache sends to one of its senders is refused."""
    for sender in [name for name, receivers in LINKS.items() if receiver in receivers]:
        links = {**LINKS, receiver: (*LINKS[receiver], sender)}
        with pytest.raises(WiringError, match=f"cycle.*{sender}"):
            ranks(links)


def test_a_name_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(WiringError, match="nobody"):
        ranks({"a": ("nobody",)})


def test_every_role_has_its_unions() -> None:
    assert sorted(ACCEPTS) == sorted(LINKS)


def test_a_mailbox_outside_the_table_is_not_handed_out() -> None:
    board = Switchboard({"bind-worker": ["0", "1"]}, 4, Context(RealClock()))
    try:
        assert [box.name for box in board.all("session-runner", "bind-worker")] == ["bind-worker:0", "bind-worker:1"]
        assert board.one("bind-worker:1", "cache").name == "cache"
        with pytest.raises(WiringError, match="cache is not to send to session-runner"):
            board.one("cache", "session-runner")
    finally:
        for mailbox in board.mailboxes.values():
            mailbox.abort()
