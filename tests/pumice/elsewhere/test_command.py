"""What `pumice run --kubeconfig` refuses, before it speaks to anybody."""

from pathlib import Path

import anyio
import pytest

from pumice.actors.real_clusters.scheduled.settings import ElectionSettings
from pumice.cli.scheduling import election_of
from pumice.config.settings import ProcessSettings
from pumice.core.messages.events import CycleRecord
from pumice.storage import codec
from pumice.storage.journal import CYCLE, Record
from pumice.storage.sqlite import SqliteJournal
from tests.kit.serving import Served
from tests.pumice.cli.terminal import pumice

WRONG = {
    "manifests": (["-f", "job.yaml"], "-f"),
    "virtual time": (["--time", "virtual"], "--time"),
    "faults": (["--faults", "storm"], "--faults"),
    "no scheduler": (["--no-scheduler"], "--no-scheduler"),
    "idle": (["--until", "idle"], "--until"),
    "a Lease that runs out before its deadline": (
        ["--leader-elect-lease-duration", "5s"],
        "--leader-elect-lease-duration",
    ),
    "no time to try again": (["--leader-elect-retry-period", "9s"], "--leader-elect-retry-period"),
    "no such context": (["--context", "other"], "other"),
    "no rate": (["--kube-api-qps", "-1"], "--kube-api-qps"),
}


@pytest.mark.parametrize(("flags", "named"), WRONG.values(), ids=WRONG)
def test_what_does_not_go_together_is_refused(flags: list[str], named: str, tmp_path: Path) -> None:
    config = Served(tmp_path, (), 1).kubeconfig()
    said = pumice("run", "--kubeconfig", config, "--db", tmp_path / "p.db", *flags)
    assert said.code == 2
    assert named in said.err
    assert not (tmp_path / "p.db").exists()


def test_outside_of_a_cluster_there_is_none_of_its_own(tmp_path: Path) -> None:
    said = pumice("run", "--kubeconfig", "in-cluster", "--db", tmp_path / "p.db")
    assert said.code == 2
    assert "KUBERNETES_SERVICE_HOST" in said.err


@pytest.mark.parametrize("command", ["run", "mirror"])
def test_a_cluster_that_was_never_seen_is_no_success(command: str, tmp_path: Path) -> None:
    config = Served(tmp_path, (), 1).kubeconfig()  # nobody listens there
    said = pumice(command, "--kubeconfig", config, "--db", tmp_path / "p.db", "--until", "0.3s", "-o", "json")
    assert said.code == 3
    assert "the cluster was not seen as a whole in that time" in said.err
    assert said.json["cycles"] == 0


@pytest.mark.parametrize("observed", [True, False])
def test_a_mirrors_journal_and_that_of_a_run_are_not_mixed(observed: bool, tmp_path: Path) -> None:
    db, config = tmp_path / "p.db", Served(tmp_path, (), 1).kubeconfig()
    cycle = CycleRecord(1, 1.0, 0, 1, 1, "conf", "", 0, observed=observed)

    async def write() -> None:
        async with await SqliteJournal.open(db) as journal:
            await journal.append([Record(CYCLE, codec.encode(cycle), at=1.0)])

    anyio.run(write)
    there = ["--kubeconfig", str(config)]
    others = [["run", "--until", "idle"], ["run", *there]] if observed else [["mirror", *there]]
    for command in others:
        said = pumice(*command, "--db", db)
        assert said.code == 2
        assert "begins another journal" in said.err


def test_a_context_without_a_kubeconfig_plays_no_cluster(tmp_path: Path) -> None:
    said = pumice("run", "--context", "prod", "--until", "idle", "--db", tmp_path / "p.db")
    assert said.code == 2
    assert "--context: a context is one of a kubeconfig" in said.err
    assert not (tmp_path / "p.db").exists()


def test_a_kubeconfig_of_the_environment_schedules_nothing(tmp_path: Path) -> None:
    config = Served(tmp_path, (), 1).kubeconfig()
    said = pumice("run", "--until", "cycles=1", "--db", tmp_path / "p.db", env={"KUBECONFIG": str(config)})
    assert said.code == 0
    assert "real cluster" not in said.err


def test_the_lease_is_volcanos_own_by_default() -> None:
    found = election_of(ProcessSettings())
    assert found is not None
    wanted = ElectionSettings("volcano-system", "volcano", 15.0, 10.0, 2.0, found.identity)
    assert found == wanted
    assert election_of(ProcessSettings(leader_elect=False)) is None
