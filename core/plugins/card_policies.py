# SPDX-License-Identifier: Apache-2.0
"""fgd, bestfit, dotprod, gpuclustering, gpupacking: score nodes by the cards and CPU that a pod would leave.

Source: "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent" (USENIX ATC
2023). The cards are deviceshare's virtual GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from pumice.config.arguments import INTEGER, LIST, NUMBER, Argument, ArgumentKind, PluginArguments
from pumice.core.cached import cached
from pumice.core.devices.milli import (
    FULL,
    MODELS,
    CardAsk,
    CardClass,
    Fragmentation,
    NodeStates,
    TypicalPods,
    best_fit,
    clustering,
    dot_product,
    packing,
    typical_of,
)
from pumice.core.devices.vgpu import Vgpu
from pumice.core.devices.vgpu.asking import UNSAID, USE
from pumice.core.life.task import TaskStatus
from pumice.core.objects.metadata import Object, is_mapping
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.rules import ColumnRule
from pumice.core.state.dimensions import CPU

if TYPE_CHECKING:
    import numpy.typing as npt

    from pumice.core.devices.milli import IntArray
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray, RowArray
    from pumice.core.session.points.rules import Score
    from pumice.core.session.session import Session

    Scores = tuple[FloatArray, IntArray | None]
    from collections.abc import Hashable, Iterable

    from pumice.core.devices.milli import BoolArray, IntArray

# --- Policies

# --- Scores by class of pod


class Scorer(Protocol):
    """Scores some nodes for a pod."""

    def __call__(
        self, states: NodeStates, ask: CardAsk, rows: npt.NDArray[np.intp], /
    ) -> tuple[FloatArray, IntArray | None]:
        """Return the scores of the nodes (`rows`, as they stand) for a pod [R], and the card that it gets first [R], -1
        for any; None for any card everywhere.
        """
        ...


Pick = Callable[["NodeStates", "CardAsk"], int]
"""(one node, as it was before a pod came, what the pod asks for) -> the card that it is to get first, -1 for any."""


class ScoringPolicy(NamedTuple):
    """A score of nodes for a pod, and the card of its node that it gets first; None for any, whatever the pod."""

    scores: Scorer
    pick: Pick | None


@dataclass(slots=True)
class Kept:
    """The `worth` and `card` of each node [N] as of the first `read` touches of the session."""

    worth: FloatArray
    card: IntArray
    read: int


class KeptScores:
    """Keeps scores of nodes. A score depends on the node's free amounts and the pod's class, and is computed again only
    for touched nodes.
    """

    def __init__(self, session: Session, columns: CardColumns, policy: ScoringPolicy) -> None:
        self._nodes, self._columns, self._policy = session.nodes, columns, policy
        self._kept: dict[CardWish, Kept] = {}

    def of(self, wish: CardWish) -> FloatArray:
        """Return the scores of all nodes for a class; the caller must not change them."""
        return self._renewed(wish).worth

    def _renewed(self, wish: CardWish) -> Kept:
        kept, touched = self._kept.get(wish), self._nodes.touched
        if kept is None:
            count = self._nodes.count
            kept = self._kept[wish] = Kept(np.zeros(count), np.full(count, -1), len(touched))
            self._look(kept, wish, np.arange(count))
        elif kept.read < len(touched):
            # One touch since is the usual case: no set, no sorting.
            fresh = touched[kept.read] if len(touched) == kept.read + 1 else None
            rows = [fresh] if fresh is not None else sorted(set(touched[kept.read :]))
            kept.read = len(touched)
            self._look(kept, wish, np.array(rows, dtype=np.intp))
        return kept

    def _look(self, kept: Kept, wish: CardWish, rows: npt.NDArray[np.intp]) -> None:
        columns = self._columns
        # What a pod asks for in thousandths of a card depends on the card's size.
        for number, size in enumerate(columns.sizes.tolist()):
            some = rows if len(columns.sizes) == 1 else rows[columns.size[rows] == number]
            if len(some):
                worth, card = self._policy.scores(columns.states(some), wish.of(size), some)
                kept.worth[some] = worth
                if card is not None:
                    kept.card[some] = card

    def card(self, wish: CardWish, row: int, pick: Pick) -> int:
        """Return the card of a node that a pod just put there gets first, -1 for any."""
        kept, touched = self._kept.get(wish), self._nodes.touched
        # Nothing but this placement came since, so the card that the score chose still holds.
        if kept is not None and kept.read >= len(touched) - 1 and touched[-1] == row:
            return int(kept.card[row])
        states = self._columns.states(np.array([row]))
        size = int(self._columns.sizes[self._columns.size[row]])
        # The pod's own CPU is added back: `pick` is asked about the node as it was before the pod came.
        return pick(states._replace(cpu=states.cpu + wish.cpu), wish.of(size))


SHARED = 0
"""The class of pods that share a card; of others it is how many cards they have."""


class FragmentationGradient:
    """Scores nodes by the gradient of the fragmentation of typical pods.

    What nodes are worth as they stand is the same for every class: it is kept until they are touched.
    """

    def __init__(self, session: Session, typical: TypicalPods) -> None:
        self._fragmentation = Fragmentation(typical)
        self._touched, self._read = session.nodes.touched, 0
        self._now = np.full(session.nodes.count, np.nan)

    def scores(self, states: NodeStates, ask: CardAsk, rows: RowArray) -> Scores:
        """Return the scores of the nodes for a pod, [R], and which card it is to get first, [R], None for any."""
        fresh = self._touched[self._read :]
        self._read += len(fresh)
        # NaN: to be worked out again.
        self._now[fresh] = np.nan
        unknown = np.flatnonzero(np.isnan(self._now[rows]))
        if len(unknown):
            self._now[rows[unknown]] = self._fragmentation.of(states.at(unknown))
        return self._fragmentation.scores(states, ask, self._now[rows])

    def pick(self, state: NodeStates, ask: CardAsk) -> int:
        """Return the card of one node that a pod gets first, in the node's state before it came."""
        return int(self._fragmentation.scores(state, ask)[1][0])


