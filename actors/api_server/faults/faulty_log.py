"""The api's log as watchers find it behind a bad network: broken, replayed, or gone (410), as `faults` say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.actors.errors import ActorFailedError
from pumice.cluster.api.watch import Events

if TYPE_CHECKING:
    from pumice.actors.api_server.faults.network import Network
    from pumice.actors.api_server.faults.strikes import Faults
    from pumice.cluster.api.watch import RevisionLog

REPLAYED: Final = 10
"""Revisions that a replayed watch goes back."""


class FaultyLog:
    """The api's log as `faults` let watchers have it."""

    def __init__(self, log: RevisionLog, faults: Faults, network: Network) -> None:
        self._log = log
        self._faults = faults
        self._network = network

    def head(self, kinds: tuple[str, ...]) -> int:
        """The newest published revision of these kinds: what is told late is told late, and not otherwise."""
        return self._log.head(kinds)

    def read(self, since: int, kinds: tuple[str, ...] = (), limit: int = 1000) -> Events:
        """What a watch brings this time. Raises ActorFailedError for a broken one."""
        log, fault = self._log, self._faults.strike_watch(kinds)
        match fault.what if fault is not None else "":
            case "watch-broken":
                raise ActorFailedError("api-server", "injected: the connection broke")
            case "watch-gone":
                return Events(log.published, gone=True)
            case "watch-replayed" if since >= log.oldest:
                since = max(log.oldest, min(since, log.published) - REPLAYED)
            case "crash" if fault is not None:
                self._network.crash(fault.target, int(fault.amount))
            case _:
                pass
        return log.read(since, kinds, limit)
