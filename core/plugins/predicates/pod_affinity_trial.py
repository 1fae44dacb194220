"""Inter-pod affinity in a trial: what if these pods were gone from the node, or back.

Source: Volcano `plugins/predicates` (SimulateAddTask, SimulateRemoveTask, SimulatePredicate) and kube-scheduler
`interpodaffinity` (AddPod, RemovePod): PreFilter's counts are moved by hand, then one node is filtered again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.core.kube.affinity import readable_terms_of, terms_of
from pumice.core.kube.selectors import SelectorError
from pumice.core.kube.terms_index import terms_index
from pumice.core.plugins.predicates.pod_affinity_rule import REASONS, AffinityCounts, own_terms

if TYPE_CHECKING:
    from pumice.core.kube.affinity import PodTerms
    from pumice.core.kube.placed import Placed
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

NAME: Final = "predicates"


def _readable(task: Task) -> PodTerms:
    try:
        return terms_of(task.template, task.namespace)
    except SelectorError:  # PreFilter has refused it already
        return readable_terms_of(task.template, task.namespace)


class AffinityTrial:
    """The rule's counts for one task to be placed, which are moved by hand."""

    def __init__(self, counts: AffinityCounts) -> None:
        self._counts = counts
        self.skipped = not counts.concerns

    @classmethod
    def of(cls, session: Session, placed: Placed, task: Task) -> AffinityTrial:
        """Nothing is moved yet."""
        return cls(AffinityCounts(session, placed, task, own_terms(session, placed, task, _readable(task))))

    def copy(self) -> AffinityTrial:
        """Equal counts, to be moved by themselves."""
        return self if self.skipped else AffinityTrial(self._counts.copy())

    @property
    def task(self) -> Task:
        """The one to be placed."""
        return self._counts.task

    def move(self, other: Task, row: int, sign: int) -> None:
        """Another pod is put on a node (sign 1) or taken off it (-1)."""
        if not self.skipped:
            self._counts.move(other, row, sign)

    def refusal(self, row: int) -> str | None:
        """Why the node refuses the task as the trial stands; None when it does not."""
        if not self.skipped:
            for place, refused in self._counts.refusals(row):
                if refused:
                    return REASONS[place].text
        return None


class Trials:
    """The plugin's part in a trial: `state` belongs to the one who tries, the counts are kept in it under the plugin's
    name.
    """

    def __init__(self, session: Session, placed: Placed) -> None:
        self._session, self._placed = session, placed
        self._counted: tuple[int, AffinityTrial] | None = None

    def _trial(self, state: dict[str, Any], preemptor: Task) -> AffinityTrial:
        trial: AffinityTrial | None = state.get(NAME)
        if trial is None:
            trial = state[NAME] = self._as_it_stands(preemptor).copy()
        return trial

    def _as_it_stands(self, preemptor: Task) -> AffinityTrial:
        """The counts before anything is tried: the same for every node, until a pod comes or goes."""
        changes, counted = len(self._session.nodes.touched), self._counted
        if counted is None or counted[0] != changes or counted[1].task is not preemptor:
            counted = self._counted = changes, AffinityTrial.of(self._session, self._placed, preemptor)
        return counted[1]

    def is_quiet(self, preemptor: Task) -> bool:
        """Whether no affinity concerns the preemptor, so that a trial of it needs no counts."""
        affinity = preemptor.template.affinity
        asks = affinity.get("podAffinity") or affinity.get("podAntiAffinity")
        if not asks and not terms_index(self._placed, self._session.objects).any_anti:
            return True  # nobody needs counting
        return self._as_it_stands(preemptor).skipped

    def add(self, state: dict[str, Any], preemptor: Task, task: Task, node: int) -> str | None:
        """The task is back on the node."""
        self._trial(state, preemptor).move(task, node, 1)
        return None

    def remove(self, state: dict[str, Any], preemptor: Task, task: Task, node: int) -> str | None:
        """The task is gone from the node."""
        self._trial(state, preemptor).move(task, node, -1)
        return None

    def predicate(self, state: dict[str, Any], preemptor: Task, node: int) -> str | None:
        """Whether the node takes the preemptor as the trial stands; a text says why not."""
        return self._trial(state, preemptor).refusal(node)
