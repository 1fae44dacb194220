"""Roles: no cycle of blocking sends, and nobody gets a mailbox that his record does not give him."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from pumice.actors.errors import WiringError
from pumice.actors.gateway.settings import GatewaySettings
from pumice.actors.real_clusters.mirror.settings import MirrorSettings
from pumice.actors.real_clusters.scheduled.settings import ClusterSettings
from pumice.actors.runtime.clock import RealClock
from pumice.actors.runtime.switchboard import ranks
from pumice.actors.system.roles import LINKS, ROLES
from pumice.actors.system.settings import SystemSettings, mirrored, scheduling_there
from pumice.actors.system.system import System
from pumice.config.kubeconfig import ClusterAccess
from pumice.storage.memory import MemoryJournal

GATEWAY = GatewaySettings(socket.socket.__new__(socket.socket))
"""Of a gateway that never listens."""
SCHEDULING_THERE = scheduling_there(ClusterSettings(ClusterAccess("http://cluster")), SystemSettings())
MIRRORED = mirrored(MirrorSettings(ClusterAccess("http://cluster")), SystemSettings())


def test_the_table_has_no_cycle_and_receivers_come_first() -> None:
    rank = {role: number for number, roles in enumerate(ranks(LINKS)) for role in roles}
    assert sorted(rank) == sorted(LINKS)
    assert max(rank.values()) < len(LINKS) / 3, "most of them stop together"
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


def test_roles_are_told_apart() -> None:
    assert len({role.name for role in ROLES}) == len(ROLES)


def one_or_many(port: Any) -> list[Any]:
    return list(port) if hasattr(port, "__iter__") else [port]


def test_an_actor_is_handed_the_mailboxes_of_its_row_and_no_others() -> None:
    settings = SystemSettings(bind_workers=2, gateway=GATEWAY)
    system = System(settings, MemoryJournal(), RealClock())
    try:
        of_role = {role.name: system.switchboard.all(role.name) for role in ROLES}
        for name, role in system.switchboard.role.items():
            ports = system.ports(name)
            boxes = [box for port in ports.values() for box in one_or_many(port) if box is not None]
            assert {box.name for box in boxes} == {box.name for receiver in LINKS[role] for box in of_role[receiver]}
        assert [box.name for box in system.ports("session-runner")["binders"]] == ["bind-worker:0", "bind-worker:1"]
        assert system.ports("bind-worker:1")["cache"].name == "cache"
        assert "session_runner" not in system.ports("cache")
    finally:
        for mailbox in system.switchboard.mailboxes.values():
            mailbox.abort()


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        (
            SystemSettings(),
            {"arrivals", "cluster-api", "config-watcher", "gateway", "mirror", "pod-events", "usage-collector"},
        ),
        (
            SystemSettings(scheduler=False, controllers=False, budgets=False, gateway=GATEWAY),
            {
                "action-worker", "arrivals", "bind-worker", "cache", "cluster-api", "config-watcher",
                "disruption-controller",
                "dry-run-worker", "evict-worker", "extender-client", "job-controller", "mirror", "pod-group-controller",
                "pre-bind-worker", "queue-controller",
                "session-runner", "status-writer", "usage-collector",
            },
        ),
        (MIRRORED, LINKS.keys() - {"api-server", "mirror", "recorder", "checkpointer", "metrics", "supervisor"}),
        (
            SCHEDULING_THERE,
            {
                "arrivals", "disruption-controller", "gateway", "job-controller", "mirror", "node-agents", "pod-events",
                "pod-group-controller", "queue-controller", "usage-collector", "volume-controller",
                "workload-controller",
            },
        ),
    ],
    ids=["plain", "only the api", "mirror", "of a cluster elsewhere"],
)  # fmt: skip
def test_who_there_is_follows_from_the_settings(settings: SystemSettings, missing: set[str]) -> None:
    board = System(settings, MemoryJournal(), RealClock()).switchboard
    assert LINKS.keys() - board.role.values() == missing
    for mailbox in board.mailboxes.values():
        mailbox.abort()
