"""Whether the scheduler's view can take an object in: a replay of what it cannot would end there."""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.real_clusters.mirror.changes import RemoteChange
from pumice.config.errors import RequestError
from pumice.core.state.view import View
from pumice.core.state.watched import WATCHED

READ: Final = frozenset(WATCHED)


class Readability:
    """Tries objects on a view of its own, on which none of them stays."""

    def __init__(self) -> None:
        self._view = View()

    def problem(self, change: RemoteChange) -> str:
        """What is wrong with it; "" when nothing is. Other clusters' rules may be others than those known here."""
        if change.kind not in READ or change.obj is None or change.gone:
            return ""
        obj: dict[str, Any] = change.obj
        try:
            self._view.apply("ADDED", obj)
            self._view.apply("DELETED", obj)
        except (RequestError, ValueError, TypeError, KeyError, AttributeError) as error:
            self._view = View()
            return str(error) or type(error).__name__
        return ""
