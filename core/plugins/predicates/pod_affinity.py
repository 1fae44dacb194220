# SPDX-License-Identifier: Apache-2.0
"""InterPodAffinity: required affinity and anti-affinity, both ways, over all nodes and in trials."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pumice.core.kube.affinity import TermsIndex, has_terms, namespace_labels, readable_terms_of, resolved, terms_of
from pumice.core.kube.node_selector import ABSENT, label_column
from pumice.core.kube.pod_index import PodIndex
from pumice.core.kube.selectors import LabelSelector, SelectorError
from pumice.core.session.points.nodes import ReadsLabelsInPlay, Volatility
from pumice.core.session.points.rules import ColumnRule
from pumice.core.session.reasons import Code, FitFailure, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from pumice.core.kube.affinity import AffinityTerm, PodTerms
    from pumice.core.kube.node_selector import LabelColumn
    from pumice.core.kube.placed import Placed
    from pumice.core.kube.pod_index import Matching, PodIndex
    from pumice.core.kube.rows import BoolArray
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.all_points import State
    from pumice.core.session.points.nodes import Rows
    from pumice.core.session.points.rules import Check
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session

    At = int | slice
    Mask = np.bool_ | BoolArray
    CountArray = npt.NDArray[np.int64]

# --- The rule
# Source: kube-scheduler `interpodaffinity/filtering.go` (PreFilter's three counts; Filter).
#
# It is stated for a node row as for a column of them: what is looked up is one code or all codes of a key, and what
# is answered one truth value or a mask.

NAME = "InterPodAffinity"
APART = Reason(NAME, Code.UNRESOLVABLE, "node(s) didn't match pod affinity rules")
TOGETHER = Reason(NAME, Code.UNSCHEDULABLE, "node(s) didn't match pod anti-affinity rules")
UNWELCOME = Reason(NAME, Code.UNSCHEDULABLE, "node(s) didn't satisfy existing pods anti-affinity rules")
REASONS: Final = (APART, TOGETHER, UNWELCOME)
"""In the order in which they are looked for."""


@dataclass(frozen=True, slots=True)
class OwnTerms:
    """The required terms of a task to be placed, with the pods that each matches."""

    affinity: tuple[tuple[AffinityTerm, LabelColumn], ...] = ()
    companions: Matching | None = None  # pods that match all affinity terms
    matches_itself: bool = False
    anti: tuple[tuple[AffinityTerm, LabelColumn, Matching], ...] = ()


NO_TERMS = OwnTerms()


def own_terms(session: Session, placed: Placed, task: Task, terms: PodTerms) -> OwnTerms:
    """Return the task's terms as questions about the pods that are placed."""
    if not terms.affinity and not terms.anti:
        return NO_TERMS
    objects, fixes = session.objects, session.config.pumice.fix
    affinity, anti = ([resolved(term, objects, fixes) for term in kind] for kind in (terms.affinity, terms.anti))
    nodes, pods = session.nodes, placed.reader(PodIndex)
    return OwnTerms(
        affinity=tuple([(term, label_column(nodes, term.key)) for term in affinity]),
        companions=pods.matching(*in_common(affinity), terminating=True) if affinity else None,
        matches_itself=all(term.matches(task.namespace, task.labels) for term in affinity),
        anti=tuple([(term, label_column(nodes, term.key), _meant_by(term, pods)) for term in anti]),
    )


def _meant_by(term: AffinityTerm, pods: PodIndex) -> Matching:
    return pods.matching(term.reach(), term.selector, terminating=True)


def in_common(terms: list[AffinityTerm]) -> tuple[frozenset[str] | None, LabelSelector]:
    """Return one question for pods that match every term: the namespaces of all terms, and all requirements
    together.
    """
    reach: frozenset[str] | None = None
    for term in terms:
        own = term.reach()
        reach = own if reach is None else reach if own is None else reach & own
    # Selectors of terms are all to hold, so their requirements add up to one selector.
    requirements = tuple(wanted for term in terms for wanted in term.selector.requirements)
    return reach, LabelSelector(requirements, nothing=any(term.selector.nothing for term in terms))


