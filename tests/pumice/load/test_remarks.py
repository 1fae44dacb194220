"""What would come to nothing is said when it is read, with its place and what was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pumice.load.manifests import Loaded, load_text
from pumice.load.remarks import remarks, strangers
from tests.kit import node, pod
from tests.kit.jobs import vcjob
from tests.pumice.cli.terminal import pumice

GROUP = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g, namespace: default}
spec: {minMembers: 3}
"""


def loaded(text: str) -> Loaded:
    found = Loaded()
    load_text(text, "some.yaml", found)
    return found


def test_a_field_that_the_kind_does_not_have() -> None:
    (said,) = remarks(loaded(GROUP))
    assert said == "some.yaml:1: PodGroup default/g: unknown field 'spec.minMembers', did you mean 'minMember'?"


def test_many_of_them_are_counted() -> None:
    said = remarks(loaded("---\n".join(GROUP.replace("name: g", f"name: g{number}") for number in range(25))))
    assert (len(said), said[-1]) == (21, "and 5 more unknown fields")


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ],
)
def test_kinds_that_nobody_runs(type_: str, kind: str) -> None:
    (said,) = remarks(loaded(f"apiVersion: {type_}\nkind: {kind}\nmetadata: {{name: x}}\n"))
    assert said == f"{kind} ({type_}): 1; no controller for it runs here, so nothing comes of it"


def test_what_is_run_is_not_remarked_upon() -> None:
    text = GROUP.replace("minMembers", "minMember")
    for type_, kind in (
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("flow.volcano.sh/v1alpha1", "JobFlow"),
        ("batch.volcano.sh/v1alpha1", "CronJob"),
    ):
        text += f"---\napiVersion: {type_}\nkind: {kind}\nmetadata: {{name: x}}\n"
    assert remarks(loaded(text)) == []


def test_pods_of_other_schedulers_that_wait() -> None:
    other, placed, plain = pod("other"), pod("placed", node="n0"), pod("plain")
    other["spec"]["schedulerName"] = placed["spec"]["schedulerName"] = "yunikorn"
    plain["spec"]["schedulerName"] = "default-scheduler"
    (said,) = strangers([node("n0"), pod("ours"), other, placed, plain])
    assert said == "pods that ask for scheduler yunikorn: 1; no scheduler of that name runs here"


@pytest.mark.parametrize("command", [("run", "--time", "virtual", "--until", "idle"), ("decide",)])
def test_commands_say_so(command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.yaml").write_text(GROUP, "utf-8")
    said = pumice(*command, "-f", "g.yaml")
    assert "warning: g.yaml:1: PodGroup default/g: unknown field 'spec.minMembers'" in said.err
    assert said.code == 0


@pytest.mark.parametrize("flags", [(), ("--no-controllers",), ("--no-controllers", "--http", "127.0.0.1:0")])
def test_jobs_that_are_left_to_others(flags: tuple[str, ...], tmp_path: Path) -> None:
    """The journal says so too, where nobody can come to make their pods."""
    file, db = tmp_path / "j.yaml", tmp_path / "j.db"
    file.write_text(yaml.safe_dump_all([node("n0"), vcjob("j"), pod("p")]), "utf-8")
    said = pumice("run", "-f", file, "--db", db, "--until", "1s", "-o", "json", *flags)
    assert said.code == 0, said.err
    left = "warning: Job (batch.volcano.sh/v1alpha1): 1; left to other controllers (--no-controllers)"
    assert (left in said.err) == bool(flags)
    assert ("default/p: it names no PodGroup, and no controller made one" in said.err) == bool(flags)
    story = pumice("journal", db, "--about", "default/j", "-o", "json").json["story"]
    told = [each for each in story if "NoController" in each["text"]]
    assert len(told) == (flags == ("--no-controllers",))
