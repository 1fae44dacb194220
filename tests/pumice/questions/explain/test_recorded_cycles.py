"""What is explained of recorded cycles is what their trails say: with claims, over HTTP, after a crash, with locks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest

from pumice.questions.explain.account import account_of
from pumice.questions.explain.scene import Scene, scene_of
from pumice.questions.history.rewind import rewind_file
from tests.pumice.questions.explain.agreement import decided, disagreements
from tests.storage.test_golden import CYCLES, copied


def scene_at(db: Path, number: int) -> Scene:
    return scene_of(anyio.run(rewind_file, db, number))


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CYCLES)
def test_every_explanation_is_what_the_trail_says(name: str, every: int, tmp_path: Path) -> None:
    """Of every so manieth cycle that decided something, and of the last one."""
    db, (first, last), looked, deciding = copied(name, tmp_path), CYCLES[name], 0, 0
    past = None
    for number in range(first, last + 1):
        past = anyio.run(partial(rewind_file, db, number, before=past))
        scene = scene_of(past)
        assert scene.recorded is not None
        deciding += bool(scene.recorded.decisions)
        if number == last or (scene.recorded.decisions and deciding % every == 1 % every):
            assert disagreements(scene) == []
            looked += len(decided(scene)[1].looks)
    assert looked


def test_a_pod_whose_podgroup_is_gone_is_told_of(tmp_path: Path) -> None:
    account = account_of(scene_at(copied("stock", tmp_path), CYCLES["stock"][1]), "pod", "default/small-w-0")
    assert account.tasks == {"default/small-w-0": "Succeeded"}
    assert account.message == "default/small-w-0 was Succeeded before this cycle, which changed nothing about it"


def test_what_backfill_placed_is_told_of_it(tmp_path: Path) -> None:
    account = account_of(scene_at(copied("stock", tmp_path), 3), "pod", "default/small-w-0")
    assert account.state == "Bound"
    steps = {each["action"]: (each["stopped"], each["steps"]) for each in account.job.get("steps", [])}
    assert steps["backfill"] == ("", ["pods placed: 3"])
