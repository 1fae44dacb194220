"""VolumeBinding: volumes must be there, within reach, or possible to make. Source: Volcano
`capabilities/volumebinding`.

A placed pod reserves what it was promised, and gives it back when it is taken off again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.kube.selectors import SelectorError
from pumice.core.kube.storage import Storage, UnreadableVolumesError, has_ephemeral, uses_claims
from pumice.core.kube.volume_plan import Planner, Promises, VolumePromise, read_claims
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.ready import KeptCheck
from pumice.core.session.reasons import Code, FitFailure, Reason

if TYPE_CHECKING:
    from pumice.core.kube.volume_plan import PodClaims, VolumePlan
    from pumice.core.objects.pod import Task
    from pumice.core.session.reasons import IntArray, ReasonTable
    from pumice.core.session.session import Session

NAME = "VolumeBinding"
NOTHING = VolumePromise((), ())
TEXTS = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)


class VolumeBindingCheck(KeptCheck):
    """Asks a plan about each node; the plan is made again when a promise was made or withdrawn."""

    def __init__(self, planner: Planner, promises: Promises, claims: PodClaims, reasons: ReasonTable) -> None:
        self._planner, self._promises, self._claims, self._reasons = planner, promises, claims, reasons
        self._version = -1
        self._codes: IntArray = np.zeros(0, dtype=np.int32)

    def _judge(self, plan: VolumePlan) -> IntArray:
        # One bit for each text, so that eight reasons serve all nodes.
        found = plan.out_of_reach + 2 * plan.nothing_to_bind + 4 * plan.lost
        numbers = [0]
        for combination in range(1, 8):
            text = ", ".join(text for i, text in enumerate(TEXTS) if combination >> i & 1)
            numbers.append(self._reasons.intern(Reason(NAME, Code.UNRESOLVABLE, text)))
        codes: IntArray = np.array(numbers, dtype=np.int32)[found]
        if plan.broken.any():
            codes[plan.broken] = self._reasons.intern(Reason(NAME, Code.ERROR, plan.problem))
        return codes

    def current(self) -> IntArray:
        """Reason number per node, int32 [N], as of now."""
        if self._version != self._promises.version:
            self._version = self._promises.version
            self._codes = self._judge(self._planner.plan(self._claims))
        return self._codes


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

    def prepare(self, session: Session, task: Task) -> VolumeBindingCheck | None:
        """None for a pod without claims. Raises FitFailure where no node can help."""
        if not uses_claims(task.template):
            return None
        try:
            claims = read_claims(self._storage, task)
            # The plan itself is not needed here: an unreadable selector must fail in PreFilter.
            self._planner.plan(claims)
        except (UnreadableVolumesError, SelectorError) as error:
            raise FitFailure(Reason(NAME, Code.ERROR, f"plugin {NAME} pre-predicates failed {error}")) from error
        return VolumeBindingCheck(self._planner, self.promises, claims, session.reasons)

    def reserve(self, task: Task, node: int) -> str | None:
        """Promise a placed pod its volumes, where the node can have any (a negative one cannot). A text: an error."""
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
