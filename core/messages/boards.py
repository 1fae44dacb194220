"""Questions of the pages that show the cluster, and their answers: columns, for there are thousands of nodes."""

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
    """The cluster as the scheduler sees it. Reply: BoardRead, without what the asker has of these versions."""

    version: int = -1
    layout: int = -1


class ReadResidents(Message, frozen=True):
    """The pods on one node. Reply: ResidentsRead."""

    node: str


class ReadRecent(Message, frozen=True):
    """Cycles above a number, and what was said last of queues and cards. Reply: RecentRead."""

    after: int = 0


class BoardLayout(Struct, frozen=True, gc=False):
    """The nodes in name order, and what each has. `resources`: those that any node has, cpu in cores, memory in bytes,
    all else in pieces; `groups`: paths from the top HyperNode (or zone, rack) down; `group`: each node's place among
    them; `cordoned` and `ready`: a byte a node; `allocatable` float64 [resource, node].
    """

    resources: list[str]
    nodes: list[str]
    groups: list[list[str]]
    group: list[int]
    cordoned: bytes
    ready: bytes
    allocatable: bytes

    def columns(self) -> FloatArray:
        """Return what can be allocated."""
        return np.frombuffer(self.allocatable).reshape(len(self.resources), len(self.nodes))


class BoardRead(Message, frozen=True):
    """`layout` and `amounts` are left out where the asker has them. `amounts` float64 [4, resource, node]: used, of
    that being released, of that for pods that are being bound; and what pods ask for that wait for room on a node that
    they are nominated for. `pods`: of jobs, by status; `jobs`: by phase of the PodGroup; `binding` and `evicting`:
    decisions on their way; `seconds` it took.
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
        """Used, releasing, binding, nominated, of the nodes of that layout."""
        return np.frombuffer(self.amounts).reshape(4, len(layout.resources), len(layout.nodes))


class BoardPod(Struct, frozen=True, gc=False):
    """A pod on a node. `asks`: cpu in cores, memory in bytes, all else in pieces; `created`: when
    it was (seconds since the epoch).
    """

    pod: str
    job: str
    status: str
    priority: int
    asks: dict[str, float]
    created: float = 0.0


class ResidentsRead(Message, frozen=True):
    """`known`: there is such a node."""

    node: str
    known: bool
    pods: tuple[BoardPod, ...] = ()


class RecentRead(Message, frozen=True):
    """The newest cycles, oldest first. `queues`: None where no page has asked for them yet."""

    cycles: tuple[CycleMeasured, ...] = ()
    queues: QueuesMeasured | None = None
