"""`pumice mirror` as a process beside the one that it mirrors: both are killed, and no bind is lost."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.jobs import job_task, vcjob
from tests.kit.serving import Served, served
from tests.pumice.cli.terminal import has_cycles, pumice

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
PODS = "/api/v1/pods"
PATIENCE_S = 60.0


@contextmanager
def mirroring(server: Served, db: Path) -> Generator[subprocess.Popen[bytes]]:
    """A process that mirrors the server; killed at the end unless it has ended."""
    config = server.kubeconfig()
    process = subprocess.Popen(
        [sys.executable, "-m", "pumice", "mirror", "--kubeconfig", str(config), "--db", str(db), "-o", "json"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PUMICE_QUIET": "1"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def submit(server: Served, *jobs: dict[str, Any]) -> None:
    with server.client() as client:
        for each in jobs:
            assert client.post(JOBS, json=each).status_code == 201


def bound(server: Served) -> dict[str, str]:
    with server.client() as client:
        pods = client.get(PODS).json()["items"]
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"]}


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def story(db: Path, name: str) -> str:
    return pumice("journal", db, "--about", f"default/{name}", "-o", "table").out


def is_told(db: Path, name: str, word: str) -> Callable[[], bool]:
    return lambda: word in story(db, name)


@pytest.mark.slow
def test_both_sides_are_killed_and_the_journal_goes_on(tmp_path: Path) -> None:
    db = tmp_path / "mirror.db"
    with served(tmp_path) as server:
        with mirroring(server, db):
            until(lambda: has_cycles(db))
            submit(server, vcjob("first", job_task(replicas=2, duration="0")))
            until(is_told(db, "first", "is bound to"))
        submit(server, vcjob("unseen", job_task(replicas=2, duration="0")))
        until(lambda: len(bound(server)) == 4)
        with mirroring(server, db) as process:
            until(is_told(db, "unseen", "is bound to"))
            server.kill()
            server.start()
            submit(server, vcjob("last", job_task(replicas=2, duration="0")))
            until(is_told(db, "last", "is bound to"))
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 130
            assert b'"bound": 6' in out
    assert pumice("journal", db, "--check", "-o", "json").json["whole"]
    said = pumice("replay", db, "--verify", "-o", "json")
    assert said.code == 0
    agreement = said.json["agreement"]
    assert agreement["decisions"] == 6
    assert agreement["same"] >= 2, "those of the first job, which nothing came in between of"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--kubeconfig", "none"), "none: does not exist"),
        (("--context", "there"), "name that with --kubeconfig"),
        ((), "not in a pod of a cluster"),
        (("--kubeconfig", "good", "--context", "there"), "unknown context 'there'"),
        (("--kubeconfig", "good:other"), "kubectl config view --flatten makes one of them"),
        (("--kubeconfig", "good", "--until", "idle"), "never known to be idle"),
        (("--kubeconfig", "good", "--config", "missing.conf"), "missing.conf: does not exist"),
    ],
)
def test_what_cannot_be_mirrored_is_said(
    arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    written = pumice("kubeconfig", "--http", "127.0.0.1:1", "--write", "good")
    assert written.code == 0
    said = pumice("mirror", *arguments)
    assert said.code == 2
    assert told in said.err
    assert not list(tmp_path.glob("*.db"))


def test_a_journal_goes_on_with_pseudonyms_or_without_as_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pumice("kubeconfig", "--http", "127.0.0.1:1", "--write", "good").code == 0
    assert pumice("run", "--db", "with-names.db", "--until", "idle").code == 0
    said = pumice("mirror", "--kubeconfig", "good", "--db", "with-names.db", "--redact")
    assert said.code == 2
    assert "with-names.db holds names" in said.err
    names = tmp_path / "hidden.db.names"
    names.write_text('["a",[1]]\n')
    said = pumice("mirror", "--kubeconfig", "good", "--db", "hidden.db")
    assert said.code == 2
    assert "go on with --redact" in said.err
    names.write_text("nonsense\n")
    said = pumice("mirror", "--kubeconfig", "good", "--db", "hidden.db", "--redact")
    assert said.code == 2
    assert "expected a name and its place" in said.err
    assert not (tmp_path / "hidden.db").exists()


def test_a_shadow_by_another_configuration_sums_up_what_it_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pumice("kubeconfig", "--http", "127.0.0.1:1", "--write", "good").code == 0
    (tmp_path / "other.conf").write_text('actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: predicates\n')
    flags = ("--kubeconfig", "good", "--shadow", "--config", "other.conf", "--until", "1s")
    found = pumice("mirror", *flags, "-o", "json").json["shadow"]
    assert (found["decisions"], found["share"], found["differences"]) == (0, None, [])
    said = pumice("mirror", *flags, "-o", "table")
    assert "shadow: of 0 decisions of the cluster's 0 are the same" in said.out
