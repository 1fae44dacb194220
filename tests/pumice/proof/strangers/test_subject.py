"""Subjects as processes: those that end, hang or print for ever, and what is left of them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Generator
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
    until(lambda: word in subject.last_words())


def until(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


def members_of(group: int) -> list[int]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, of, state, *_ in rows if int(of) == group and not state.startswith("Z")]


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
    until(lambda: not is_alive(child))


@pytest.mark.slow
def test_a_command_that_is_killed_leaves_no_subject(tmp_path: Path) -> None:
    grandchild = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from pumice.proof.strangers.subject import Subject\n"
        f"subject = Subject([sys.executable, '-c', {grandchild!r}], Path('kubeconfig'), Path())\n"
        "subject.start()\n"
        "print(subject._watcher.pid, flush=True)\n"
        "time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=tmp_path, text=True) as command:
        assert command.stdout is not None
        group = int(command.stdout.readline())
        until(lambda: len(members_of(group)) == 3)  # the watcher, the subject and what it started
        command.kill()
    until(lambda: not members_of(group))
