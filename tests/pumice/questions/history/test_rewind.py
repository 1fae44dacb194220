"""A replayer that goes on from one cycle to a later one stands where one that came from a checkpoint stands."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest
import yaml

from pumice.config.errors import ConfigError
from pumice.questions.history import rewind
from pumice.questions.history.rewind import Rewound, rewind_file
from tests.kit.jobs import gang
from tests.kit.nodes import nodes
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two queues of which one reclaims from the other."""
    folder = tmp_path_factory.mktemp("run")
    objects = [*nodes(3, cpu="4"), queue("q1"), queue("q2"), *gang("a", pods=6, min_member=1, cpu="2", queue="q1")]
    objects += gang("b", pods=3, min_member=1, cpu="2", queue="q2", created="2027-01-01T00:00:00Z")
    (folder / "c.yaml").write_text(yaml.safe_dump_all(objects))
    (folder / "c.conf").write_text('actions: "enqueue, reclaim, allocate"\n' + TIERS)
    run = ("run", "-f", folder / "c.yaml", "--config", folder / "c.conf", "--db", folder / "j.db")
    assert pumice(*run, "--time", "virtual", "--until", "60s").code == 0
    return folder / "j.db"


TIERS = "tiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]"


def decided(past: Rewound) -> str:
    return past.replayer.decide(past.cycle.record).digest


def test_going_on_is_as_coming_anew(db: Path) -> None:
    before = anyio.run(rewind_file, db, 1)
    for number in (2, 3, 5, 6):
        past = anyio.run(partial(rewind_file, db, number, before=before))
        anew = anyio.run(rewind_file, db, number)
        assert past.replayer is before.replayer
        assert decided(past) == past.cycle.record.digest == decided(anew)
        assert (past.cycle, past.config, past.position) == (anew.cycle, anew.config, anew.position)
        assert (past.objects, past.in_flight) == (anew.objects, anew.in_flight)
        before = past


@pytest.mark.parametrize("to", [1, 4])
def test_nobody_goes_back_or_far(db: Path, monkeypatch: pytest.MonkeyPatch, to: int) -> None:
    monkeypatch.setattr(rewind, "NEAR", 1)
    before = anyio.run(rewind_file, db, 2)
    past = anyio.run(partial(rewind_file, db, to, before=before))
    assert past.replayer is not before.replayer
    assert decided(past) == past.cycle.record.digest


def test_a_cycle_that_is_not_there_is_told_all_the_same(db: Path) -> None:
    before = anyio.run(rewind_file, db, 6)
    with pytest.raises(ConfigError, match="the journal has no cycle 60"):
        anyio.run(partial(rewind_file, db, 60, before=before))
