"""`pumice run`: the main job, on virtual time where nothing depends on the real one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.source import ROOT
from tests.pumice.cli.terminal import Said, pumice

VIRTUAL = ("--time", "virtual", "--until", "idle", "-o", "json")
JOB: dict[str, Any] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "minAvailable": 3,
        "queue": "default",
        "schedulerName": "volcano",
        "tasks": [
            {
                "name": "worker",
                "replicas": 3,
                "template": {
                    "spec": {
                        "containers": [{"name": "c", "image": "work", "resources": {"requests": {"cpu": "1"}}}],
                        "restartPolicy": "Never",
                    }
                },
            }
        ],
    },
}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "p.db"


@pytest.fixture
def manifests(tmp_path: Path) -> Any:
    """Write manifests and give the file."""

    def write(*objects: dict[str, Any]) -> Path:
        file = tmp_path / "manifests.yaml"
        file.write_text(yaml.safe_dump_all(objects))
        return file

    return write


def whole(db: Path) -> bool:
    return bool(pumice("journal", db, "--check", "-o", "json").json["whole"])


def test_a_job_runs_to_its_end_on_the_built_in_nodes(db: Path, manifests: Any) -> None:
    said = pumice("run", "-f", manifests(JOB), "--db", db, *VIRTUAL)
    assert said.code == 0
    assert said.json["pods"] == {"bound": 3, "running": 0, "succeeded": 3, "failed": 0, "pending": 0}
    assert said.json["jobs"] == {"default/train": {"phase": "Completed", "bound": 3, "pending": 0}}
    assert said.json["db"] == str(db)
    assert said.json["cycles"] > 1
    assert said.json["mean_cycle_s"] > 0
    assert "built-in nodes" in said.err
    assert whole(db)
    story = pumice("journal", db, "--about", "default/train", "-o", "json").json["story"]
    assert "Job default/train changed: Completed, 3 succeeded" in [entry["text"] for entry in story]


def test_the_rate_is_this_runs(db: Path, manifests: Any) -> None:
    file = manifests(JOB)
    first = pumice("run", "-f", file, "--db", db, *VIRTUAL).json
    again = pumice("run", "-f", file, "--db", db, *VIRTUAL).json
    assert first["pods_per_s"] == pytest.approx(3 / first["seconds"])
    assert (again["pods"]["bound"], again["pods_per_s"]) == (3, 0.0)


def test_with_no_manifests_there_is_something_to_see(db: Path) -> None:
    said = pumice("run", "--db", db, *VIRTUAL)
    assert said.json["jobs"]["default/example-gang"]["phase"] == "Completed"
    assert "an example gang" in said.err
    assert pumice("run", "--db", db, *VIRTUAL, "--quiet").err == ""


def test_an_existing_journal_is_continued(db: Path, manifests: Any) -> None:
    file = manifests(JOB)
    first = pumice("run", "-f", file, "--db", db, *VIRTUAL[:2], "--until", "cycles=2", "-o", "json")
    assert first.json["jobs"]["default/train"]["phase"] != "Completed"
    second = pumice("run", "-f", file, "--db", db, *VIRTUAL)
    assert second.json["jobs"]["default/train"]["phase"] == "Completed"
    assert second.json["cycles"] > first.json["cycles"]
    assert second.err.splitlines()[0] == f"continuing the journal {db}"
    assert "continuing" not in first.err
    assert "1 objects were already there" in second.err
    assert whole(db)


def test_what_is_no_journal_is_not_said_to_be_continued(db: Path) -> None:
    db.write_text("hello")
    said = pumice("run", "--db", db, *VIRTUAL)
    assert said.code == 2
    assert "continuing" not in said.err
    assert "not a Pumice journal" in said.err


def test_given_nodes_are_all_there_are(db: Path, manifests: Any) -> None:
    said = pumice("run", "-f", manifests(JOB, node("small", cpu="2")), "--db", db, *VIRTUAL)
    assert said.json["jobs"]["default/train"] == {"phase": "Pending", "bound": 0, "pending": 0}  # not even admitted
    lines = said.err.splitlines()
    assert "resource in cluster is overused" in lines[lines.index("1 pending:") + 1]


def test_a_job_left_waiting_has_the_reason_that_explain_gives(db: Path, manifests: Any) -> None:
    said = pumice("run", "-f", manifests(JOB, node("small", cpu="2")), "--db", db, *VIRTUAL)
    lines = said.err.splitlines()
    waiting = said.json["waiting"]["default/train"]
    explained = pumice("explain", "--db", db, "job", "default/train", "--budget", "0", "-o", "json").json
    assert waiting["reason"] == explained["reason"]
    assert lines[lines.index("1 job waits:") + 1] == f"  default/train ({waiting['reason']}): {waiting['because']}"


def test_what_is_left_pending_is_said_with_its_reason(db: Path, manifests: Any) -> None:
    big = [pod(f"big-{index:02d}", cpu="100") for index in range(22)]
    strange = {**pod("strange"), "spec": {**pod("strange")["spec"], "schedulerName": "mine"}}
    file = manifests(*big, strange)
    lines = pumice("run", "-f", file, "--db", db, *VIRTUAL).err.splitlines()
    first = lines.index("22 pending:")
    assert lines[first + 1].startswith("  default/big-00: ")
    assert "no reason" not in lines[first + 1]
    assert lines[first + 21 :] == [
        "  and 2 more",
        "warning: pods that ask for scheduler mine: 1; no scheduler of that name runs here",
    ]
    assert pumice("run", "-f", file, "--db", db, *VIRTUAL, "--quiet").err == ""


def test_an_arrival_that_says_no_time_is_refused_and_the_rest_comes(db: Path, manifests: Any) -> None:
    odd = pod("odd", annotations={"pumice.dev/arrival": "soon"})
    said = pumice("run", "-f", manifests(node("n", cpu="8"), odd, pod("even")), "--db", db, *VIRTUAL)
    assert said.code == 2
    assert "Pod default/odd: pumice.dev/arrival: expected a duration" in said.err
    assert (said.json["pods"]["bound"], said.json["pods"]["pending"]) == (1, 0)


def test_what_the_api_refuses_is_named_and_the_rest_goes_on(db: Path, manifests: Any) -> None:
    odd = {**JOB, "metadata": {"name": "odd"}, "spec": {**JOB["spec"], "minAvailable": 9}}
    bad = {**pod("bad", cpu="-1"), "metadata": {"name": "bad"}, "status": {}}  # a new one: what exists is not judged
    said = pumice("run", "-f", manifests(odd, JOB, bad), "--db", db, *VIRTUAL)
    assert said.code == 2
    assert said.json["jobs"]["default/train"]["phase"] == "Completed"
    assert "manifests.yaml:1: Job default/odd" in said.err
    assert "minAvailable" in said.err
    assert "Pod default/bad" in said.err


def test_a_number_of_cycles(db: Path) -> None:
    said = pumice("run", "--db", db, "--time", "virtual", "--until", "cycles=20", "-o", "json")
    assert (said.code, said.json["cycles"]) == (0, 20)


def test_seconds(db: Path) -> None:
    said = pumice("run", "--db", db, "--time", "virtual", "--until", "1s", "-o", "json")
    assert said.json["seconds"] == pytest.approx(1.0, abs=0.3)


def test_a_table_for_a_person(db: Path) -> None:
    said = pumice("run", "--db", db, *VIRTUAL, "-o", "table")
    assert "default/example-gang" in said.out
    assert "Completed" in said.out


def test_the_environment_mirrors_the_options(db: Path) -> None:
    env = {"PUMICE_DB": str(db), "PUMICE_TIME": "virtual", "PUMICE_UNTIL": "cycles=2"}
    assert pumice("run", "-o", "json", env=env).json["cycles"] == 2
    assert pumice("run", "-o", "json", "--until", "cycles=3", env=env).json["cycles"] == 5


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--time", "virtual", "--backend", "asyncio"), 2, "--time"),
        (("--until", "soon"), 2, "--until"),
        (("--until", "cycles=0"), 2, "cycles=N for at least one cycle"),
        (("--backend", "curio"), 2, "--backend"),
        (("--config", "nowhere.conf"), 2, "nowhere.conf"),
        (("-f", "nowhere.yaml"), 2, "nowhere.yaml"),
        (("--db", "nowhere/p.db"), 3, "nowhere/p.db"),
    ],
)
def test_errors_are_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    said: Said = pumice("run", "--until", "idle", *arguments)
    assert (said.code, said.out) == (code, "")
    assert words in said.err
    assert "Traceback" not in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_file_is_left_alone(db: Path) -> None:
    db.write_bytes(b"precious" * 1000)
    said = pumice("run", "--db", db, "--until", "idle")
    assert said.code == 2
    assert "not a Pumice journal" in said.err
    assert db.read_bytes() == b"precious" * 1000


def start(db: Path, *arguments: str) -> subprocess.Popen[str]:
    """`pumice run` in a process of its own, once it has written something to its journal."""
    command = [sys.executable, "-m", "pumice", "run", "--db", str(db), "-o", "json", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ}
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        said = pumice("journal", db, "-o", "json")
        if said.code == 0 and said.json["decisions"]:
            return process
        time.sleep(0.1)
    process.kill()
    raise AssertionError(process.communicate()[1])


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_ctrl_c_stops_in_order(db: Path, backend: str) -> None:
    with start(db, "--backend", backend) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert '"cycles"' in out
    assert "Traceback" not in err
    assert whole(db)


def queue_default(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": spec,
    }


def test_what_is_said_of_a_system_queue_holds(db: Path, manifests: Any, tmp_path: Path) -> None:
    config = tmp_path / "conf.yaml"
    config.write_text('actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: capacity}]\n')
    file = manifests(queue_default(capability={"cpu": "2"}), node("n", cpu="8"), JOB)
    said = pumice("run", "-f", file, "--db", db, "--config", config, *VIRTUAL)
    assert said.json["pods"]["bound"] == 0  # of three that start together
    assert "already there" not in said.err
    file = manifests(queue_default(capability={"cpu": "4"}))
    said = pumice("run", "-f", file, "--db", db, "--config", config, *VIRTUAL)
    assert "Queue default was already there with another spec, which stays" in said.err
    file = manifests(queue_default(capability={"cpu": "2"}))
    said = pumice("run", "-f", file, "--db", db, "--config", config, *VIRTUAL)
    assert "1 objects were already there" in said.err
    assert "another spec" not in said.err


def test_a_gang_of_another_scheduler_is_not_bound(db: Path, manifests: Any) -> None:
    elsewhere = {**JOB, "spec": {**JOB["spec"], "schedulerName": "kube-foo"}}
    said = pumice("run", "-f", manifests(node("n", cpu="8"), elsewhere), "--db", db, *VIRTUAL)
    assert (said.json["pods"]["bound"], said.json["pods"]["pending"]) == (0, 3)
    assert "pods that ask for scheduler kube-foo: 3; no scheduler of that name runs here" in said.err


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("--no-default-scheduler", ["default-scheduler: 1"]),
        ("--no-scheduler", ["default-scheduler: 1", "volcano: 1"]),
    ],
)
def test_whose_scheduler_was_switched_off_is_said(db: Path, manifests: Any, flag: str, told: list[str]) -> None:
    plain = {**pod("plain"), "spec": {**pod("plain")["spec"], "schedulerName": "default-scheduler"}}
    said = pumice("run", "-f", manifests(node("n", cpu="8"), pod("gang"), plain), "--db", db, *VIRTUAL, flag)
    warned = [line for line in said.err.splitlines() if "no scheduler of that name runs here" in line]
    assert warned == [
        f"warning: pods that ask for scheduler {each}; no scheduler of that name runs here" for each in told
    ]
