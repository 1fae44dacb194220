# SPDX-License-Identifier: Apache-2.0
"""VolumeBinding: volumes must exist within reach, or be possible to make. Source: Volcano `capabilities/volumebinding`.

A placed pod reserves what it was promised, and gives it back when it is taken off again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.kube.selectors import SelectorError
from pumice.core.kube.storage import Storage, UnreadableVolumesError, has_ephemeral, uses_claims
from pumice.core.kube.volume_plan import Planner, Promises, VolumePromise, read_claims
from pumice.core.session.points.nodes import Reads, Volatility
from pumice.core.session.points.rules import ColumnRule
from pumice.core.session.reasons import Code, FitFailure, Reason

if TYPE_CHECKING:
    from pumice.core.kube.volume_plan import VolumePlan
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.rules import Check
    from pumice.core.session.reasons import IntArray, ReasonTable
    from pumice.core.session.session import Session

NAME = "VolumeBinding"
NOTHING = VolumePromise((), ())
TEXTS = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)


def _judged(plan: VolumePlan, reasons: ReasonTable) -> IntArray:
    """Return the reason number of each node by that plan, int32 [N]."""
    # One bit for each text, so that eight reasons serve all nodes.
    found = plan.out_of_reach + 2 * plan.nothing_to_bind + 4 * plan.lost
    numbers = [0]
    for combination in range(1, 8):
        text = ", ".join(text for i, text in enumerate(TEXTS) if combination >> i & 1)
        numbers.append(reasons.intern(Reason(NAME, Code.UNRESOLVABLE, text)))
    codes: IntArray = np.array(numbers, dtype=np.int32)[found]
    if plan.broken.any():
        codes[plan.broken] = reasons.intern(Reason(NAME, Code.ERROR, plan.problem))
    return codes


class VolumeBinding:
    """The filter, and the reservations of a session."""

    name = NAME
    # claims are found by namespace and name
    reads = Reads(labels=True, concerns=uses_claims, anew=has_ephemeral, needs_pre_filter=True)

    def __init__(self, session: Session) -> None:
        self._session, self._storage, self.promises = session, Storage(session.objects), Promises()
        for pod, (node, before) in session.snapshot.promised.items():  # binds of earlier cycles that are on their way
            self.promises.make(pod, node, VolumePromise(before.volumes, before.provisions))
        self._planner = Planner(session.nodes, self._storage, self.promises)

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the answers; None for a pod without claims. Raises FitFailure where no node can help."""
        if not uses_claims(task.template):
            return None
        try:
            claims = read_claims(self._storage, task)
            # The plan itself is not needed here: an unreadable selector must fail in PreFilter.
            self._planner.plan(claims)
        except (UnreadableVolumesError, SelectorError) as error:
            raise FitFailure(Reason(NAME, Code.ERROR, f"plugin {NAME} pre-predicates failed {error}")) from error
        planner, promises, reasons = self._planner, self.promises, session.reasons
        # The plan is made again when a promise was made or withdrawn.
        return ColumnRule(
            lambda rows: _judged(planner.plan(claims), reasons)[rows],
            Volatility.GLOBAL,
            follow=lambda: promises.version,
        )

    def reserve(self, task: Task, node: int) -> str | None:
        """Reserve a placed pod's volumes, where the node can have any (a negative one cannot). A returned text is an
        error.
        """
        if not uses_claims(task.template):
            return None
        try:
            claims = read_claims(self._storage, task)
        except UnreadableVolumesError as error:
            return str(error)
        if claims.waiting and node >= 0:
            plan = self._planner.plan(claims)
            if plan.works(node):
                self.promises.make(task.key, self._session.nodes.names[node], plan.promise(node))
        return None

    def promised(self, task: Task) -> VolumePromise:
        """Return what a placed pod was promised."""
        return self.promises.by_task.get(task.key, NOTHING)

    def unreserve(self, task: Task) -> None:
        """Take the promise back."""
        self.promises.withdraw(task.key)
