"""binpack: prefers nodes that are full already. Source: Volcano `plugins/binpack/binpack.go`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.config.arguments import Arguments
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.fill import FULL, FillTerm, fill_score
from pumice.core.session.points.nodes import TEMPLATE_ONLY

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.columns import ColumnScore
    from pumice.core.session.points.ready import ReadyScore
    from pumice.core.session.session import Session

RESOURCES = "binpack.resources"


class FillScorer:
    """The scorer: `weights` by resource name; a resource without one does not count, one of weight 0 counts as none."""

    name = "binpack"
    reads = TEMPLATE_ONLY

    def __init__(self, weights: dict[str, int], weight: int) -> None:
        self._weights = weights
        self._factor = FULL * weight

    def prepare(self, session: Session, task: Task) -> ColumnScore | ReadyScore:
        """For the task's template."""
        names = session.dims.names
        asked = [
            (dimension, request, self._weights[names[dimension]])
            for dimension, request in task.template.items
            if request >= MIN_RESOURCE and names[dimension] in self._weights
        ]
        terms = [FillTerm(dimension, request, float(weight)) for dimension, request, weight in asked if weight]
        return fill_score(session, terms, float(sum(weight for _, _, weight in asked)), self._factor)


class Binpack(BuiltInPlugin):
    """`binpack.weight` (1; 0 leaves the scorer out), `binpack.cpu`, `binpack.memory` (1), `binpack.resources` (names
    with commas between), `binpack.resources.<name>` (1). Whole numbers; a resource's negative weight counts as 1.
    """

    name = "binpack"
    says = "prefers nodes that are full already"
    listens = ("NodeOrder",)
    only_answers = True
    only_places = True

    def __init__(self, arguments: dict[str, Any]) -> None:
        read = Arguments(self.name, arguments)
        self.weight = read.get_int("binpack.weight", 1)
        listed = arguments.get(RESOURCES)
        names = [name.strip() for name in listed.split(",")] if isinstance(listed, str) else []
        self.weights = {name: _weight(read, f"{RESOURCES}.{name}") for name in names if name}
        self.weights["cpu"] = _weight(read, "binpack.cpu")
        self.weights["memory"] = _weight(read, "binpack.memory")

    def on_session_open(self, session: Session) -> None:
        """Register the scorer."""
        if self.weight:
            session.points.node_order.add(self.name, [FillScorer(self.weights, self.weight)])


def _weight(read: Arguments, key: str) -> int:
    weight = read.get_int(key, 1)
    return weight if weight >= 0 else 1
