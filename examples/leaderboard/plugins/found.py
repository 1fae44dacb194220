"""Scoring rules that programs found, in our words, and one that a search here found, as plugins.

`alphaevolve` is the function that Novikov et al. ("AlphaEvolve", 2025, section 3.3.1) publish for Google's clusters:
what a pod asks for of cpu and of memory, each as a part of what is free on the node; the two parts, and their ratios
either way, are added up, and the less the better. So it takes nodes with much room, and keeps what is left in
proportion. Where cards are asked for, they stand in memory's place.

`funsearch` is the function that Romera-Paredes et al. ("FunSearch", Nature 625, 2024, figure 6) publish for packing
bins: a bin loses by its room times the room that would be left; the fullest one that fits gains by the size of the item
and loses by the fourth power of what would be left, so that it is taken only where the item fits tightly. A node's
cards (cpu, where none are asked for) are the bin; the largest node has 150 units, as the bins had that it was found on.

`hold` is a filter, found by a search over its two arguments: whole cards are kept for pods that fill them.
A pod that shares a card opens no idle one if, with it and what other common pods ask for, more than `waste` thousandths
must stay free; from `start` (of all cards allocated) on. It gives up some pods for more of the cards in use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from pumice.core.devices.milli import FULL
from pumice.core.devices.vgpu.settings import MEMORY
from pumice.core.plugins.card_policies import CardColumns
from pumice.plugins import (
    Code,
    ColumnRule,
    FloatArray,
    IntArray,
    PluginBuilder,
    Reads,
    Reason,
    Rows,
    Session,
    Task,
    Volatility,
)

LEAST = 1e-3
"""Least amount that counts as requested or free: ratios stay finite."""
BIN = 150.0
COMMON = 0.01
"""Part of all pods from which on a size is common."""


class _Scorer:
    """A rule about nodes by what a pod's template asks for."""

    name = ""
    reads = Reads()

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._card = str(arguments.get("resource", "nvidia.com/gpu"))

    def on_session_open(self, session: Session) -> None:
        """Register the score."""
        session.points.node_order.add(self.name, [self])

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def prepare(self, session: Session, task: Task) -> ColumnRule[np.float64]:
        """Return the score of a pod's template: it follows from what is free on each node."""
        raise NotImplementedError

    def scarce(self, session: Session, task: Task, otherwise: str) -> int:
        """Return the dimension of the cards, where the pod asks for some, or of another resource."""
        names = session.dims.names
        has_cards = self._card in names and dict(task.template.items).get(names.index(self._card))
        return names.index(self._card if has_cards else otherwise)


class AlphaEvolve(_Scorer):
    """Scores nodes by the sum of the asked parts of what is free, and of their ratios; the less the better."""

    name = "alphaevolve"

    def prepare(self, session: Session, task: Task) -> ColumnRule[np.float64]:
        """Return the score of a pod's template: it follows from what is free on each node."""
        asked, idle = dict(task.template.items), session.nodes.idle
        cpu, other = session.dims.names.index("cpu"), self.scarce(session, task, "memory")

        def score(rows: Rows) -> FloatArray:
            first, second = (max(asked.get(at, 0.0), LEAST) / np.maximum(idle[at][rows], LEAST) for at in (cpu, other))
            found: FloatArray = -(first + second + first / second + second / first)
            return found

        return ColumnRule(score, Volatility.ROW)


class FunSearch(_Scorer):
    """Scores nodes as bins: a nearly full one only where the pod fits tightly, else one with little room."""

    name = "funsearch"

    def prepare(self, session: Session, task: Task) -> ColumnRule[np.float64]:
        """Return the score of a pod's template, which depends on the nodes that may take it as a set."""
        at = self.scarce(session, task, "cpu")
        unit = BIN / max(float(session.nodes.allocatable[at].max(initial=0.0)), LEAST)
        item = max(dict(task.template.items).get(at, 0.0) * unit, LEAST)
        idle = session.nodes.idle

        def finish(room: FloatArray) -> FloatArray:
            score: FloatArray = 1000.0 - room * (room - item)
            fullest = int(np.argmin(room))
            score[fullest] = score[fullest] * item - (room[fullest] - item) ** 4
            return score

        return ColumnRule(lambda rows: idle[at][rows] * unit, Volatility.ROW, finish=finish)


class Hold:
    """Keeps whole cards for pods that fill them."""

    name = "hold"
    reads = Reads()

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._start, self._waste = float(arguments.get("start", 0.0)), float(arguments.get("waste", 50.0))

    def on_session_open(self, session: Session) -> None:
        """Register the filter. Cards are read when the first pod is asked about: deviceshare may open later."""
        self._session = session
        self._read: tuple[CardColumns, list[int]] | None = None
        session.points.predicate.add(self.name, [self])

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def _cards(self) -> tuple[CardColumns, list[int]]:
        """Return the cards, and what common pods can fill of one together."""
        if self._read is None:
            columns = CardColumns(self._session)
            classes = Counter(columns.classes())
            shares = Counter[int]()
            for each, count in classes.items():
                if each.cards == 1 and each.milli < FULL:
                    shares[each.milli] += count
            common = [milli for milli, count in shares.items() if count >= COMMON * classes.total()]
            self._read = columns, sums_of(common)
        return self._read

    def prepare(self, session: Session, task: Task) -> ColumnRule[np.int32] | None:
        """Refuse nodes without a card in use that has room; None for pods that waste little."""
        columns, sums = self._cards()
        ask = columns.wish_of(task).of(int(columns.sizes.max(initial=0)))
        room = FULL - ask.milli
        if not ask.is_shared or room - max(each for each in sums if each <= room) <= self._waste:
            return None
        reason = Reason(self.name, Code.UNSCHEDULABLE, "idle cards are kept for pods that fill them")
        number, cards = session.reasons.intern(reason), session.dims.names.index(MEMORY)
        nodes, whole = session.nodes, float(session.nodes.allocatable[cards].sum())

        def is_held() -> bool:
            return float(nodes.used[cards].sum()) >= self._start * whole

        def refuse(rows: Rows) -> IntArray:
            states = columns.states(np.arange(nodes.count)[rows])
            opened = states.there & (states.left < FULL) & (states.left >= ask.milli)
            return np.where(opened.any(axis=1) | (not is_held()), 0, number).astype(np.int32)

        return ColumnRule(refuse, Volatility.GLOBAL, follow=lambda: len(nodes.touched) if is_held() else -1)


def sums_of(sizes: Iterable[int]) -> list[int]:
    """Return what pods of these sizes, any number of each, can fill of one card."""
    reached = {0}
    for size in sizes:
        for before in range(FULL + 1 - size):
            if before in reached:
                reached.add(before + size)
    return sorted(reached)


PLUGINS: dict[str, PluginBuilder] = {each.name: each for each in (AlphaEvolve, FunSearch, Hold)}
