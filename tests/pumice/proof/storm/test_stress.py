"""Many storms in one process."""

from __future__ import annotations

import gc
from weakref import WeakSet

import pytest

from pumice.proof.storm import stress
from pumice.proof.storm.script.events import Script
from pumice.proof.storm.script.workload import Size
from pumice.proof.storm.simulation import StormOutcome
from pumice.proof.storm.stress import StressPlan, run_seeds


class Part:
    """Of a system: its parts refer to each other."""

    def __init__(self) -> None:
        self.other = self


def test_what_a_storm_leaves_is_gone_before_the_next_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a thousand storms spread over more and more memory, of which the processor has little at hand."""
    parts: WeakSet[Part] = WeakSet()
    left: list[int] = []

    def storm(script: Script) -> StormOutcome:
        left.append(len(parts))
        parts.add(Part())
        return StormOutcome()

    monkeypatch.setattr(stress, "simulate", storm)
    thresholds = gc.get_threshold()
    assert run_seeds(StressPlan(size=Size(1, 1)), range(4)).seeds == 4
    assert left == [0] * 4
    assert gc.get_threshold() == thresholds
