"""Clusters of a session of tests: lent to one test after the other, reset in between."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from pumice.testing.cluster import ServedCluster, served_cluster

if TYPE_CHECKING:
    from pumice.testing.options import ClusterOptions


class ClusterPool:
    """Starts a cluster when none with these options is free, and stops all of them with `close`."""

    def __init__(self) -> None:
        self._free: dict[str, list[ServedCluster]] = {}
        self._stacks: dict[ServedCluster, ExitStack] = {}

    def lend(self, options: ClusterOptions) -> ServedCluster:
        """Return a cluster that is as it was at its beginning. Raises ConfigError, InputError."""
        if free := self._free.get(options.key):
            return free.pop()
        with ExitStack() as stack:
            cluster = stack.enter_context(served_cluster(options))
            self._stacks[cluster] = stack.pop_all()
        return cluster

    def take_back(self, cluster: ServedCluster) -> None:
        """Reset a cluster for the next test. One that cannot be reset is stopped, and the error raised."""
        try:
            cluster.reset()
        except BaseException:
            self._stacks.pop(cluster).close()
            raise
        self._free.setdefault(cluster.options.key, []).append(cluster)

    def close(self) -> None:
        """Stop all clusters."""
        with ExitStack() as stack:
            for each in self._stacks.values():
                stack.callback(each.close)
