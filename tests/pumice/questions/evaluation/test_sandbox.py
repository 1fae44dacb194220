"""A sandbox lets a policy decide, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pumice
from pumice.questions.evaluation.sandbox import is_supported

pytestmark = pytest.mark.skipif(not is_supported(), reason="a sandbox needs Linux on x86-64 or Arm")

CONFIG = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: own}]\n'
PLUGIN = """\
def attempts():
    import os, sys
    yield lambda: open("/etc/hostname").read()
    yield lambda: open("/tmp/left-behind", "w")
    yield lambda: os.listdir("/")
    yield lambda: os.fork()
    yield lambda: os.kill(os.getppid(), 0)
    yield lambda: __import__("_socket").socket()
    yield lambda: os.execv("/bin/true", ["true"])
    yield lambda: os.write(2, b"x" * 10) and os.pipe()

class Own:
    name = "own"
    def __init__(self, arguments):
        import os
        if os.environ:
            os._exit(7)
        for attempt in attempts():
            try:
                attempt()
            except (OSError, ImportError):
                continue
            os._exit(9)
        self.act()
    def act(self):
        ACT
    def on_session_open(self, session):
        session.points.node_order.add(self.name, lambda task, node: 1.0)
    def on_session_close(self, session):
        pass
PLUGINS = {"own": Own}
"""
WORK = pumice.Workload("work", [*pumice.nodes(2), pumice.gang("one", 2, duration="1s", arrival="1s")])


def tried(act: str, limits: pumice.Sandbox, *, placement: bool = False) -> pumice.Evaluation:
    policy = pumice.Policy(CONFIG, modules={"own": PLUGIN.replace("ACT", act)})
    work = pumice.Workload("work", [*pumice.nodes(2), pumice.gang("one", 2)], placement=True) if placement else WORK
    return pumice.evaluate(policy, work, "maximise started", sandbox=limits)


SCRIPT = """\
import pumice
work = pumice.Workload("work", [*pumice.nodes(2), pumice.gang("one", 2)], placement=True)
print(pumice.evaluate(None, work, "maximise started", sandbox=pumice.Sandbox()).score)
"""


def test_a_script_without_a_guard_uses_a_sandbox(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCRIPT)
    found = subprocess.run(
        [sys.executable, tmp_path / "mine.py"], check=False, capture_output=True, text=True, timeout=120
    )
    assert (found.stdout, found.stderr) == ("1.0\n", "")


def test_a_policy_in_a_sandbox_reaches_nothing_and_decides_alike() -> None:
    found = tried("pass", pumice.Sandbox())
    assert found.problems == []
    assert found.score == 1.0


@pytest.mark.slow
def test_a_placement_in_a_sandbox_needs_nothing_more() -> None:
    found = tried("pass", pumice.Sandbox(), placement=True)
    assert (found.problems, found.score) == ([], 1.0)


@pytest.mark.slow
def test_memory_beyond_the_bound_is_not_given() -> None:
    found = tried("bytearray(8 * 2**30)", pumice.Sandbox(memory_bytes=3 * 2**30))
    assert found.workloads["work"].failed_answers > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "limits", "said"),
    [
        ("while True: pass", pumice.Sandbox(cpu_s=2), "took more than 2 s of processor time"),
        (
            "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN); any(iter(int, 1))",
            pumice.Sandbox(cpu_s=2),
            "its process died (signal 9)",
        ),
        ("import time; time.sleep(60)", pumice.Sandbox(seconds=8), "gave no answer within 8 s"),
        ("import os; os._exit(4)", pumice.Sandbox(), "its process died (code 4)"),
    ],
)
def test_a_policy_that_takes_too_much_is_ended(act: str, limits: pumice.Sandbox, said: str) -> None:
    found = tried(act, limits)
    assert found.figures is None
    assert said in "; ".join(found.problems)
    assert not found.holds
