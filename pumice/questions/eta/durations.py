# SPDX-License-Identifier: Apache-2.0
"""Estimates of how long a pod will run: quantiles of similar runs. A run that has not ended counts as longer than its
time so far.

The estimate of survival is Kaplan's and Meier's. Beyond the longest run that has ended it falls as a power of time
(Pareto's law); how fast is drawn, and less so where runs go on beyond it: twice as long is half as likely, about.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pumice.questions.eta.runs import EndedRun, RunKeys

LEVELS: Final = (("job", 3), ("shape", 5), ("template", 5), ("queue", 10), ("cluster", 10))
"""Groups of similar runs, and how many must have ended before a group is used."""
DEADLINE: Final = "activeDeadlineSeconds"
UNKNOWN: Final = ""
MOST: Final = 0.99
"""Nothing is said of the longest run of a hundred."""
FIRM: Final = 4.0
"""As many runs that had ended beyond the longest would say as much as is believed before any was seen."""
SLOWEST: Final = 0.1
LONGEST_S: Final = 1e10
TOLERANCE: Final = 1e-12
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Survival:
    """A survival curve. `lasted` seconds, rising, and the part of all runs that lasts longer than each; beyond, `falls`
    is the power of time by which it shrinks.
    """

    lasted: Floats
    left: Floats
    falls: float = 1.0

    @classmethod
    def of(
        cls, seen: Sequence[float], ended: Sequence[bool], weights: Floats | None = None, falls: float = 1.0
    ) -> Survival:
        """Return the curve of runs that were observed for so long and had ended then (at least one) or not; a run has a
        weight.
        """
        weights = np.ones(len(seen)) if weights is None else weights
        times, over = np.array(seen, dtype=np.float64), np.array(ended, dtype=np.bool_)
        lasted, whose = np.unique(times[over], return_inverse=True)
        ends = np.bincount(whose, weights=weights[over], minlength=len(lasted))
        order = np.argsort(times, kind="stable")
        heavier = np.concatenate((np.add.accumulate(weights[order][::-1])[::-1], [0.0]))  # by place: it and all longer
        at_risk = heavier[np.searchsorted(times[order], lasted)]
        return cls(lasted, np.multiply.accumulate(np.maximum(1.0 - ends / at_risk, 0.0)), falls)

    def quantile(self, part: float, elapsed_s: float = 0.0) -> float:
        """Return the whole length of a run that has lasted `elapsed_s`, with the chance `part` (0 to 1) of being
        shorter."""
        over = 1.0 - min(part, MOST)
        longest = float(self.lasted[-1])
        if elapsed_s >= longest:
            return self._beyond(elapsed_s, over)
        place = int(np.searchsorted(self.lasted, elapsed_s, side="right"))
        wanted = over * (float(self.left[place - 1]) if place else 1.0)
        reached = np.flatnonzero(self.left[place:] <= wanted + TOLERANCE)
        if len(reached):
            return float(self.lasted[place + reached[0]])
        return self._beyond(longest, wanted / float(self.left[-1]))

    def _beyond(self, longer_than_s: float, part: float) -> float:
        """Return the whole length that this part of the runs longer than `longer_than_s` exceeds."""
        further: float = longer_than_s * part ** (-1.0 / self.falls)
        return max(longer_than_s, min(further, LONGEST_S))


class Seen(NamedTuple):
    """Observed running times of the pods of a job and task, whether they had ended then, their templates, and when they
    began.
    """

    lasted_s: list[float]
    ended: list[bool]
    templates: list[str]
    began: list[float]

    def and_one_longer(self) -> Seen:
        """Add a run that outlasts all others: of n and the next, each is as likely to be the longest (Hill)."""
        longest = max(self.lasted_s)
        return Seen([*self.lasted_s, longest], [*self.ended, False], [*self.templates, ""], [*self.began, 0.0])

    def falls(self, chance: np.random.Generator) -> float:
        """Return by which power of time runs become fewer beyond the longest ended one. Each run that goes on beyond it
        lowers the power; its prior has the mean 1 (a gamma distribution, Pareto's conjugate).
        """
        longest = max(seen for seen, over in zip(self.lasted_s, self.ended, strict=True) if over)
        beyond = sum(math.log(seen / longest) for seen in self.lasted_s if seen > longest > 0)
        return max(float(chance.gamma(FIRM)) / (FIRM + beyond), SLOWEST)


class Knowledge:
    """Known runs. `ended`: runs that had ended by then; `going_on`: running pods, and their times so far. The pods of
    one job and task are one run, which lasts as long as their mean.
    """

    def __init__(self, ended: Iterable[EndedRun], going_on: Iterable[EndedRun]) -> None:
        self._seen: dict[tuple[str, str], Seen] = {}
        for runs, over in ((ended, True), (going_on, False)):
            for run in _one_each(runs):
                for key in _levels(run.keys):
                    seen = self._seen.setdefault(key, Seen([], [], [], []))
                    seen.lasted_s.append(run.lasted_s)
                    seen.ended.append(over)
                    seen.templates.append(run.keys.template)
                    seen.began.append(run.ended - run.lasted_s)
        enough = dict(LEVELS)
        self._enough = {key for key, seen in self._seen.items() if sum(seen.ended) >= enough[key[0]]}

    def source(self, keys: RunKeys, deadline_s: float | None = None) -> str:
        """Return the source of a known duration: one of `LEVELS`, "activeDeadlineSeconds", or "" for none."""
        key = self._key(keys)
        return key[0] if key is not None else DEADLINE if deadline_s else UNKNOWN

    def _key(self, keys: RunKeys) -> tuple[str, str] | None:
        return next((key for key in _levels(keys) if key in self._enough), None)

    def drawn(self, seed: int | None = None) -> Beliefs:
        """Return beliefs drawn from the known runs. Few runs tell little: for each seed they get other weights, by
        chance, as if other runs like them had been observed (Rubin's Bayesian bootstrap). Runs that began one after the
        other get similar weights, since times change; and where pods have no runs of their own template, so do those of
        each other template, since theirs may be more similar to one of them. None: all weigh the same, and beyond the
        longest twice as long is half as likely.
        """
        return Beliefs(self, seed)

    def survival(self, keys: RunKeys, seed: int | None) -> Survival | None:
        """Return the survival of runs like these, None where too few are known."""
        key = self._key(keys)
        if key is None:
            return None
        seen = self._seen[key].and_one_longer()
        if seed is None:
            return Survival.of(seen.lasted_s, seen.ended)
        chance = _chance(f"{seed}/{self.same(keys)}")
        return Survival.of(seen.lasted_s, seen.ended, _weights(chance, seen), self._seen[key].falls(chance))

    def same(self, keys: RunKeys) -> tuple[str, ...]:
        """Return the key of equally known pods: by runs of the same kind, and where those are of other templates, of
        this.
        """
        key = self._key(keys)
        return () if key is None else (*key, keys.template)


class Beliefs:
    """One possible distribution of the known durations."""

    def __init__(self, knowledge: Knowledge, seed: int | None) -> None:
        self._knowledge, self._seed = knowledge, seed
        self._found: dict[tuple[str, ...], Survival | None] = {}

    def lasts(
        self, keys: RunKeys, part: float, elapsed_s: float = 0.0, deadline_s: float | None = None
    ) -> float | None:
        """Return the whole length of a run at that quantile (0 to 1) of the possible ones; None for an unknown one. A
        deadline alone only tells that the run ends before it.
        """
        key = self._knowledge.same(keys)
        if key not in self._found:
            self._found[key] = self._knowledge.survival(keys, self._seed)
        survival = self._found[key]
        if survival is None:
            return None if not deadline_s else elapsed_s + max(deadline_s - elapsed_s, 0.0) * part
        found = survival.quantile(part, elapsed_s)
        return min(found, max(deadline_s, elapsed_s)) if deadline_s else found


def _levels(keys: RunKeys) -> list[tuple[str, str]]:
    values = (*keys, "*")
    return [(name, value) for (name, _), value in zip(LEVELS, values, strict=True) if value]


def _one_each(runs: Iterable[EndedRun]) -> list[EndedRun]:
    """Return one of each job and task."""
    together: dict[tuple[str, RunKeys], list[EndedRun]] = {}
    for run in runs:
        together.setdefault((run.whose, run.keys), []).append(run)
    return [alike[0]._replace(lasted_s=sum(run.lasted_s for run in alike) / len(alike)) for alike in together.values()]


def _chance(salt: str) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(hashlib.blake2b(salt.encode(), digest_size=8).digest(), "big"))


def _weights(chance: np.random.Generator, seen: Seen) -> Floats:
    """Draw the weights of all runs, last of the one that is longer."""
    number = len(seen.began)
    weights: Floats = chance.standard_exponential(number)
    kinds, whose = np.unique(np.array(seen.templates[:-1]), return_inverse=True)
    if len(kinds) > 1:  # the last one, which was not seen, has no kind
        weights[:-1] *= chance.standard_exponential(len(kinds))[whose]
    size = math.ceil(math.sqrt(number))  # of a stretch of runs, and about as many stretches
    stretch = np.argsort(np.argsort(np.array(seen.began[:-1]), kind="stable"), kind="stable") // size
    weights[:-1] *= chance.standard_exponential(number // size + 1)[stretch]
    return weights
