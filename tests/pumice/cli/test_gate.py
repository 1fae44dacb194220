"""`pumice gate` on the command line: exit codes, files, and refusals of one line."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from pumice import gang, nodes
from tests.kit.source import ROOT
from tests.pumice.cli.terminal import pumice

GATE = """
policy: cluster
cases: [cases/*.case.yaml]
"""
BARE = "cluster"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples/gate", tmp_path / "g")
    (tmp_path / "g/gate.yaml").write_text(GATE)
    return tmp_path / "g"


def test_a_change_that_breaks_a_case_fails_with_reports(place: Path) -> None:
    file, xml, page, kept = place / "gate.yaml", place / "j.xml", place / "m.md", place / "kept"
    outputs = ("--junit", xml, "--markdown", page, "--keep", kept)
    said = pumice("gate", file, "--base", BARE, "--head", "proposed", "--workers", 1, "-o", "json", *outputs)
    assert (said.code, said.json["passes"]) == (1, False)
    failures = [each.get("name") for each in ET.parse(xml).iter("testcase") if each.find("failure") is not None]
    assert failures == ["it starts within 10 s"]
    assert "❌ The policy fails" in page.read_text()
    assert sorted(each.suffix for each in kept.iterdir()) == [".db", ".db", ".yaml"]
    (case,) = kept.glob("*.case.yaml")
    file.write_text(GATE.replace("cases/*.case.yaml", f"kept/{case.name}"))
    assert pumice("gate", file, "--base", BARE, "--head", "proposed", "--workers", 1, "--reduce", 0).code == 1


def test_no_change_passes_twice_with_equal_bytes(place: Path) -> None:
    said = [
        pumice("gate", place / "gate.yaml", "--base", BARE, "--workers", 1, "-o", "json", "--results", place / name)
        for name in ("one", "two", "one")
    ]
    assert [each.code for each in said] == [0, 0, 0]
    assert len({each.out for each in said}) == 1


@pytest.mark.parametrize(("until", "code", "count"), [("1s", 2, "all of 60"), ("29m", 0, "2 of 60"), ("31m", 0, "")])
def test_jobs_after_the_horizon_are_told(until: str, code: int, count: str, place: Path) -> None:
    """None of the sixty comes in the first second: nothing would be at stake."""
    workload = {"name": "w", "generate": {"jobs": 60, "over": "30m", "nodes": 2, "duration": ["1s"]}, "until": until}
    (place / "gate.yaml").write_text(yaml.safe_dump({"policy": "cluster", "workloads": [workload]}))
    said = pumice("gate", place / "gate.yaml", "--base", BARE, "--workers", 1, "-o", "json")
    assert said.code == code
    assert ("come after `until`" in said.err, count in said.err) == (bool(count), True), said.err


def test_the_workflow_judges_a_pull_request_by_its_revision(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = yaml.safe_load((ROOT / "examples/gate/workflow.yaml").read_text())["jobs"]["gate"]["steps"]
    (command,) = (step["run"] for step in steps if step.get("run", "").startswith("pumice gate"))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
        said = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *said, *words], cwd=place, check=True, capture_output=True)
    monkeypatch.chdir(place)
    asked = shlex.split(command.replace("origin/${{ github.base_ref }}", "HEAD"))[1:]
    assert pumice(*asked, "--workers", 1).code == 0
    shutil.copy("proposed/scheduler.conf", "cluster/scheduler.conf")
    assert pumice(*asked, "--workers", 1, "--reduce", 0).code == 1
    assert "❌ The policy fails" in Path("gate.md").read_text()
    assert "<failure" in Path("gate.xml").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which policy to compare with is not said"),
        (("--base", "v9"), "v9: no such folder, and no git revision"),
        (("--base", BARE, "--junit", "."), "--junit: .: cannot be written: Is a directory"),
        (("--base", BARE, "--junit", "/nowhere/j.xml"), "--junit: /nowhere/j.xml: cannot be written"),
        (("--base", BARE, "--markdown", "/nowhere/m.md"), "--markdown: /nowhere/m.md: cannot be written"),
        (("--base", BARE, "--keep", __file__), "cannot be written"),
        (("--base", BARE, "--results", __file__), "cannot be written"),
        (("--base", BARE, "--mutate", "--junit", "x.xml"), "--mutate judges many changes"),
        (("--init", "journal:x.db", "--head", BARE), "there is a file already"),
    ],
)
def test_a_wrong_command_is_refused_in_one_line(words: tuple[str, ...], said: str, place: Path) -> None:
    found = pumice("gate", place / "gate.yaml", "--workers", 1, *words)
    assert (found.code, len(found.err.splitlines())) == (2, 1)
    assert said in found.err


def test_cases_that_do_not_exist_are_refused(place: Path) -> None:
    (place / "gate.yaml").write_text("policy: cluster\ncases: [/nowhere/*.case.yaml]\n")
    found = pumice("gate", place / "gate.yaml", "--base", BARE, "--workers", 1)
    assert (found.code, found.err.strip()) == (2, "pumice: /nowhere/*.case.yaml: there is no such golden case")


def test_what_no_future_asks_is_told_once(place: Path) -> None:
    hook = {
        "name": "h.x.io",
        "rules": [{key: ["*"] for key in ("apiGroups", "apiVersions", "resources", "operations")}],
    }
    asked = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    manifests = [{**asked, "metadata": {"name": "h"}, "webhooks": [hook]}, *nodes(1), gang("g", pods=1)]
    (place / "w.yaml").write_text(yaml.safe_dump_all(manifests))
    workloads = [{"name": name, "input": "w.yaml", "until": "5s"} for name in "ab"]
    (place / "gate.yaml").write_text(yaml.safe_dump({"policy": "cluster", "workloads": workloads}))
    said = pumice("gate", place / "gate.yaml", "--base", BARE, "--workers", 1, "-o", "json")
    assert said.err.count("MutatingWebhookConfiguration h") == 1, said.err
