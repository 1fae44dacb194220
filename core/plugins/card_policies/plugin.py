"""The plugins: what their arguments say, and what is registered where."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from pumice.config.argument_types import CLASSES, SHARE
from pumice.config.arguments import Arguments
from pumice.core.devices.milli.shares import best_fit, dot_product
from pumice.core.devices.milli.typical import CardClass, TypicalPods, typical_of
from pumice.core.devices.vgpu.asking import USE
from pumice.core.once import once
from pumice.core.plugins.card_policies.columns import CardColumns
from pumice.core.plugins.card_policies.keeping import KeptScores, ScoringPolicy
from pumice.core.plugins.card_policies.policies import PACKING, FragmentationGradient, GpuClustering, by_room
from pumice.core.session.points.by_rows import RowsScore
from pumice.core.session.points.nodes import Reads

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.core.objects.pod import Task
    from pumice.core.plugins.card_policies.columns import CardWish
    from pumice.core.session.points.nodes import FloatArray, Rows
    from pumice.core.session.session import Session


COVERAGE = 95.0


class CardScore(RowsScore):
    """One class of pods at work."""

    def __init__(self, kept: KeptScores, wish: CardWish, weight: int) -> None:
        self._kept, self._wish, self._weight = kept, wish, weight

    def score(self, rows: Rows, /) -> FloatArray:
        """Raw score per row, shape [len(rows)]."""
        return self._kept.of(self._wish)[rows] * self._weight


class CardScorer:
    """Scores nodes by a policy. Cards are looked for when a pod is first scored: deviceshare may come later in the
    tiers.
    """

    def __init__(self, plugin: CardPolicy, session: Session) -> None:
        self.name = plugin.name
        self.reads = Reads(kind=_models)
        self._plugin, self._session = plugin, session

    @once
    def columns(self) -> CardColumns:
        """The session's cards."""
        return CardColumns(self._session)

    @once
    def policy(self) -> ScoringPolicy:
        """The policy over them."""
        return self._plugin.policy(self._session, self.columns)

    @once
    def kept(self) -> KeptScores:
        """The scores; from now on the policy says which card goes first."""
        kept, columns = KeptScores(self._session, self.columns, self.policy), self.columns
        pick = self.policy.pick
        if columns.family is not None and pick is not None:
            columns.family.prefers = lambda task, row: kept.card(columns.wish_of(task), row, pick)
        return kept

    def prepare(self, session: Session, task: Task) -> CardScore:
        """What scores nodes for the task (PreScore)."""
        del session
        return CardScore(self.kept, self.columns.wish_of(task), self._plugin.weight)


def _models(task: Task) -> Hashable:
    return task.annotations.get(USE)


class CardPolicy:
    """`NAME.weight` (1): what its scores count; 0 leaves it out."""

    name = ""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.weight = Arguments(self.name, arguments).get_int(f"{self.name}.weight", 1)

    def policy(self, session: Session, columns: CardColumns) -> ScoringPolicy:
        """The policy over a session's cards."""
        raise NotImplementedError

    def on_session_open(self, session: Session) -> None:
        """Register the scorer."""
        if self.weight:
            session.points.node_order.add(self.name, [CardScorer(self, session)])

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""


class Fgd(CardPolicy):
    """Fragmentation gradient descent. `fgd.typicalPods`: classes of pods ({cpu: milli-cores, milli: thousandths of each
    card, cards, models: "A|B", pods: how many}), without it the pods that are there; `fgd.coverage` (95): of which the
    most frequent classes count that make up so many per cent.
    """

    name = "fgd"

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        coverage = Arguments(self.name, arguments).get_float("fgd.coverage", COVERAGE)
        self._coverage = coverage if SHARE.holds(coverage) else COVERAGE
        self._classes = read_classes(arguments.get("fgd.typicalPods"))

    def policy(self, session: Session, columns: CardColumns) -> ScoringPolicy:
        """The policy over a session's cards."""
        counts = Counter(self._classes or columns.classes())
        typical = TypicalPods(typical_of(counts, self._coverage), columns.models, counts.total())
        gradient = FragmentationGradient(session, typical)
        return ScoringPolicy(gradient.scores, gradient.pick)


def read_classes(listed: object) -> dict[CardClass, int]:
    """The classes that an argument lists, with how many pods each stands for; none when one of them is no class."""
    found: dict[CardClass, int] = {}
    for said in cast("list[dict[str, Any]]", listed) if CLASSES.holds(listed) else []:
        cpu, milli, cards = (said.get(name, 0) for name in ("cpu", "milli", "cards"))
        pod = CardClass(cpu, milli, cards, said.get("models", ""))
        found[pod] = found.get(pod, 0) + said.get("pods", 1)
    return found


class BestFit(CardPolicy):
    """The fullest node."""

    name = "bestfit"

    def policy(self, session: Session, columns: CardColumns) -> ScoringPolicy:
        """The policy over a session's cards."""
        del session
        return by_room(columns, best_fit)


class DotProd(CardPolicy):
    """The node whose room is least like what is asked for."""

    name = "dotprod"

    def policy(self, session: Session, columns: CardColumns) -> ScoringPolicy:
        """The policy over a session's cards."""
        del session
        return by_room(columns, dot_product)


class GpuPacking(CardPolicy):
    """Cards in use, then idle cards of nodes in use, then idle nodes."""

    name = "gpupacking"

    def policy(self, session: Session, columns: CardColumns) -> ScoringPolicy:
        """The policy over a session's cards."""
        del session, columns
        return PACKING


class Clustering(CardPolicy):
    """Nodes that hold pods with as many cards."""

    name = "gpuclustering"

    def policy(self, session: Session, columns: CardColumns) -> ScoringPolicy:
        """The policy over a session's cards."""
        found = GpuClustering(session, columns)

        def came(task: Task, node: int) -> str | None:
            found.count(task, node, 1)
            return None

        def left(task: Task, node: int) -> str | None:
            found.count(task, node, -1)
            return None

        session.points.handle(came, left)
        return ScoringPolicy(found.scores, pick=None)