def by_room(columns: CardColumns, rule: Callable[[NodeStates, CardAsk, tuple[int, int]], FloatArray]) -> ScoringPolicy:
    """Score nodes by their room relative to the largest node's."""

    def scores(states: NodeStates, ask: CardAsk, _rows: RowArray) -> Scores:
        return rule(states, ask, columns.most), None

    return ScoringPolicy(scores, pick=None)


def _packed(states: NodeStates, ask: CardAsk, _rows: RowArray) -> Scores:
    return packing(states, ask), None


PACKING: Final = ScoringPolicy(_packed, pick=None)


class GpuClustering:
    """Prefers nodes that hold pods with as many cards, counted as they come and go."""

    def __init__(self, session: Session, columns: CardColumns) -> None:
        self._columns = columns
        self._held: dict[int, IntArray] = {}
        self._total = np.zeros(session.nodes.count, dtype=np.int64)
        for row in np.flatnonzero(columns.there.any(axis=1)).tolist():
            for task in session.nodes.tasks_on(row):
                self.count(task, row, 1)

    def count(self, task: Task, row: int, sign: int) -> None:
        """Count a pod that came to a node, or left it."""
        size = int(self._columns.sizes[self._columns.size[row]])
        ask = self._columns.wish_of(task).of(size)
        if ask.cards:
            self._of(ask)[row] += sign
            self._total[row] += sign

    def _of(self, ask: CardAsk) -> IntArray:
        kind = SHARED if ask.is_shared else ask.cards
        return self._held.setdefault(kind, np.zeros(len(self._total), dtype=np.int64))

    def scores(self, states: NodeStates, ask: CardAsk, rows: RowArray) -> Scores:
        """Return the scores of the nodes for a pod, [R], and which card it is to get first, [R], None for any."""
        own = self._of(ask)[rows]
        return clustering(states, ask, self._columns.most, own, self._total[rows] - own), None


# --- Cards in thousandths

ENDED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.UNKNOWN)


class CardWish(NamedTuple):
    """The request of a pod: milli-cores of CPU, cards, MiB of each or, where more than 0, per cent of each."""

    cpu: int
    cards: int
    memory: int
    percent: int
    models: str

    def of(self, size: int) -> CardAsk:
        """Return the request in thousandths of cards with so many MiB: a share of one is rounded up."""
        milli = FULL * self.percent // 100 if self.percent else -(-FULL * self.memory // size) if size else 0
        return CardAsk(self.cpu, self.cards, min(milli, FULL) if self.cards else 0)


