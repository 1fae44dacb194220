# SPDX-License-Identifier: Apache-2.0
"""Questions of the pages that show the cluster, and their answers as columns, since there are thousands of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from pumice.core.messages.events import CycleMeasured
from pumice.core.messages.message import Message
from pumice.core.messages.queue_tables import QueuesMeasured

if TYPE_CHECKING:
    import numpy.typing as npt

    from pumice.core.state.dimensions import FloatArray


class ReadBoard(Message, frozen=True):
    """Ask for the cluster as the scheduler sees it. Reply: BoardRead, without the parts that the asker has in these
    versions.
    """

    version: int = -1
    layout: int = -1


class ReadResidents(Message, frozen=True):
    """Ask for the pods on one node. Reply: ResidentsRead."""

    node: str


class ReadRecent(Message, frozen=True):
    """Ask for the cycles above a number, and the newest state of queues and cards. Reply: RecentRead."""

    after: int = 0


class BoardLayout(Struct, frozen=True, gc=False):
    """The nodes in name order, and their amounts. `resources`: those that any node has, cpu in cores, memory in bytes,
    all others in pieces; `groups`: paths from the top HyperNode (or zone, rack) down; `group`: each node's place among
    them; `cordoned` and `ready`: a byte a node; `allocatable` float64 [resource, node].
    """

    resources: list[str]
    nodes: list[str]
    groups: list[list[str]]
    group: list[int]
    # Columns as bytes: 5,000 numbers are encoded in 2 µs so, and in 0.3 ms as a list.
    cordoned: bytes
    ready: bytes
    allocatable: bytes

    def columns(self) -> FloatArray:
        """Return what can be allocated."""
        # Shared with the message, not copied, and therefore read-only.
        return np.frombuffer(self.allocatable).reshape(len(self.resources), len(self.nodes))


class BoardRead(Message, frozen=True):
    """A board. `layout` and `amounts` are left out where the asker has them. `amounts` float64 [4, resource, node]:
    used, the parts of it that are releasing and for pods being bound, and the requests of pods nominated to the node
    that wait for room. `pods`: of jobs, by status; `jobs`: by phase of the PodGroup; `binding` and `evicting`:
    decisions in flight; `seconds` that reading took.
    """

    version: int
    layout_version: int
    layout: BoardLayout | None = None
    amounts: bytes = b""
    pods: dict[str, int] = field(default_factory=dict[str, int])
    jobs: dict[str, int] = field(default_factory=dict[str, int])
    binding: int = 0
    evicting: int = 0
    seconds: float = 0.0

    def columns(self, layout: BoardLayout) -> npt.NDArray[np.float64]:
        """Return used, releasing, binding and nominated of the nodes of that layout."""
        return np.frombuffer(self.amounts).reshape(4, len(layout.resources), len(layout.nodes))


class BoardPod(Struct, frozen=True, gc=False):
    """A pod on a node. `asks`: cpu in cores, memory in bytes, all others in pieces; `created`: the time of its creation
    (seconds since the epoch).
    """

    pod: str
    job: str
    status: str
    priority: int
    asks: dict[str, float]
    created: float = 0.0


class ResidentsRead(Message, frozen=True):
    """The pods on a node. `known`: the node exists."""

    node: str
    known: bool
    pods: tuple[BoardPod, ...] = ()


class RecentRead(Message, frozen=True):
    """The newest cycles, oldest first. `queues`: None where no page has asked for them yet."""

    cycles: tuple[CycleMeasured, ...] = ()
    queues: QueuesMeasured | None = None
