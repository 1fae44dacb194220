"""Why a pod was evicted, plugin by plugin, and why a job without pods waits: told from journals of real runs."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
import yaml
from rich.console import Console

from pumice.cli.explain import show
from pumice.core.messages.decisions import Evict
from pumice.questions.explain.account import account_of
from pumice.questions.explain.scene import Scene, scene_of
from pumice.questions.history.rewind import rewind_file
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice
from tests.pumice.questions.explain.agreement import decided, disagreements

CONFIG = """\
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def ran(folder: Path, *batches: list[Any], time: str = "real") -> Path:
    """The journal of one run after the other."""
    (folder / "some.conf").write_text(CONFIG, "utf-8")
    for batch in batches:
        (folder / "all.yaml").write_text(yaml.safe_dump_all(batch), "utf-8")
        run = ["run", "-f", folder / "all.yaml", "--db", folder / "j.db", "--config", folder / "some.conf"]
        said = pumice(*run, "--until", "idle", "--time", time, "-o", "json")
        assert said.code == 0, said.err
    return folder / "j.db"


def priority(name: str, value: int) -> dict[str, Any]:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


@pytest.fixture(scope="module")
def evicted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, list[dict[str, Any]]]:
    """A journal, the cycle in which pods made room for others, and its evictions."""
    low = [node("n0", cpu="8"), priority("low", 10), priority("high", 1000)]
    low += gang("low", pods=8, min_member=2, cpu="1", memory="64Mi", duration="0", priority_class="low", grace_s=1)
    high = gang("high", pods=2, cpu="1", memory="64Mi", duration="0", priority_class="high")
    db = ran(tmp_path_factory.mktemp("evicted"), low, high)
    cycles = pumice("journal", db, "-o", "json").json["cycles"]
    for number in range(1, cycles + 1):
        made = pumice("journal", db, "--cycle", number, "-o", "json").json["decisions"]
        if evictions := [one for one in made if one["_"] == Evict.__name__]:
            return db, number, evictions
    raise AssertionError("nobody was evicted")


def test_an_eviction_is_told_with_preemptor_reason_and_score(evicted: tuple[Path, int, list[dict[str, Any]]]) -> None:
    db, number, evictions = evicted
    shown = pumice("journal", db, "--cycle", number, "-o", "table").out
    for one in evictions:
        assert (one["reason"], one["action"]) == ("preempt", "preempt")
        assert one["preemptor"].startswith("default/high-")
        assert one["score"] > 0  # the node's
        said = pumice("explain", "--db", db, "pod", one["name"], "-o", "json").json
        assert said["plugins"]["preempt"]["score"] == one["score"]
        assert f"score {one['score']:g}" in said["message"]
        assert one["name"] in shown
        assert one["preemptor"] in shown


def test_every_plugin_says_how_it_voted_and_the_counts_add_up(evicted: tuple[Path, int, list[dict[str, Any]]]) -> None:
    db, number, evictions = evicted
    for one in evictions:
        victim = f"{one['namespace']}/{one['name']}"
        said = pumice("explain", "--db", db, "pod", victim, "-o", "json").json
        assert (said["cycle"], said["state"], said["votes"]["preemptor"]) == (number, "Evicted", one["preemptor"])
        ballots = {each["plugin"]: each for each in said["votes"]["ballots"]}
        assert list(ballots) == ["priority", "gang", "conformance"], "nobody asks drf when the first tier has decided"
        assert all(
            each["gave"] + each["kept"] + each["abstained"] == said["votes"]["candidates"] for each in ballots.values()
        )
        assert said["votes"]["tier"] == 1
        assert all(each["vote"] == "evict" for each in ballots.values() if each["tier"] == 1)
        assert said["votes"]["victims"] <= min(each["gave"] for each in ballots.values() if each["tier"] == 1)
        assert said["plugins"]["gang"]["vote"] == "evict"
        assert "in tier 1 priority and gang and conformance agreed" in said["message"]
        assert one["preemptor"] in said["message"]


def test_gang_keeps_as_many_as_the_job_needs(evicted: tuple[Path, int, list[dict[str, Any]]]) -> None:
    db, _, (one, *_) = evicted
    said = pumice("explain", "--db", db, "pod", one["name"], "-o", "json").json
    gang_ballot = next(each for each in said["votes"]["ballots"] if each["plugin"] == "gang")
    assert gang_ballot["kept"] == 2


def rewound(evicted: tuple[Path, int, list[dict[str, Any]]]) -> Scene:
    """The cycle of the evictions."""
    db, number, _ = evicted
    return scene_of(anyio.run(rewind_file, db, number))


def test_an_explanation_says_what_the_trail_of_the_cycle_says(evicted: tuple[Path, int, list[dict[str, Any]]]) -> None:
    scene = rewound(evicted)
    assert decided(scene)[0].evicts
    assert disagreements(scene) == []


def test_a_cycle_that_comes_out_otherwise_is_called_so(evicted: tuple[Path, int, list[dict[str, Any]]]) -> None:
    scene = rewound(evicted)
    assert scene.recorded is not None
    pod = next(iter(scene.view.tasks.by_key))
    assert account_of(scene, "pod", pod).differs == {}
    other = msgspec.structs.replace(scene.recorded.record, digest="another")
    account = account_of(replace(scene, recorded=replace(scene.recorded, record=other)), "pod", pod)
    assert account.differs.get("recorded") == {"digest": "another"}
    shown = StringIO()
    show(Console(file=shown, width=200), account)
    assert f"cycle {account.cycle} comes out otherwise now" in shown.getvalue()