class CardColumns:
    """Columns over node rows. `sizes`: the distinct MiB of nodes' cards, `size`: which of them each node has; `models`:
    the distinct types of cards; `most`: milli-cores and thousandths of cards of the largest nodes.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.family = next((each for each in session.devices if isinstance(each, Vgpu)), None)
        count = session.nodes.count
        kinds = [] if self.family is None else self.family.cards.types
        self.models = [*kinds, ""]
        first = np.full(count, -1) if self.family is None else self.family.cards.kind[:, :1].max(axis=1, initial=-1)
        self.model: IntArray = np.where(first >= 0, first, len(kinds))
        memory = np.zeros((count, 1), dtype=np.int64) if self.family is None else self.family.cards.memory
        self._memory: IntArray = memory
        self.there: BoolArray = memory > 0
        self.sizes, self.size = np.unique(memory.max(axis=1, initial=0), return_inverse=True)
        cards = FULL * np.count_nonzero(self.there, axis=1).max(initial=1)
        self.most = int(session.nodes.allocatable[CPU].max(initial=1.0)), int(cards)
        self._wishes: dict[tuple[int, str], CardWish] = {}

    def states(self, rows: slice | npt.NDArray[np.intp]) -> NodeStates:
        """Return some nodes' states."""
        memory, there = self._memory[rows], self.there[rows]
        if self.family is None:
            left = np.zeros(memory.shape, dtype=np.int64)
        else:
            left = FULL * (memory - self.family.memory[rows]) // np.maximum(memory, 1)
        return NodeStates(left, there, self._session.nodes.idle[CPU][rows].astype(np.int64), self.model[rows])

    def wish_of(self, task: Task) -> CardWish:
        """Return what the pod asks for: of several containers all cards together, each as large as the largest."""
        models = task.annotations.get(USE, "").replace(",", MODELS)
        key = task.template.number, models
        found = self._wishes.get(key)
        if found is None:
            asked = () if self.family is None else self.family.asked_of(task.template)
            percents = [each.percent for each in asked if each.percent != UNSAID]
            found = self._wishes[key] = CardWish(
                cpu=int(task.template.request.milli_cpu),
                cards=sum(each.cards for each in asked),
                memory=max((each.memory for each in asked), default=0),
                percent=max(percents, default=0),
                models=models,
            )
        return found

    def classes(self) -> Iterable[CardClass]:
        """Return the classes of all pods that have not ended, as if all cards were as large as the largest."""
        size = int(self.sizes.max(initial=0))
        status = self._session.jobs.status
        for task in self._session.snapshot.tasks.handles:
            if task is not None and status[task.row] not in ENDED:
                wish = self.wish_of(task)
                ask = wish.of(size)
                yield CardClass(ask.cpu, ask.milli, ask.cards, wish.models)


class CardScorer:
    """Scores nodes by a policy. Cards are read when a pod is first scored: deviceshare may come later in the tiers."""

    def __init__(self, plugin: CardPolicy, session: Session) -> None:
        self.name = plugin.name
        self.reads = Reads(kind=_models)
        self._plugin, self._session = plugin, session

    @cached
    def columns(self) -> CardColumns:
        """Return the session's cards."""
        return CardColumns(self._session)

    @cached
    def policy(self) -> ScoringPolicy:
        """Return the policy over them."""
        return self._plugin.policy(self._session, self.columns)

    @cached
    def kept(self) -> KeptScores:
        """Return the scores; from now on the policy chooses the first card."""
        kept, columns = KeptScores(self._session, self.columns, self.policy), self.columns
        pick = self.policy.pick
        if columns.family is not None and pick is not None:
            columns.family.prefers = lambda task, row: kept.card(columns.wish_of(task), row, pick)
        return kept

    def prepare(self, session: Session, task: Task) -> Score:
        """Return what scores nodes for the task (PreScore)."""
        kept, wish, weight = self.kept, self.columns.wish_of(task), self._plugin.weight
        return ColumnRule(lambda rows: kept.of(wish)[rows] * weight)


def _models(task: Task) -> Hashable:
    return task.annotations.get(USE)


def weight_of(plugin: str) -> Argument[int]:
    """Return the argument for the weight of a plugin."""
    return Argument(f"{plugin}.weight", INTEGER, 1, "What its scores count.")


def _share(value: object) -> float:
    number = NUMBER.read(value)
    if not 0 < number <= 100:
        raise ValueError(value)
    return number


def _classes(value: object) -> dict[CardClass, int]:
    """Return the classes in an argument, and the number of pods that each stands for."""
    listed, found = LIST.read(value), dict[CardClass, int]()
    if not listed:
        raise ValueError
    for each in listed:
        pod, pods = _class(each if is_mapping(each) else {"": None})
        found[pod] = found.get(pod, 0) + pods
    return found


