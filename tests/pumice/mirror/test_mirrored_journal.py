"""The commands on the journal of a mirror: all that is asked of a run of ours is answered of another's cluster."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from pumice.actors.real_clusters.mirror.settings import ShadowSettings
from pumice.core.messages.events import ShadowCompared
from pumice.storage.journal import SHADOW
from pumice.storage.sqlite import SqliteJournal
from tests.actors.real_clusters.mirror.rig import cluster, mirror, same, way_to
from tests.actors.rig import idle, journaled, three_nodes
from tests.kit.jobs import job_task, vcjob
from tests.pumice.cli.terminal import pumice

ALL = ("Node", "Queue", "PodGroup", "Pod", "Job")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that ran, one that runs, and one for which there is no room."""
    path = tmp_path_factory.mktemp("mirror") / "cluster.db"
    anyio.run(partial(_mirrored, path))
    return path


async def _mirrored(path: Path) -> None:
    opened = await SqliteJournal.open(path)
    shadow = ShadowSettings()
    async with opened as journal, cluster() as web, way_to(web) as way, mirror(way, journal, shadow=shadow) as here:
        await web.system.submit(three_nodes())
        await same(here, web.system, *ALL)
        for job in (
            vcjob("quick", job_task(replicas=3, cpu="2", duration="50ms")),
            vcjob("stays", job_task(replicas=3, cpu="5", duration="0")),
            vcjob("big", job_task(replicas=3, cpu="7")),
        ):
            await web.system.submit([job])
            await idle(web.system)
        await same(here, web.system, *ALL)


def test_it_is_whole(file: Path) -> None:
    assert pumice("journal", file, "--check", "-o", "json").json["whole"]


def test_verifying_tells_how_far_the_schedulers_agree_and_no_corruption(file: Path) -> None:
    said = pumice("replay", file, "--verify", "-o", "json")
    assert said.code == 0, said.out
    agreement = said.json["agreement"]
    assert (agreement["decisions"], agreement["same"], agreement["share"]) == (6, 6, 1.0)
    assert (said.json["identical"], said.json["first_bad"]) == (True, None)
    said = pumice("replay", file, "--verify", "-o", "table")
    assert "of its 6 decisions 6 are the same here (100.0%)" in " ".join(said.out.split())


def test_a_shadow_came_to_the_same(file: Path) -> None:
    told = anyio.run(_compared, file)
    assert sum(each.decisions for each in told) == sum(each.same for each in told) == 6


async def _compared(file: Path) -> list[ShadowCompared]:
    async with await SqliteJournal.open(file, read_only=True) as journal:
        return await journaled(journal, SHADOW, ShadowCompared)


def test_by_another_configuration_the_difference_is_shown(file: Path, tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text('actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: predicates\n  - name: binpack\n')
    found = pumice("replay", file, "--config", conf, "-o", "json").json
    assert not found["identical"]
    assert "default/quick" in found["changed"]["jobs"]


def test_what_waits_is_explained(file: Path) -> None:
    said = pumice("explain", "--db", file, "job", "default/big", "-o", "json")
    assert said.code == 0, said.err
    found = said.json
    assert found["state"] == "Pending"
    assert "overcommit does not admit it: asks 21 cpu" in found["message"]
    assert found["observed"]
    assert found["differs"] == {}


def test_the_other_questions_have_answers(file: Path) -> None:
    waiting = pumice("queue", "--db", file, "-o", "json").json["waiting"]
    assert ["default/big" in each["job"] for each in waiting] == [True]
    measured = pumice("measures", file, "-o", "json").json
    assert {each["job"] for each in measured["jobs"]} == {"default/quick", "default/stays", "default/big"}
    assert pumice("eta", "--db", file, "-o", "json").json["default/big"]["known"] is False
    said = pumice("whatif", "--db", file, "--add-nodes", "3:like=n0", "-o", "json")
    assert "default/big" in said.json["jobs"]
    story = pumice("journal", file, "--about", "default/stays", "-o", "table").out
    assert "decided to bind default/stays-worker-0" in story
