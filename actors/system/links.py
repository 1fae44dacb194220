"""The table of who sends to whom, checked: no cycle of blocking sends, so nobody waits for ever on a full mailbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from actors.errors import WiringError

Links = Mapping[str, Sequence[str]]

LINKS: Links = {
    "action-worker": ("dry-run-worker",),
    "api-server": ("recorder",),
    "bind-worker": ("api-server", "cache", "metrics", "recorder"),
    "cache": ("api-server",),
    "checkpointer": (),
    "config-watcher": ("api-server",),
    "disruption-controller": ("api-server",),
    "dry-run-worker": (),
    "evict-worker": ("api-server", "cache", "recorder"),
    "gateway": ("api-server", "metrics"),
    "job-controller": ("api-server",),
    "metrics": (),
    "node-agents": ("api-server",),
    "pod-events": ("api-server",),
    "pod-group-controller": ("api-server",),
    "pre-bind-worker": ("api-server", "cache", "metrics", "recorder", "status-writer"),
    "queue-controller": ("api-server",),
    "recorder": (),
    "session-runner": (
        "action-worker",
        "bind-worker",
        "cache",
        "evict-worker",
        "metrics",
        "pre-bind-worker",
        "recorder",
        "status-writer",
    ),
    "status-writer": ("api-server", "recorder"),
    "usage-collector": ("api-server",),
    "volume-controller": ("api-server",),
}
"""Role -> the roles it sends to. Drawn in the README; who stops before whom follows from it."""


def ranks(links: Links) -> list[list[str]]:
    """Receivers before senders: those of one rank send to lower ranks only, and not to each other; by name.

    Raises WiringError for a cycle or an unknown name.
    """
    for sender, receivers in links.items():
        for receiver in receivers:
            if receiver not in links:
                raise WiringError(f"{sender} sends to {receiver!r}, which is not in the table")
    sorter = TopologicalSorter(links)
    try:
        sorter.prepare()
    except CycleError as error:
        raise WiringError(f"a cycle of blocking sends: {' -> '.join(reversed(error.args[1]))}") from error
    found: list[list[str]] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        found.append(ready)
        sorter.done(*ready)
    return found


RANKS = ranks(LINKS)