def test_a_nominated_pod_says_why_it_is_where_it_is(evicted: tuple[Path, int, list[dict[str, Any]]]) -> None:
    db, number, _ = evicted
    said = pumice("explain", "--db", db, "pod", "high-0", "-o", "json").json
    assert (said["state"], said["cycle"] > number) == ("Bound", True)
    assert "room had been made there" in said["message"]


def test_a_full_node_fits_nobody_whom_preempt_makes_room_for(tmp_path: Path) -> None:
    """Preempt looks without room; before it, nobody looked, for the queue had refused."""
    low = gang(
        "low", pods=2, min_member=1, queue="small", cpu="2", memory="0", priority_class="low", nodes=["n0", "n0"]
    )
    high = gang("high", pods=1, queue="small", cpu="2", memory="0", priority_class="high", phase="Inqueue")
    low[0]["status"] = {"phase": "Running"}
    objects = [node("n0", cpu="4"), node("n1", cpu="1"), queue("default"), queue("small", capability={"cpu": "4"})]
    objects += [priority("low", 10), priority("high", 1000), *low, *high]
    (tmp_path / "o.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
    (tmp_path / "some.conf").write_text(CONFIG.replace("enqueue, ", ""), "utf-8")
    at = ("-f", tmp_path / "o.yaml", "--config", tmp_path / "some.conf", "--budget", 0, "-o", "json")
    said = pumice("explain", "pod", "high-0", *at).json
    assert (said["state"], said["reason"]) == ("Pipelined", "Promised")
    assert said["nodes"] == {"Insufficient cpu": 2}


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    small = queue("small", capability={"cpu": "2"})
    objects = [node("n0", cpu="128"), small, pod_group("empty", min_member=3, queue="default")]
    objects.append(pod_group("big", min_member=3, queue="small", min_resources={"cpu": "20"}))
    objects.append(vcjob("vc", job_task(replicas=2, cpu="30"), queue="small"))
    return ran(tmp_path_factory.mktemp("waiting"), objects)


SENTENCES = {
    "empty": ("PodsMissing", "Not enough valid tasks for gang-scheduling, valid: 0, min: 3 (it has no pods)"),
    "big": ("QueueCapability", "proportion does not admit it: asks 20 cpu, 2 left of 2; queue resource quota"),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_job_without_pods_has_a_reason(waiting: Path, name: str) -> None:
    reason, sentence = SENTENCES[name]
    said = pumice("explain", "--db", waiting, "podgroup", name, "-o", "json").json
    assert (said["reason"], said["tasks"]) == (reason, {})
    assert said["message"].startswith(sentence)
    assert said["job"]["queue_state"] == "Open"
    story = pumice("journal", waiting, "--about", f"default/{name}", "-o", "json").json
    assert story["waits"]["reason"] == reason
    assert sentence in pumice("journal", waiting, "--about", f"default/{name}", "-o", "table").out


def test_so_has_a_job_that_is_not_admitted(waiting: Path) -> None:
    said = pumice("explain", "--db", waiting, "job", "vc", "-o", "json").json
    assert said["job"]["admission"]["proportion"] == "rejects"
    assert said["message"].startswith("proportion does not admit it: asks 60 cpu, 2 left of 2")
    assert "2 of 2 fit with: queue small: capability cpu 80 instead of 2" in said["unblock"]
    table = pumice("explain", "--db", waiting, "job", "vc", "-o", "table", "--budget", 0).out
    assert "advice: the work for trying (0 s) was over before anything was tried (--budget)" in table
    story = pumice("journal", waiting, "--about", "default/vc", "-o", "json").json
    assert "proportion does not admit it: asks 60 cpu, 2 left of 2" in story["waits"]["message"]


def test_what_has_ended_or_runs_waits_for_nothing(evicted: tuple[Path, int, list[dict[str, Any]]]) -> None:
    db, _, _ = evicted
    assert pumice("journal", db, "--about", "default/high", "-o", "json").json["waits"] is None


def test_a_pod_of_another_scheduler_is_told_whom_it_waits_for(tmp_path: Path) -> None:
    stranger = pod("theirs")
    stranger["spec"]["schedulerName"] = "mine"
    db = ran(tmp_path, [node("n0"), stranger], time="virtual")
    said = pumice("explain", "--db", db, "pod", "theirs", "-o", "json").json
    assert (said["state"], said["reason"]) == ("Pending", "NoScheduler")
    assert said["message"] == "no scheduler named 'mine' runs here, for which the pod asks"
    story = pumice("journal", db, "--about", "default/theirs", "-o", "table").out
    assert "NoScheduler: no scheduler named 'mine' runs here" in story


def test_what_a_pod_and_its_job_both_say_is_said_once(tmp_path: Path) -> None:
    """A task that waits for another one has no pods yet."""
    job = vcjob("j", job_task("a", cpu="1"), job_task("b", cpu="1", depends_on=["a"]))
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([node("n0", cpu="4"), job]), "utf-8")
    told = pumice("explain", "-f", tmp_path / "all.yaml", "job", "j", "--budget", "0.1", "-o", "json").json
    assert told["message"].count("Not enough valid pods of each task") == 1


def test_deployment_is_explained_by_its_pods_in_manifests_and_in_a_journal(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x", cpu="7")["spec"]}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    file, db = tmp_path / "c.yaml", tmp_path / "j.db"
    file.write_text(yaml.safe_dump_all([node("n0", cpu="8"), queue("default"), web]))
    assert pumice("run", "-f", file, "--db", db, "--time", "virtual", "--until", "3s").code == 0
    for source in (("-f", file), ("--db", db)):
        for named in (("deployment", "default/web"), ("deploy/web",)):
            told = pumice("explain", *source, *named, "-o", "json").json
            assert (told["kind"], told["name"]) == ("deployment", "default/web")
            assert len(told["tasks"]) == 2
    assert pumice("explain", "-f", file, "statefulset", "web").code == 2
