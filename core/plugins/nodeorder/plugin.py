# SPDX-License-Identifier: Apache-2.0
"""The plugin nodeorder: kube-scheduler's scorers with Volcano's weights.

Source: Volcano `plugins/nodeorder/nodeorder.go`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from pumice.config.arguments import INTEGER, Argument, PluginArguments
from pumice.core.kube.affinity import TermsIndex, has_terms, resolved, terms_of
from pumice.core.kube.allocatable import capacity
from pumice.core.kube.node_selector import label_column, rows_in_term
from pumice.core.kube.placed import placed_pods
from pumice.core.kube.pod_index import PodIndex
from pumice.core.kube.scores import MAX_NODE_SCORE, container_images, image_scores, normalise
from pumice.core.kube.selectors import SelectorError
from pumice.core.kube.taints import count_soft_untolerated
from pumice.core.objects.metadata import Object, section
from pumice.core.plugins.nodeorder.balanced_allocation import NAMES, BalancedAllocation, nonzero_own, nonzero_taken
from pumice.core.plugins.nodeorder.topology_spread import TopologySpreadScorer
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.session.points.columns import ForTasks
from pumice.core.session.points.nodes import TEMPLATE_ONLY, Reads, ReadsLabelsInPlay, Volatility
from pumice.core.session.points.rules import ColumnRule
from pumice.core.state.derived import Like, derived
from pumice.core.state.dimensions import CellColumn, cells_of
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.core.kube.affinity import AffinityTerm
    from pumice.core.kube.node_selector import LabelColumn
    from pumice.core.kube.placed import Placed
    from pumice.core.kube.pod_index import Matching
    from pumice.core.kube.rows import NodeRows
    from pumice.core.kube.taints import Toleration
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.plugins.nodeorder.balanced_allocation import Taken
    from pumice.core.session.points.columns import At, RowReader, V
    from pumice.core.session.points.nodes import FloatArray, NodeScorer, Rows
    from pumice.core.session.points.rules import Score
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs

# --- InterPodAffinity: preferred affinity and anti-affinity, both ways
# Source: kube-scheduler `interpodaffinity/scoring.go`.


def spread_over_domains(column: LabelColumn, per_node: FloatArray) -> FloatArray:
    """Return the sum over the nodes of the same value of the key, per node [N]; 0 where the node lacks the key."""
    labelled = column.codes >= 0
    sums: FloatArray = np.zeros(len(column.values) + 1)  # the last is for nodes without the label
    np.add.at(sums, column.codes[labelled], per_node[labelled])
    return sums[column.codes]


class PodAffinityScores:
    """Weights of the terms that hold in a node's domains: the task's own, and those of the pods there that match it."""

    def __init__(
        self, session: Session, placed: Placed, task: Task, own: list[tuple[AffinityTerm, Matching]], weight: float
    ) -> None:
        self._nodes, self._task, self._own, self._weight = session.nodes, task, own, weight
        self._index = placed.reader(TermsIndex, session.objects)

    def __call__(self, rows: Rows, /) -> FloatArray:
        """Return the raw score per row, float64 [len(rows)]: the sum of weights."""
        per_key: dict[str, FloatArray] = {}
        for term, matching in self._own:
            self._add(per_key, term, matching.counts().astype(np.float64))
        for term, holders in self._index.preferred_terms(self._task):
            there = holders.per_node(self._nodes.count)
            self._add(per_key, term, there if self._own else there * self._index.affinity_nodes)
        raw: FloatArray = np.zeros(self._nodes.count)
        for key, there in per_key.items():
            raw += spread_over_domains(label_column(self._nodes, key), there)
        return raw[rows]

    def _add(self, per_key: dict[str, FloatArray], term: AffinityTerm, there: FloatArray) -> None:
        weighted = there * float(term.weight)
        per_key[term.key] = per_key[term.key] + weighted if term.key in per_key else weighted

    def finish(self, raw: FloatArray, /) -> FloatArray:
        """Return 0 for the lowest candidate, 100 for the highest, truncated, times the weight; 0 when all are equal."""
        lowest = raw.min() if raw.size else 0.0
        spread = raw.max() - lowest if raw.size else 0.0
        if spread <= 0.0:
            return np.zeros(raw.shape)
        # Divided first, then multiplied: scoring.go's order, which decides the last bit before the floor.
        return np.floor(100.0 * ((raw - lowest) / spread)) * self._weight


class PodAffinityScorer(ReadsLabelsInPlay):
    """Prefers nodes near pods that the task prefers, or that prefer the task."""

    name = "InterPodAffinity"

    def __init__(self, placed: Placed, weight: int) -> None:
        self._placed, self._weight = placed, float(weight)

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return the scores; None when neither the task nor a pod there has a readable preference."""
        own: list[tuple[AffinityTerm, Matching]] = []
        affinity = task.template.affinity
        if affinity and (affinity.get("podAffinity") or affinity.get("podAntiAffinity")):
            for term in self._preferred(session, task):
                question = self._placed.reader(PodIndex).matching(term.reach(), term.selector, terminating=True)
                own.append((term, question))
        if not own and not self.is_concerned(session):
            return None
        self.in_play = True
        scores = PodAffinityScores(session, self._placed, task, own, self._weight)
        return ColumnRule(scores, Volatility.GLOBAL, follow=self._placed.version, finish=scores.finish)

    def is_concerned(self, session: Session) -> bool:
        """Return whether a pod on a node has any terms."""
        return has_terms(self._placed) and self._placed.reader(TermsIndex, session.objects).any_affinity

    @staticmethod
    def _preferred(session: Session, task: Task) -> list[AffinityTerm]:
        try:
            terms = terms_of(task.template, task.namespace).preferred
        except SelectorError:  # admission refuses such terms; Volcano would give up scoring the task altogether
            return []
        return [resolved(term, session.objects, session.config.pumice.fix) for term in terms]


