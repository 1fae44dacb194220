"""The pods that are typical of a cluster or a trace: classes of pods with how many there are of each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.core.devices.milli.shares import BoolArray, IntArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

MODELS = "|"
"""Between the models of a class."""


class CardClass(NamedTuple):
    """Milli-cores of CPU, thousandths of each card, cards, and their models ("A|B", "" for any)."""

    cpu: int
    milli: int
    cards: int
    models: str = ""

    def suits(self, model: str) -> bool:
        """Whether cards of a model will do."""
        return not self.models or any(part.upper() in model.upper() for part in self.models.split(MODELS))


def typical_of(pods: Iterable[CardClass] | Mapping[CardClass, int], percent: float = 95.0) -> dict[CardClass, int]:
    """The most frequent classes, until they cover so many per cent of the pods; equals: the greater class first.

    `pods`: each by its class, or how many there are of each class.
    """
    counts = Counter(pods)
    wanted, covered = counts.total() * percent / 100.0, 0
    found: dict[CardClass, int] = {}
    for pod in sorted(counts, key=lambda pod: (counts[pod], pod), reverse=True):
        if covered >= wanted:
            break
        found[pod] = counts[pod]
        covered += counts[pod]
    return found


class TypicalPods:
    """Classes as columns [T], in their order. `share`: of all typical pods; `level`: which of the `steps` (distinct
    thousandths asked for, ascending [K]) each asks for; `of_cards`: whether it asks for any.

    `total`: how many pods there were before the rare ones were left out (None: these). The shares are worked out of it
    as the authors do: their last digits count, see `Fragmentation`.
    """

    def __init__(self, classes: Mapping[CardClass, int], models: Sequence[str], total: int | None = None) -> None:
        counts = np.array([*classes.values()], dtype=np.float64)
        covered = sum(classes.values())
        among = max(covered if total is None else total, 1)
        self.share: npt.NDArray[np.float64] = counts / among / (max(covered, 1) / among)
        self.cards: IntArray = np.array([pod.cards for pod in classes], dtype=np.int64)
        self.cpu: IntArray = np.array([pod.cpu for pod in classes], dtype=np.int64)
        self.of_cards: BoolArray = self.cards > 0
        milli = np.array([pod.milli for pod in classes], dtype=np.int64)
        self.steps, self.level = np.unique(milli, return_inverse=True)
        suits = [[pod.suits(model) for pod in classes] for model in models]
        self.suits: BoolArray = np.array(suits, dtype=np.bool_).reshape(len(models), len(classes))
