"""The plugin of pytest, as a suite of tests uses it: in a process of its own."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.kit import source

HEAD: Final = """
import pytest

SPEC = {"containers": [{"name": "c", "image": "i"}]}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": SPEC}
"""


def run(folder: Path, body: str, *arguments: str, ini: str = "") -> str:
    """Run a suite of one file, and return what pytest says."""
    (folder / "test_it.py").write_text(HEAD + body, "utf-8")
    (folder / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\n{ini}\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "pumice.pytest_cluster", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)
    return done.stdout + done.stderr


def test_each_test_gets_a_cluster_as_it_was(tmp_path: Path) -> None:
    said = run(
        tmp_path,
        """
@pytest.mark.parametrize("number", range(3))
def test_a_pod_is_alone(pumice_cluster, number):
    pumice_cluster.apply(POD)
    pumice_cluster.wait_for("pod", "p", "condition=Ready")
    assert len(pumice_cluster.list("pods")) == 1

@pytest.mark.pumice_cluster(nodes=5, time="virtual")
def test_a_marker_has_options(pumice_cluster):
    assert len(pumice_cluster.list("nodes")) == 5
    pumice_cluster.advance(3600)

def test_several_at_a_time(pumice_clusters):
    east, west = pumice_clusters(nodes=1), pumice_clusters(nodes=1)
    assert east.url != west.url
    east.apply(POD)
    assert west.list("pods") == []
""",
    )
    assert "5 passed" in said, said


def test_a_suite_has_options_and_a_scope(tmp_path: Path) -> None:
    said = run(
        tmp_path,
        """
@pytest.fixture(scope="session")
def pumice_options():
    return {"nodes": 2}

def test_first(pumice_cluster):
    assert len(pumice_cluster.list("nodes")) == 2
    pumice_cluster.apply(POD)

def test_second(pumice_cluster):
    assert len(pumice_cluster.list("pods")) == 1
""",
        ini="pumice_scope = module",
    )
    assert "2 passed" in said, said


def test_a_scope_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    said = run(tmp_path, "def test_it(pumice_cluster): pass\n", ini="pumice_scope = hour")
    assert "pumice_scope: expected one of session, package, module, class, function, was 'hour'" in said


def test_an_unknown_option_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    said = run(tmp_path, "@pytest.mark.pumice_cluster(node=2)\ndef test_it(pumice_cluster): pass\n")
    assert "unknown option 'node', did you mean 'nodes'?" in said


def test_a_failed_test_says_how_its_cluster_stood_and_keeps_its_journal(tmp_path: Path) -> None:
    said = run(
        tmp_path,
        """
from pumice import gang

@pytest.mark.parametrize("name", ["a/b"])
def test_fails(pumice_cluster, name):
    pumice_cluster.apply(gang("huge", pods=40))
    pumice_cluster.wait_for("podgroup", "nobody", timeout_s=0.5)

def test_passes(pumice_cluster):
    pass
""",
        "--pumice-keep",
        "kept",
    )
    assert "1 failed, 1 passed" in said, said
    assert "waits: PodGroup default/huge" in said
    assert "default/huge (LargerThanCluster): " in said
    (journal,) = (tmp_path / "kept").iterdir()
    assert journal.name == "test_it.py-test_fails-a-b.db"
    command = [sys.executable, "-m", "pumice", "journal", str(journal), "--about", "default/huge"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=source.ROOT)
    assert "huge" in told.stdout


@pytest.mark.slow
def test_workers_of_xdist_have_clusters_of_their_own(tmp_path: Path) -> None:
    said = run(
        tmp_path,
        """
@pytest.mark.parametrize("number", range(8))
def test_a_pod_is_alone(pumice_cluster, number):
    pumice_cluster.apply(POD)
    pumice_cluster.wait_for("pod", "p", "condition=Ready")
    assert len(pumice_cluster.list("pods")) == 1
""",
        "-n",
        "2",
    )
    assert "8 passed" in said, said


@pytest.mark.slow
def test_the_examples_pass() -> None:
    pytest.importorskip("kopf")
    command = [sys.executable, "-m", "pytest", "-p", "pumice.pytest_cluster", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(
        [*command, "examples/testing"], cwd=source.ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout


def test_the_plugin_imports_nothing_before_a_test_asks(tmp_path: Path) -> None:
    code = "import sys, pumice.pytest_cluster; print([m for m in sys.modules if m.startswith(('pumice.', 'numpy'))])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=source.ROOT
    )
    assert done.stdout.strip() == "['pumice.pytest_cluster']"
