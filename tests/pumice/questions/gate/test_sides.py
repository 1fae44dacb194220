"""PolicySides and workloads: folders, git, draws, and findings that are new."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pumice.errors import InputError
from pumice.lab.builders import gang, nodes, queue
from pumice.questions.gate.findings import findings, new_in
from pumice.questions.gate.policy import Noise
from pumice.questions.gate.revisions import folder_of
from pumice.questions.gate.sides import read_side
from pumice.questions.gate.workloads import arrival_s, drawn
from pumice.yaml_text import dump_yaml

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]\n"


def git(at: Path, *words: str) -> None:
    said = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *said, *words], cwd=at, check=True, capture_output=True)


def folder(at: Path, **files: str) -> Path:
    at.mkdir(exist_ok=True)
    for name, text in files.items():
        (at / name.replace("_", ".")).write_text(text)
    return at


def test_a_folder_of_the_whole_repository_leaves_out_what_is_no_policy(tmp_path: Path) -> None:
    folder(
        tmp_path,
        scheduler_conf=CONF,
        queues_yaml=dump_yaml(queue("a")),
        gate_yaml="workloads: []\n",
        one_case_yaml="then: []\n",
        work_yaml=dump_yaml(gang("j", 1)),
    )
    folder(tmp_path / ".github", flow_yaml="on: push\n")
    side = read_side("here", tmp_path)
    assert [obj["metadata"]["name"] for obj in side.objects] == ["a"]
    assert side.config == CONF
    assert any("is work, not policy" in line for line in side.skipped)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there is no policy in this folder"),
        ({"a_conf": CONF, "b_conf": CONF}, "expected one scheduler configuration, found 2"),
        ({"a_conf": "actions: ["}, "not YAML"),
        ({"a_yaml": "spec: {}\n"}, "apiVersion: expected a text"),
    ],
)
def test_a_folder_that_is_no_policy_is_refused(files: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=said):
        read_side("p", folder(tmp_path / "p", **files))


def test_a_configuration_in_a_config_map_is_the_same(tmp_path: Path) -> None:
    held = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"volcano-scheduler.conf": CONF},
    }
    side = read_side("p", folder(tmp_path / "p", c_yaml=dump_yaml(held)))
    assert (side.config, side.objects) == (CONF, ())


def test_a_git_revision_is_the_folder_as_it_was(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    folder(tmp_path / "cluster", scheduler_conf=CONF)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    folder(tmp_path / "cluster", scheduler_conf=CONF + "# changed\n")
    into = tmp_path / "space"
    into.mkdir()
    found, shown = folder_of("HEAD", "cluster", tmp_path, into)
    assert (read_side("HEAD", found, shown).config, shown) == (CONF, "HEAD:cluster")
    assert (folder_of("HEAD", ".", tmp_path, into)[0] / "cluster").is_dir()
    with pytest.raises(InputError, match="HEAD:nope: this revision has no such folder"):
        folder_of("HEAD", "nope", tmp_path, into)
    with pytest.raises(InputError, match="v9: no such folder, and no such git revision"):
        folder_of("v9", "cluster", tmp_path, into)


@pytest.mark.parametrize(
    ("beside", "policy"), [("", "a/b/cluster"), ("a", "b/cluster"), ("a/b", "cluster/"), ("a/b/cluster", "")]
)
def test_a_git_revision_is_read_from_any_folder(beside: str, policy: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a/b/cluster/queues").mkdir(parents=True)
    folder(tmp_path / "a/b/cluster", scheduler_conf=CONF)
    folder(tmp_path / "a/b/cluster/queues", a_yaml=dump_yaml(queue("a")))
    folder(tmp_path, other_conf=CONF)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    into = tmp_path / "space"
    into.mkdir()
    found, shown = folder_of("HEAD", policy, tmp_path / beside, into)
    side = read_side("HEAD", found, shown)
    assert (side.config, [obj["metadata"]["name"] for obj in side.objects]) == (CONF, ["a"])


def test_a_revision_outside_of_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not in a git repository"):
        folder_of("HEAD", "cluster", tmp_path, tmp_path)


def test_draws_differ_and_the_first_is_the_workload() -> None:
    work = [*nodes(1), *(gang(f"j-{number}", 1, arrival=f"{number}h", duration="1m") for number in range(1, 40))]
    noise = Noise(3, "5s", 0.1, "24h")
    assert drawn(work, noise, 0) == work
    one, other = drawn(work, noise, 1), drawn(work, noise, 2)
    assert one != other
    assert one == drawn(work, noise, 1)
    names = [obj["metadata"]["name"] for obj in one]
    assert len(set(names)) == len(names)
    assert all((arrival_s(obj) or 0.0) >= 0 for obj in one)


def test_another_order_of_names_makes_no_new_finding(tmp_path: Path) -> None:
    work = [gang("j", 2, cpu=2, queue="a"), gang("k", 1, queue="gone")]
    one = queue("a", capability={"cpu": 1}), queue("b", deserved={"cpu": 1})
    config = {"scheduler_conf": CONF}
    base = read_side("b", folder(tmp_path / "b", a_yaml=dump_yaml(one[0]), b_yaml=dump_yaml(one[1]), **config))
    head = read_side("h", folder(tmp_path / "h", a_yaml=dump_yaml(one[1]), b_yaml=dump_yaml(one[0]), **config))
    found, others = (findings(side, [*side.objects, *work]) for side in (base, head))
    assert any("capability of queue a is 1" in each.sentence for each in found)
    assert any("queue gone does not exist" in each.sentence for each in found)
    assert any("deserved of queue b is without effect" in each.sentence for each in found)
    assert new_in(others, found) == new_in(found, others) == []


def test_objects_that_the_api_refuses_are_read_without_an_error(tmp_path: Path) -> None:
    odd = gang("j", 1)
    odd["spec"].update(tasks=[7, *odd["spec"]["tasks"]], minAvailable="x", policies=[3])
    odd["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": "x"}
    side = read_side("p", folder(tmp_path / "p", a_conf=CONF))
    assert isinstance(findings(side, [odd]), list)