# --- NodeResourcesFit with the strategies LeastAllocated and MostAllocated over cpu and memory
# Source: kube-scheduler `noderesources/least_allocated.go`, `most_allocated.go`.

Own = tuple[float, float]
"""What a pod itself asks for: milli-cores, bytes."""
LEAST, MOST = "LeastAllocated", "MostAllocated"


@derived(NODES)
def counted(nodes: NodeSpecs) -> CellColumn:
    """Return how many of cpu and memory a node has, 1 for none."""
    present = [capacity(nodes, name).present.astype(np.float64) for name in NAMES]
    return cells_of(np.maximum(present[0] + present[1], 1.0))


class MeanPercent(NamedTuple):
    """The score weight * floor(mean of the percentages that are left or taken), over those of cpu and memory that the
    node has.

    Equal weights, so that is Go's integer division.
    """

    strategy: str
    taken: tuple[Taken, Taken]
    counted: CellColumn
    weight: float

    def __call__(self, read: RowReader[V], /) -> Callable[[Own, At], V]:
        """Return a function: (reader of columns) -> (own request, rows) -> the score."""
        cpu, memory = (
            taken.percent_left(read) if self.strategy == LEAST else taken.percent_taken(read) for taken in self.taken
        )
        counts, floor, weight = read.of(self.counted), read.floor, self.weight

        def score(own: Own, at: At) -> V:
            own_cpu, own_memory = own
            total = cpu(own_cpu, at)
            total += memory(own_memory, at)
            total /= counts[at]
            total = floor(total)
            # The usual weight is 1: one pass over all nodes less.
            return total if weight == 1.0 else total * weight

        return score


class Allocated:
    """LeastAllocated prefers nodes with the most left, MostAllocated those with the most taken."""

    reads = TEMPLATE_ONLY

    def __init__(self, session: Session, strategy: str, weight: int) -> None:
        self.name = f"NodeResourcesFit_{strategy}"
        rule = MeanPercent(strategy, nonzero_taken(session), counted(session.nodes), float(weight))
        self._rule, self._own = ForTasks(rule), nonzero_own(session)

    def prepare(self, session: Session, task: Task) -> Score:
        """Return the score for the task's template."""
        return ColumnRule(self._rule.of(self._own(task.template)))


# --- Static scores: they follow from node specs and pod template alone
# They are worked out once and kept until a node changes.


# --- NodeAffinity: the weights of the preferred terms a node matches
# Source: kube-scheduler `nodeaffinity` (Score, NormalizeScore).

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def preferred_terms(template: PodTemplate) -> Sequence[Object]:
    """Return the preferred node affinity terms: {"weight", "preference"}."""
    terms: list[Object] | None = section(template.affinity, "nodeAffinity").get(PREFERRED)
    return terms or []


def preference(nodes: NodeRows, terms: Sequence[Object]) -> FloatArray | None:
    """Return the sum of the weights of the matching terms [N]; None when no node matches any.

    Raises SelectorError for a term that is not valid.
    """
    total: FloatArray = np.zeros(nodes.count)
    for term in terms:
        weight = int(term.get("weight") or 0)
        if weight:
            total += weight * rows_in_term(nodes, term.get("preference") or {})
    return total if total.any() else None


@derived(NODES)
def _preference(nodes: NodeSpecs, terms: Like[Sequence[Object]]) -> FloatArray | None:
    try:
        return preference(nodes, terms.subject)
    except SelectorError:  # admission refuses such terms; Volcano would give up scoring the task altogether
        return None


def prefers(template: PodTemplate) -> bool:
    """Return whether the task has a preference: tasks without one share an answer."""
    return bool(preferred_terms(template))