def _class(said: Object) -> tuple[CardClass, int]:
    numbers, models = {name: number for name, number in said.items() if name != "models"}, said.get("models", "")
    counts = all(type(number) is int and number >= 0 for number in numbers.values())
    if not counts or not numbers.keys() <= {"cpu", "milli", "cards", "pods"} or not isinstance(models, str):
        raise ValueError(said)
    cpu, milli, cards = (numbers.get(name, 0) for name in ("cpu", "milli", "cards"))
    return CardClass(cpu, milli, cards, models), numbers.get("pods", 1)


COVERAGE: Final = Argument(
    "fgd.coverage",
    ArgumentKind("a number above 0, at most 100", _share),
    95.0,
    "The most frequent classes count, until so many per cent of the pods are.",
    "95",
)
CLASSES: Final = Argument(
    "fgd.typicalPods",
    ArgumentKind(
        "a list of classes of pods, each of some of cpu, milli, cards, pods (whole numbers) and models (a text)",
        _classes,
    ),
    {},
    "By which fragments are reckoned: cpu in milli-cores, milli in thousandths of each card, cards, models such as "
    "`A100|V100`, and how many pods are of that class.",
    "the pods of the session",
)


class CardPolicy(BuiltInPlugin):
    """Scores nodes by their cards. Its first argument is the weight; 0 leaves the scorer out."""

    of_volcano = False
    listens = ("NodeOrder",)

    def __init__(self, arguments: PluginArguments) -> None:
        self.weight: int = self.arguments[0].of(arguments)

    def policy(self, session: Session, columns: CardColumns) -> ScoringPolicy:
        """Return the policy over a session's cards."""
        raise NotImplementedError

    def on_session_open(self, session: Session) -> None:
        """Register the scorer."""
        if self.weight:
            session.points.node_order.add(self.name, [CardScorer(self, session)])


class Fgd(CardPolicy):
    """Fragmentation gradient descent."""

    name = "fgd"
    says = "places pods on cards so that as little as can be is left that typical pods cannot use"
    arguments = (weight_of(name), CLASSES, COVERAGE)

    def __init__(self, arguments: PluginArguments) -> None:
        super().__init__(arguments)
        self._coverage, self._classes = COVERAGE.of(arguments), CLASSES.of(arguments)

    def policy(self, session: Session, columns: CardColumns) -> ScoringPolicy:
        """Return the policy over a session's cards."""
        counts = Counter(self._classes or columns.classes())
        typical = TypicalPods(typical_of(counts, self._coverage), columns.models, counts.total())
        gradient = FragmentationGradient(session, typical)
        return ScoringPolicy(gradient.scores, gradient.pick)


class BestFit(CardPolicy):
    """Prefers the fullest node."""

    name = "bestfit"
    says = "prefers nodes with the least CPU and cards left"
    arguments = (weight_of(name),)

    def policy(self, session: Session, columns: CardColumns) -> ScoringPolicy:
        """Return the policy over a session's cards."""
        return by_room(columns, best_fit)


class DotProd(CardPolicy):
    """Prefers the node whose room is least like the request."""

    name = "dotprod"
    says = "prefers nodes whose room is least like what a pod asks for"
    arguments = (weight_of(name),)

    def policy(self, session: Session, columns: CardColumns) -> ScoringPolicy:
        """Return the policy over a session's cards."""
        return by_room(columns, dot_product)


class GpuPacking(CardPolicy):
    """Prefers cards in use, then idle cards of nodes in use, then idle nodes."""

    name = "gpupacking"
    says = "prefers cards in use to idle ones, and these to idle nodes"
    arguments = (weight_of(name),)

    def policy(self, session: Session, columns: CardColumns) -> ScoringPolicy:
        """Return the policy over a session's cards."""
        return PACKING


class Clustering(CardPolicy):
    """Prefers nodes that hold pods with as many cards."""

    name = "gpuclustering"
    says = "prefers nodes that hold pods with as many cards"
    arguments = (weight_of(name),)

    def policy(self, session: Session, columns: CardColumns) -> ScoringPolicy:
        """Return the policy over a session's cards."""
        found = GpuClustering(session, columns)

        def came(task: Task, node: int) -> str | None:
            found.count(task, node, 1)
            return None

        def left(task: Task, node: int) -> str | None:
            found.count(task, node, -1)
            return None

        session.points.handle(came, left)
        return ScoringPolicy(found.scores, pick=None)
