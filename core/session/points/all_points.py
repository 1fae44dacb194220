"""All extension points of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.core.session.points.binding import BindingPoints
from pumice.core.session.points.listed import listed_plugins
from pumice.core.session.points.node_points import NodePoints
from pumice.core.session.points.orders import OrderPoints
from pumice.core.session.points.point import Point
from pumice.core.session.points.trials import TrialPoints
from pumice.core.session.points.victims import VictimPoints
from pumice.core.session.points.votes import VotePoints
from pumice.core.state.derived import itself

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig
    from pumice.core.session.points.victims import AsBatch
    from pumice.core.session.trail.trail import Trail


class Points(OrderPoints, VotePoints, VictimPoints, TrialPoints, NodePoints, BindingPoints):
    """A point's `add(plugin, rule)` registers, its call asks all who are consulted and merges what they say.

    `unforeseeable`: whether a rule stands somewhere that may tell any two tasks apart.
    """

    def __init__(self, config: SchedulerConfig, as_batch: AsBatch) -> None:
        listed = listed_plugins(itself(config))
        OrderPoints.__init__(self, listed)
        VotePoints.__init__(self, listed)
        VictimPoints.__init__(self, listed, frozenset(config.pumice.fix), as_batch)
        TrialPoints.__init__(self, listed)
        NodePoints.__init__(self, listed)
        BindingPoints.__init__(self, listed)
        self.unforeseeable = False

    def tell(self, trail: Trail) -> None:
        """From now on the trail hears what plugins say of victims and of who asks to be admitted."""
        for point in (self.preemptable, self.reclaimable, self.unified_evictable, self.victim_tasks):
            point.heard_by = trail.elections
        self.job_enqueueable.heard_by = trail.admission

    def by_name(self) -> dict[str, Point[Any]]:
        """Volcano's name of each point -> the point."""
        return {point.name: point for point in self.by_attribute().values()}

    def by_attribute(self) -> dict[str, Point[Any]]:
        """The attribute of each point -> the point."""
        return {attribute: point for attribute, point in vars(self).items() if isinstance(point, Point)}
