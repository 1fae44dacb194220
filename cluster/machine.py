# SPDX-License-Identifier: Apache-2.0
"""The interface of a machine, which watches the store and writes to it: kubelets and controllers are machines.

A machine is pure: it hears changes and returns requests for the api; it never sleeps, asks or reads a
clock. A shell reads the log, asks and keeps the time. A test drives a machine the same way without any shell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.messages.commands import ApiRequest
    from pumice.core.messages.replies import ApiReply


class Machine(ABC):
    """A controller, or a kubelet, as a pure object.

    Times are seconds since the epoch; objects may be kept but not changed.
    """

    kinds: tuple[str, ...]
    """Watched kinds: kinds and parts of kinds, in the order in which a first list should come.

    Of the kind of a part it may hear more than the part, and hears its own changes by their answers only, where the
    part leaves them out (`pumice.core.objects.parts`).
    """

    @abstractmethod
    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`.

        May come twice, or late: a change that is not newer than the known one is ignored. Of a deleted object perhaps
        only kind, namespace and name are known.
        """

    @abstractmethod
    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:  # noqa: B027 - for most, nothing
        """Take the answer to one request of the last step; answers come in order, before the next step.

        Most need none: the watch brings what was written, and of what was refused, that it has changed or gone.
        """

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        return None

    def running_timers(self) -> int:
        """Return the number of running timers that an idle run must have waited for."""
        return 0
