"""The scheduler of a cluster as a process of its own: both sides are killed, and every job runs to its end."""

from pathlib import Path

import pytest

from tests.kit.jobs import job_task, vcjob
from tests.kit.serving import served
from tests.pumice.cli.terminal import pumice
from tests.pumice.elsewhere.rig import JOBS, QUICK, phase, placed, process, until

pytestmark = pytest.mark.slow


def is_verified(db: Path) -> bool:
    found = pumice("replay", db, "--verify", "-o", "json").json
    return found["first_difference"] is None and found["first_bad"] is None


def test_jobs_run_to_their_end_whoever_is_killed(tmp_path: Path) -> None:
    db = tmp_path / "here.db"
    with served(tmp_path, "--no-scheduler") as server, server.client() as client:
        config, names = server.kubeconfig(), [f"job-{number}" for number in range(8)]
        for name in names[:4]:
            assert client.post(JOBS, json=vcjob(name, job_task(replicas=3, duration="1s"))).status_code == 201
        with process("run", config, db, *QUICK):
            until(lambda: len(placed(client)) >= 6)
        for name in names[4:]:
            assert client.post(JOBS, json=vcjob(name, job_task(replicas=3, duration="1s"))).status_code == 201
        with process("run", config, db, *QUICK) as second:
            until(lambda: any(name.startswith("job-7-") for name in placed(client)))
            server.kill()
            assert second.wait(20) == 3  # it could not renew its Lease
        assert "the Lease is lost" in db.with_suffix(".log").read_text("utf-8")
        server.start()
        with process("run", config, db, *QUICK):
            until(lambda: all(phase(client, name) == "Completed" for name in names))
    assert is_verified(db)


def test_without_a_lease_it_waits_for_a_server_that_comes_back(tmp_path: Path) -> None:
    db = tmp_path / "here.db"
    with served(tmp_path, "--no-scheduler") as server, server.client() as client:
        config = server.kubeconfig()
        with process("run", config, db, "--leader-elect=false") as running:
            client.post(JOBS, json=vcjob("first", job_task(replicas=2, duration="1s")))
            until(lambda: phase(client, "first") == "Completed")
            server.kill()
            server.start()
            client.post(JOBS, json=vcjob("second", job_task(replicas=2, duration="1s")))
            until(lambda: phase(client, "second") == "Completed")
            assert running.poll() is None
    assert is_verified(db)


def test_of_two_one_binds_and_the_other_takes_over(tmp_path: Path) -> None:
    one, two = tmp_path / "one.db", tmp_path / "two.db"
    with served(tmp_path, "--no-scheduler") as server, server.client() as client:
        config = server.kubeconfig()
        with process("run", config, one, *QUICK) as first:
            client.post(JOBS, json=vcjob("a", job_task(replicas=3, duration="0")))
            until(lambda: len(placed(client)) == 3)
            with process("run", config, two, *QUICK):
                client.post(JOBS, json=vcjob("b", job_task(replicas=3, duration="0")))
                until(lambda: len(placed(client)) == 6)
                first.kill()
                client.post(JOBS, json=vcjob("c", job_task(replicas=3, duration="0")))
                until(lambda: len(placed(client)) == 9)
    said = {db: pumice("journal", db, "--about", "default/c", "-o", "table").out for db in (one, two)}
    assert "decided to bind" not in said[one]
    assert "decided to bind" in said[two]
    for name in ("a", "b"):
        assert "decided to bind" not in pumice("journal", two, "--about", f"default/{name}", "-o", "table").out
