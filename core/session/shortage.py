"""What no node could ever give: said to readers beside Volcano's own sentences, never in a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.resources.lists import list_from_amounts
from pumice.core.resources.names import CSI_VOLUMES

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

NO_NODES = "there are no nodes"


class LargestNode:
    """The most that any one node of the session can hold, resource by resource (empty nodes, as allocatable)."""

    def __init__(self, session: Session) -> None:
        self._names = session.dims.names
        self._most: list[float] = session.nodes.allocatable.max(axis=1).tolist() if session.nodes.count else []
        self._texts: dict[int, str] = {}

    def lacks(self, task: Task) -> str:
        """``no node is large enough: cpu 64 of at most 32``; "" when an empty node would do."""
        if not self._most:
            return NO_NODES
        number = task.template.number
        if number not in self._texts:
            over = [(d, value) for d, value in task.template.items if value > self._of(d)]
            listed = ", ".join(self._compared(self._names[d], value, self._of(d)) for d, value in over)
            self._texts[number] = f"no node is large enough: {listed}" if over else ""
        return self._texts[number]

    def _of(self, dimension: int) -> float:
        return self._most[dimension] if dimension < len(self._most) else 0.0

    @staticmethod
    def _compared(name: str, asked: float, most: float) -> str:
        return f"{name} {_text(name, asked)} of at most {_text(name, most)}"


def _text(name: str, amount: float) -> str:
    """The amount in Kubernetes' words; cpu and scalars are in thousandths, memory in bytes, pods and volumes counts."""
    if name.startswith(CSI_VOLUMES):
        return f"{amount:g}"
    known = {"cpu": (amount, 0.0, None), "memory": (0.0, amount, None)}
    return list_from_amounts(*known.get(name, (0.0, 0.0, {name: amount})))[name]
