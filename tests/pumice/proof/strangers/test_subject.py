"""Subjects as processes: those that end, hang or print for ever, and what is left of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pumice.config.errors import ConfigError
from pumice.proof.strangers.subject import Subject, SubjectError, words_of

PATIENCE_S = 30.0
ECHO = "import sys\nfor line in sys.stdin: print('done', line.split()[1], flush=True)"


@contextmanager
def running(folder: Path, code: str, *more: str) -> Generator[Subject]:
    subject = Subject([sys.executable, "-c", code, *more], folder / "kubeconfig", folder)
    subject.start()
    try:
        yield subject
    finally:
        subject.stop()


def until_it_says(subject: Subject, word: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while word not in subject.last_words():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("command", "problem"),
    [("", "nothing"), ("/no/such/scheduler --x", "no program '/no/such/scheduler'"), ("a 'b", "not a command")],
)
def test_a_command_that_cannot_be_started_is_refused(command: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as refused:
        words_of(command)
    assert refused.value.path == "--subject"


def test_a_subject_gets_the_kubeconfig_and_a_port(tmp_path: Path) -> None:
    code = "import os, sys\nprint(os.environ['KUBECONFIG'], *sys.argv[1:], flush=True)\nsys.stdin.read()"
    with running(tmp_path, code, "--kubeconfig={kubeconfig}", "--port={port}") as subject:
        until_it_says(subject, "--port=")
        path = tmp_path / "kubeconfig"
        assert f"{path} --kubeconfig={path} --port=" in subject.last_words()
        assert "{" not in subject.last_words()


def test_a_subject_that_ends_is_told_of_with_its_last_words(tmp_path: Path) -> None:
    told = pytest.raises(SubjectError, match=r"exit code 3; it printed last:\s+no such flag")
    with running(tmp_path, "import sys\nprint('no such flag')\nsys.exit(3)") as subject, told:
        subject.tell(1, PATIENCE_S)


def test_a_subject_that_hangs_is_told_of(tmp_path: Path) -> None:
    told = pytest.raises(SubjectError, match=r"did not print 'done 1' within 0.3 s; it printed nothing")
    with running(tmp_path, "import time\ntime.sleep(600)") as subject, told:
        subject.tell(1, 0.3)


def test_a_subject_that_prints_for_ever_does_no_harm(tmp_path: Path) -> None:
    code = "import sys\nwhile True: sys.stdout.write('x' * 5000 + '\\n' * 3)"
    with running(tmp_path, code) as subject:
        until_it_says(subject, "xxx")
        time.sleep(0.2)
        assert len(subject.last_words()) < 50_000


def test_a_subject_in_lockstep_answers_each_moment_also_anew(tmp_path: Path) -> None:
    with running(tmp_path, ECHO) as subject:
        subject.tell(1, PATIENCE_S)
        subject.restart()
        subject.tell(2, PATIENCE_S)
        (took,) = subject.restarts
        assert took < 2.0


def test_nothing_that_a_subject_started_is_left(tmp_path: Path) -> None:
    code = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('pids', child.pid, flush=True)\n"
        "time.sleep(600)"
    )
    with running(tmp_path, code) as subject:
        until_it_says(subject, "pids")
        child = int(subject.last_words().split()[-1])
        assert is_alive(child)
    deadline = time.monotonic() + PATIENCE_S
    while is_alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)