class DomainCounts:
    """Counts of pods in each domain of some topology keys.

    `counts`: key -> its column and int64 [values + 1]; the last stands for nodes without the key, where no pod counts.
    """

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[str, tuple[LabelColumn, CountArray]] = {}

    def copy(self) -> DomainCounts:
        """Return an independent copy."""
        twin = DomainCounts()
        twin.counts = {key: (column, counts.copy()) for key, (column, counts) in self.counts.items()}
        return twin

    def _of(self, key: str, column: LabelColumn) -> CountArray:
        found = self.counts.get(key)
        if found is None:
            found = self.counts[key] = column, np.zeros(len(column.values) + 1, dtype=np.int64)
        return found[1]

    def count(self, key: str, column: LabelColumn, per_node: npt.NDArray[Any]) -> None:
        """Add pods to the counts of a column; `per_node`: their number on each node [N]."""
        counts, there = self._of(key, column), per_node.nonzero()[0]
        np.add.at(counts, column.codes[there], per_node[there])
        # The last place stands for nodes without the key: pods there are in no domain.
        counts[ABSENT] = 0

    def move(self, key: str, column: LabelColumn, row: int, sign: int) -> None:
        """Count one pod more (sign 1) or less (-1) on a node."""
        if column.codes[row] != ABSENT:
            self._of(key, column)[column.codes[row]] += sign

    def anywhere(self) -> bool:
        """Return whether any domain has a count."""
        return any(counts.any() for _, counts in self.counts.values())

    def meeting(self, at: At) -> Mask:
        """Return whether a node has one of the counted pods in any of its domains."""
        return _any(counts[column.codes[at]] > 0 for column, counts in self.counts.values())

    def apart(self, at: At) -> Mask:
        """Return whether a node has none in the domain of one of the keys, or is in no such domain."""
        return _any(counts[column.codes[at]] <= 0 for column, counts in self.counts.values())

    def outside(self, at: At) -> Mask:
        """Return whether a node lacks one of the keys."""
        return _any(column.codes[at] == ABSENT for column, _ in self.counts.values())


def _any(masks: Iterable[Mask]) -> Mask:
    """Return whether any of one or more holds."""
    found, *others = masks
    for each in others:
        found = found | each
    return found


class AffinityCounts:
    """PreFilter's counts for one task: pods that match its affinity, pods that match its anti-affinity, and pods whose
    anti-affinity matches it.
    """

    def __init__(self, session: Session, placed: Placed, task: Task, own: OwnTerms) -> None:
        self.task, self._own, self._session = task, own, session
        self._company, self._enemies, self._hosts = DomainCounts(), DomainCounts(), DomainCounts()
        for term, column in own.affinity:
            assert own.companions is not None
            self._company.count(term.key, column, own.companions.counts())
        for term, column, matching in own.anti:
            self._enemies.count(term.key, column, matching.counts())
        index = placed.reader(TermsIndex, session.objects)
        for term, holders in index.anti_terms(task) if index.any_anti else ():
            there = holders.per_node(session.nodes.count) * index.anti_nodes
            self._hosts.count(term.key, label_column(session.nodes, term.key), there)

    def copy(self) -> AffinityCounts:
        """Return an independent copy."""
        twin = copy(self)
        twin._company, twin._enemies, twin._hosts = self._company.copy(), self._enemies.copy(), self._hosts.copy()
        return twin

    @property
    def concerns(self) -> bool:
        """Return whether the task, or a pod there, has a term that could keep it from a node: else PreFilter skips."""
        return self._own is not NO_TERMS or self._hosts.anywhere()

    def move(self, other: Task, row: int, sign: int, *, is_host: bool = True) -> None:
        """Count another pod that is put on a node (sign 1) or taken off it (-1); `is_host`: its own terms
        count, too.
        """
        own, where, labels = self._own, other.namespace, other.labels
        # kube-scheduler counts a pod as company only when it matches every affinity term.
        if all(term.matches(where, labels) for term, _ in own.affinity):
            for term, column in own.affinity:
                self._company.move(term.key, column, row, sign)
        for term, column, _ in own.anti:
            if term.matches(where, labels):
                self._enemies.move(term.key, column, row, sign)
        if is_host and other.template.affinity:
            self._move_host(other, row, sign)

    def _move_host(self, other: Task, row: int, sign: int) -> None:
        task, nodes, objects = self.task, self._session.nodes, self._session.objects
        home = namespace_labels(objects, task.namespace)
        for term in readable_terms_of(other.template, other.namespace).anti:
            if term.matches(task.namespace, task.labels, home):
                self._hosts.move(term.key, label_column(nodes, term.key), row, sign)

    def refusals(self, at: At) -> Iterator[tuple[int, Mask]]:
        """Yield the places in REASONS, in their order, each with the nodes refused for that reason and no earlier
        one.
        """
        if self._own.affinity:
            yield 0, self._without_company(at)
        if self._enemies.counts:
            yield 1, self._enemies.meeting(at)
        if self._hosts.counts:
            yield 2, self._hosts.meeting(at)

    def _without_company(self, at: At) -> Mask:
        """Return where the first pod of a series may start: anywhere while no pod matches, if it would match itself."""
        # Else the first pod of a series that wants its own company could never start (filtering.go,
        # satisfyPodAffinity).
        if self._own.matches_itself and not self._company.anywhere():
            return self._company.outside(at)
        return self._company.apart(at)


