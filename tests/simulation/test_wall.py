"""A storm that goes in circles ends, and says so."""

from __future__ import annotations

import gc
from typing import Any

import anyio.lowlevel
import pytest

from pumice.actors.runtime.watcher import Watcher
from pumice.proof.storm.script.events import Event, Script
from pumice.proof.storm.simulation import TooLongError, at_most, simulate

NODE = Event("node", target="n0", details={"cpu": 2, "memory": "1Gi"})


async def _never_sleeps(self: Watcher) -> Any:
    while True:
        await anyio.lowlevel.checkpoint()


async def _never_yields(self: Watcher) -> Any:
    while self:
        pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("circle", [_never_sleeps, pytest.param(_never_yields, marks=pytest.mark.slow)])
def test_a_livelock_is_a_violation(circle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watcher, "next", circle)
    found = simulate(Script(1, (NODE,)), longest_s=0.5).violations
    assert [each.invariant for each in found] == ["quiesces"]
    assert "0.5 s of the processor" in found[0].words
    gc.collect()  # tasks that were cut off complain when they are thrown away: here, and not in another test


def _spin() -> None:
    while True:
        pass


def test_what_ends_in_time_is_left_alone() -> None:
    with at_most(5.0) as alarm:
        pass
    assert not alarm.rang
    with pytest.raises(TooLongError), at_most(0.01) as alarm:
        _spin()
    assert alarm.rang
