# SPDX-License-Identifier: Apache-2.0
"""binpack: prefer nodes that are full already. Source: Volcano `plugins/binpack/binpack.go`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.config.arguments import INTEGER, NAMES, Argument, PluginArguments, at_least
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.fill import FULL, FillTerm, fill_score
from pumice.core.session.points.nodes import TEMPLATE_ONLY

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.rules import Score
    from pumice.core.session.session import Session

WEIGHT: Final = Argument("binpack.weight", INTEGER, 1, "What its scores count; 0 leaves the scorer out.")
_COUNT: Final = at_least(INTEGER, 0)
_CPU: Final = Argument("binpack.cpu", _COUNT, 1, "What cpu counts.")
_MEMORY: Final = Argument("binpack.memory", _COUNT, 1, "What memory counts.")
_LISTED: Final = Argument("binpack.resources", NAMES, (), "Further resources that count.", "none")
_LISTED_ONE: Final = Argument("binpack.resources.*", _COUNT, 1, "What the listed resource of that name counts.")


class FillScorer:
    """The scorer: `weights` by resource name; a resource without a weight does not count, nor does one of weight 0."""

    name = "binpack"
    reads = TEMPLATE_ONLY

    def __init__(self, weights: dict[str, int], weight: int) -> None:
        self._weights = weights
        self._factor = FULL * weight

    def prepare(self, session: Session, task: Task) -> Score:
        """Return the score for the task's template."""
        names = session.dims.names
        asked = [
            (dimension, request, self._weights[names[dimension]])
            for dimension, request in task.template.items
            if request >= MIN_RESOURCE and names[dimension] in self._weights
        ]
        terms = [FillTerm(dimension, request, float(weight)) for dimension, request, weight in asked if weight]
        return fill_score(session, terms, float(sum(weight for _, _, weight in asked)), self._factor)


class Binpack(BuiltInPlugin):
    """Fills nodes up, resource by resource."""

    name = "binpack"
    says = "prefers nodes that are full already"
    listens = ("NodeOrder",)
    only_answers = True
    only_places = True
    arguments = (WEIGHT, _CPU, _MEMORY, _LISTED, _LISTED_ONE)

    def __init__(self, arguments: PluginArguments) -> None:
        self.weight = WEIGHT.of(arguments)
        self.weights = {name: _LISTED_ONE.of(arguments, name) for name in _LISTED.of(arguments)}
        self.weights |= {"cpu": _CPU.of(arguments), "memory": _MEMORY.of(arguments)}

    def on_session_open(self, session: Session) -> None:
        """Register the scorer."""
        if self.weight:
            session.points.node_order.add(self.name, [FillScorer(self.weights, self.weight)])

    def can_go_on(self, session: Session) -> bool:
        """Return True: the scorer reads columns alone."""
        return True