EVERYWHERE: Final = slice(None)
FEW: Final = 8
"""Moves of pods that cost less, one by one, than counting all pods anew."""


class AffinityCodes:
    """The rule's answers, computed again whenever pods were put on a node or taken off it.

    A few of them move the counts one by one: to count all anew each time costs `bench spread` 7 % more.
    """

    def __init__(self, session: Session, placed: Placed, task: Task, own: OwnTerms) -> None:
        self._session, self._placed, self._task, self._own = session, placed, task, own
        self._index = placed.reader(TermsIndex, session.objects)
        self._numbers = [session.reasons.intern(reason) for reason in REASONS]
        self._counts: AffinityCounts | None = None
        self._read = 0  # of the log

    def __call__(self, rows: Rows, /) -> IntArray:
        """Return the reason number per row, int32 [len(rows)]."""
        counts, read, log = self._counts, self._read, self._placed.log
        if counts is None or len(log) - read > FEW:
            counts = self._counts = AffinityCounts(self._session, self._placed, self._task, self._own)
        else:
            for other, row, sign in log[read:]:
                counts.move(other, row, sign, is_host=bool(self._index.anti_nodes[row]))
        self._read = len(log)
        codes: IntArray = np.zeros(self._session.nodes.count, dtype=np.int32)
        for place, mask in reversed([*counts.refusals(EVERYWHERE)]):  # the first one stands
            codes[mask] = self._numbers[place]
        return codes[rows]


