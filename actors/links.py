"""Checking a table of who sends to whom: no cycle of blocking sends, so nobody waits for ever on a full mailbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from actors.errors import WiringError

Links = Mapping[str, Sequence[str]]


def starting_order(links: Links) -> list[str]:
    """Receivers before senders, else by name. Raises WiringError for a cycle or an unknown name."""
    for sender, receivers in links.items():
        for receiver in receivers:
            if receiver not in links:
                raise WiringError(f"{sender} sends to {receiver!r}, which is not in the table")
    sorter = TopologicalSorter(links)
    try:
        sorter.prepare()
    except CycleError as error:
        raise WiringError(f"a cycle of blocking sends: {' -> '.join(reversed(error.args[1]))}") from error
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order.extend(ready)
        sorter.done(*ready)
    return order
