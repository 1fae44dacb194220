"""The tiny scheduler under `stress --subject`: what is planted in it is found, and nothing else is."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Final

import pytest

from pumice.proof.storm.script.events import Event, write_script
from pumice.proof.storm.script.workload import Size
from pumice.proof.strangers.reducing import reduced, shows
from pumice.proof.strangers.report import page
from pumice.proof.strangers.script import StrangerScript, read_stranger_script
from pumice.proof.strangers.storming import Rig, StormJudgement
from pumice.proof.strangers.stress import in_a_folder
from pumice.proof.strangers.workload import storm_of
from tests.pumice.proof.strangers.tiny_scheduler import DEFECTS

TINY: Final = Path(__file__).with_name("tiny_scheduler.py")
SIZE: Final = Size(4, 20)
SEEDS: Final = int(os.environ.get("PUMICE_TEST_SEEDS", "12"))
"""Without a defect; with one, storms are run until it is found."""
ENOUGH: Final = 100
FOUND_FIRST: Final = dict.fromkeys(DEFECTS, 0) | {
    "lost-is-failed": 3,
    "no-retry": 4,
    "assume-before-answer": 4,
    "stale-group": 17,
    "conflict-is-success": 10,
    "takes-foreign": 8,
    "ignores-pod-count": 14,
    "ignores-cordon": 3,
    "binds-until-full": 1,
    "one-short": 2,
}
"""By defect the seed that finds it, from where the search begins."""


def rig(defect: str = "") -> Rig:
    return Rig([[sys.executable, str(TINY), *([defect] if defect else [])]])


def script(seed: int) -> StrangerScript:
    return storm_of(seed, SIZE, "volcano", lockstep=True)


def replacements(seed: int) -> StrangerScript:
    """Pods are replaced as soon as they are there, and lists are old by as many changes as that takes, or nearly.

    A random storm shows the old pod at one moment only, and whether the kubelets have come so far is chance.
    """
    nodes = [Event("node", target=f"n{number}", details={"cpu": 4, "memory": "8Gi"}) for number in range(2)]
    jobs = list[Event]()
    for at in range(1, 7):
        jobs.append(Event("job", at, target=f"j{at}", details={"pods": 2, "cpu": "500m", "memory": "64Mi"}))
        jobs += [Event("replace-pod", at + 0.1 + index / 10, target=f"j{at}", amount=index) for index in range(2)]
    stale = {"fault": "stale", "client": "[!~]*", "kind": "Pod", "probability": 0.25}
    faults = [Event("fault", details=stale | {"changes": changes}) for changes in (1, 2, 3, 4, 6)]
    return StrangerScript(seed=seed, events=(*nodes, *jobs, *faults), lockstep=True)


def first_found(defect: str, first: int = 0) -> tuple[StrangerScript, StormJudgement]:
    for seed in range(first, ENOUGH):
        drawn = replacements(seed) if defect == "bind-without-uid" else script(seed)
        outcome = in_a_folder(drawn, rig(defect))
        if outcome.broken:
            return outcome.script, outcome
    pytest.fail(f"{ENOUGH} storms did not find {defect}: {DEFECTS[defect]}")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_a_tiny_scheduler_does_wrong_is_told_the_same_twice(tmp_path: Path) -> None:
    """The defect is found, cut down, and its report is the same both times."""
    told = list[tuple[str, bytes]]()
    for run in ("one", "two"):
        whole, outcome = first_found("takes-foreign", FOUND_FIRST["takes-foreign"])
        whole = StrangerScript(
            seed=whole.seed, events=whole.events, lockstep=True, invariant=outcome.broken[0].invariant
        )
        folder = tmp_path / run
        folder.mkdir()
        journal, events = folder / "storm.db", folder / "storm.json"

        def again(tried: StrangerScript, journal: Path = journal) -> StormJudgement:
            return in_a_folder(tried, rig("takes-foreign"), journal)

        small = reduced(whole, again, tries=1, runs=8)
        write_script(small.script, events)
        text = page(small, [shlex.join(("tiny", "takes-foreign"))], "again", Path("storm.db"), journal)
        told.append((text, events.read_bytes()))
        assert read_stranger_script(events) == small.script
    assert told[0] == told[1]
    assert "# own-pods: pod default/others" in told[0][0]
    assert "is bound to" in told[0][0]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found(defect: str) -> None:
    whole, outcome = first_found(defect, FOUND_FIRST[defect])
    assert shows(outcome, outcome.broken[0].invariant)
    assert not shows(in_a_folder(whole, rig()), outcome.broken[0].invariant)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_without_a_defect_every_storm_holds() -> None:
    broken = {seed: found.broken for seed in range(SEEDS) if (found := in_a_folder(script(seed), rig())).broken}
    assert not broken