class PodAffinityFilter(ReadsLabelsInPlay):
    """The filter."""

    name = NAME

    def __init__(self, placed: Placed) -> None:
        self._placed = placed

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the answers; None when neither the task nor a pod there has required terms.

        Raises FitFailure for a selector that is not valid.
        """
        affinity, own = task.template.affinity, NO_TERMS
        if affinity and (affinity.get("podAffinity") or affinity.get("podAntiAffinity")):
            own = own_terms(session, self._placed, task, self._terms(task))
        if own is NO_TERMS and not self.is_concerned(session):
            return None
        self.in_play = True
        codes = AffinityCodes(session, self._placed, task, own)
        return ColumnRule(codes, Volatility.GLOBAL, follow=self._placed.version)

    def is_concerned(self, session: Session) -> bool:
        """Return whether a pod on a node keeps others away."""
        # Most clusters have no such pod: then nothing is counted.
        return has_terms(self._placed) and self._placed.reader(TermsIndex, session.objects).any_anti

    @staticmethod
    def _terms(task: Task) -> PodTerms:
        try:
            return terms_of(task.template, task.namespace)
        except SelectorError as error:
            text = f"plugin {NAME} pre-predicates failed parsing pod: {error}"
            raise FitFailure(Reason(NAME, Code.ERROR, text)) from error


# --- Trials
# Source: Volcano `plugins/predicates` (SimulateAddTask, SimulateRemoveTask, SimulatePredicate) and kube-scheduler
# `interpodaffinity` (AddPod, RemovePod): PreFilter's counts are moved by hand, then one node is filtered again.

STATE_KEY: Final = "predicates"


def _readable(task: Task) -> PodTerms:
    try:
        return terms_of(task.template, task.namespace)
    except SelectorError:  # PreFilter has refused it already
        return readable_terms_of(task.template, task.namespace)


class AffinityTrial:
    """The rule's counts for one task to be placed; a trial moves them."""

    def __init__(self, counts: AffinityCounts) -> None:
        self._counts = counts
        self.skipped = not counts.concerns

    @classmethod
    def of(cls, session: Session, placed: Placed, task: Task) -> AffinityTrial:
        """Return the counts before any move."""
        return cls(AffinityCounts(session, placed, task, own_terms(session, placed, task, _readable(task))))

    def copy(self) -> AffinityTrial:
        """Return an independent copy."""
        return self if self.skipped else AffinityTrial(self._counts.copy())

    @property
    def task(self) -> Task:
        """Return the task to be placed."""
        return self._counts.task

    def move(self, other: Task, row: int, sign: int) -> None:
        """Count another pod that is put on a node (sign 1) or taken off it (-1)."""
        if not self.skipped:
            self._counts.move(other, row, sign)

    def refusal(self, row: int) -> str | None:
        """Return why the node refuses the task as the trial stands; None when it does not."""
        if not self.skipped:
            for place, refused in self._counts.refusals(row):
                if refused:
                    return REASONS[place].text
        return None


class Trials:
    """The plugin's part in a trial: `state` belongs to the trial, and holds the counts under the plugin's name."""

    def __init__(self, session: Session, placed: Placed) -> None:
        self._session, self._placed = session, placed
        self._counted: tuple[int, AffinityTrial] | None = None

    def forget(self) -> None:
        """Forget the counts: another session begins."""
        self._counted = None

    def _trial(self, state: State, preemptor: Task) -> AffinityTrial:
        trial: AffinityTrial | None = state.get(STATE_KEY)
        if trial is None:
            trial = state[STATE_KEY] = self._as_it_stands(preemptor).copy()
        return trial

    def _as_it_stands(self, preemptor: Task) -> AffinityTrial:
        """Return the counts before the trial: the same for every node, until a pod comes or goes."""
        # A dry run asks node after node: counting for each of them would cost all pods each time.
        changes, counted = len(self._session.nodes.touched), self._counted
        if counted is None or counted[0] != changes or counted[1].task is not preemptor:
            counted = self._counted = changes, AffinityTrial.of(self._session, self._placed, preemptor)
        return counted[1]

    def is_quiet(self, preemptor: Task) -> bool:
        """Return whether no affinity concerns the preemptor, so that a trial of it needs no counts."""
        affinity = preemptor.template.affinity
        asks = affinity.get("podAffinity") or affinity.get("podAntiAffinity")
        if not asks and not self._placed.reader(TermsIndex, self._session.objects).any_anti:
            return True  # no pod needs counting
        return self._as_it_stands(preemptor).skipped

    def add(self, state: State, preemptor: Task, task: Task, node: int) -> str | None:
        """Put the task back on the node."""
        self._trial(state, preemptor).move(task, node, 1)
        return None

    def remove(self, state: State, preemptor: Task, task: Task, node: int) -> str | None:
        """Remove the task from the node."""
        self._trial(state, preemptor).move(task, node, -1)
        return None

    def predicate(self, state: State, preemptor: Task, node: int) -> str | None:
        """Return why the node refuses the preemptor as the trial stands; None when it does not."""
        return self._trial(state, preemptor).refusal(node)
