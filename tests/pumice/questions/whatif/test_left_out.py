"""Steps that the loop on virtual time leaves out: with them it decides and writes the same, to the byte."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import pytest

from pumice.cluster.api.templates import Template, Templates
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.cluster.kernel.machine_host import MachineHost
from pumice.core.messages.decisions import CycleResult
from pumice.core.messages.events import Mutation
from tests.pumice.questions.whatif.worlds import world

HORIZON_S = 75.0


def _lived(fork: Fork) -> tuple[list[tuple[float, str]], list[tuple[float, str, bytes]]]:
    """Return every cycle with its digest, and every change of an object."""
    cycles, changes = list[tuple[float, str]](), list[tuple[float, str, bytes]]()

    def hears(change: Mutation, at: float) -> None:
        changes.append((at, change.type, change.blob))

    def decided(result: CycleResult, at: float) -> None:
        cycles.append((at, result.digest))

    Life(fork, 0, hears, decided).run(HORIZON_S)
    return cycles, changes


@pytest.mark.parametrize("number", [0, 4, 6, 9, 27])
def test_a_world_is_the_same_without_turns_of_no_concern(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fork = world(number)
    found, turns = _lived(fork), list[bool]()
    whole = MachineHost.turn

    def turn(self: MachineHost, now: float) -> bool:
        turns.append(whole(self, now))
        return turns[-1]

    def always(self: MachineHost, changed: AbstractSet[str], now: float) -> bool:
        return True

    # every host has a turn in every round
    monkeypatch.setattr(MachineHost, "turn", turn)
    monkeypatch.setattr(MachineHost, "has_work", always)
    assert _lived(fork) == found
    assert turns.count(False) > turns.count(True), "most of these turns have nothing to do"


@pytest.mark.parametrize("number", [0, 6, 27])
def test_a_world_is_the_same_without_remembered_templates(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fork = world(number)
    found = _lived(fork)

    def never(self: Templates, template: Template) -> None:
        return None

    monkeypatch.setattr(Templates, "find", never)
    assert _lived(fork) == found