class NodeAffinityScorer:
    """Prefers nodes that match the pod's preferred affinity."""

    name = "NodeAffinity"
    reads = Reads(concerns=prefers)

    def __init__(self, weight: int) -> None:
        self._weight = float(weight)

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return the scores for the task's template; None when nothing is preferred or nothing matches (then every node
        scores 0).
        """
        terms = preferred_terms(task.template)
        if not terms:
            return None
        raw = _preference(session.nodes, Like(msgspec.json.encode(terms, order="deterministic"), terms))
        return None if raw is None else ColumnRule(raw, finish=partial(normalise, weight=self._weight))


# --- TaintToleration: the fewer PreferNoSchedule taints are not tolerated, the better
# Source: kube-scheduler `tainttoleration` (Score).


@derived(NODES)
def _count(nodes: NodeSpecs, tolerations: Like[Sequence[Toleration]]) -> FloatArray | None:
    return count_soft_untolerated(nodes, tolerations.subject)


class TaintToleration:
    """Prefers nodes without untolerated PreferNoSchedule taints."""

    name = "TaintToleration"
    reads = TEMPLATE_ONLY

    def __init__(self, session: Session, weight: int) -> None:
        self._weight = float(weight)
        best = MAX_NODE_SCORE * self._weight
        # Without soft taints every node scores best: one array serves all templates of the session.
        self._untainted: Score = ColumnRule(np.full(session.nodes.count, best), constant=best)

    def prepare(self, session: Session, task: Task) -> Score:
        """Return the scores for the task's template; where no node has such a taint every node gets the highest
        score.
        """
        tolerations = task.template.tolerations
        content = msgspec.json.encode(tolerations, order="deterministic") if tolerations else b""
        raw = _count(session.nodes, Like(content, tolerations))
        if raw is None:
            return self._untainted
        return ColumnRule(raw, finish=partial(normalise, weight=self._weight, reverse=True))


# --- ImageLocality: nodes that have the pod's images
# Source: kube-scheduler `imagelocality`.


@derived(NODES)
def _scores(nodes: NodeSpecs, template: PodTemplate, weight: float) -> FloatArray | None:
    scores = image_scores(nodes, container_images(template))
    return None if scores is None else scores * weight


class ImageLocality:
    """Prefers nodes that have the images already."""

    name = "ImageLocality"
    reads = TEMPLATE_ONLY

    def __init__(self, weight: int) -> None:
        self._weight = float(weight)

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return the scores for the task's template; None when no node has enough of its images to count."""
        raw = _scores(session.nodes, task.template, self._weight)
        return None if raw is None else ColumnRule(raw)


_LIKED: Final = {
    "leastrequested": (1, "is idle"),
    "mostrequested": (0, "is full"),
    "nodeaffinity": (2, "is one that the pod prefers"),
    "podaffinity": (2, "is near the pods that the pod wants near, and far from others"),
    "balancedresource": (1, "has its resources used evenly"),
    "tainttoleration": (3, "has no taints that the pod does not tolerate"),
    "imagelocality": (1, "has the images"),
    "podtopologyspread": (2, "spreads the pods"),
}
WEIGHTS: Final = {
    name: Argument(f"{name}.weight", INTEGER, weight, f"How much it counts that a node {which}.")
    for name, (weight, which) in _LIKED.items()
}


class NodeOrder(BuiltInPlugin):
    """Registers a scorer for each weight that is not 0."""

    name = "nodeorder"
    says = "scores nodes as kube-scheduler does"
    listens = ("NodeOrder",)
    only_answers = True
    only_places = True
    arguments = tuple(WEIGHTS.values())

    def __init__(self, arguments: PluginArguments) -> None:
        self._weights = {name: weight.of(arguments) for name, weight in WEIGHTS.items()}

    def batch_scorers(self, session: Session) -> list[NodeScorer]:
        """Return the scorers over all candidates together; all are whole numbers, so that the order of summing is
        free.
        """
        weights, placed = self._weights, placed_pods(session)
        found: list[NodeScorer | None] = [
            Allocated(session, LEAST, weights["leastrequested"]) if weights["leastrequested"] else None,
            Allocated(session, MOST, weights["mostrequested"]) if weights["mostrequested"] else None,
            BalancedAllocation(session, weights["balancedresource"]) if weights["balancedresource"] else None,
            NodeAffinityScorer(weights["nodeaffinity"]) if weights["nodeaffinity"] else None,
            PodAffinityScorer(placed, weights["podaffinity"]) if weights["podaffinity"] else None,
            TaintToleration(session, weights["tainttoleration"]) if weights["tainttoleration"] else None,
            TopologySpreadScorer(placed, weights["podtopologyspread"]) if weights["podtopologyspread"] else None,
        ]
        return [scorer for scorer in found if scorer is not None]

    def on_session_open(self, session: Session) -> None:
        """Register ImageLocality per node and the others over the candidates."""
        weight = self._weights["imagelocality"]
        session.points.node_order.add(self.name, [ImageLocality(weight)] if weight else [])
        session.points.batch_node_order.add(self.name, self.batch_scorers(session))

    def can_go_on(self, session: Session) -> bool:
        """Return True: scorers read the columns, and the pods of the session's own books."""
        return True
