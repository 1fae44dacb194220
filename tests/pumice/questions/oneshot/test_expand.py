"""Jobs, Deployments and plain pods handed to a one-shot run become the pods and PodGroups that controllers make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.core.objects.metadata import Object
from pumice.load.manifests import Loaded
from pumice.questions.oneshot.bring import brought
from pumice.storage import codec
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.pumice.cli.terminal import Said, pumice

FLOWS = "flow.volcano.sh/v1alpha1"
TEMPLATE: Object = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
VOLCANO: Object = {"spec": {**TEMPLATE["spec"], "schedulerName": "volcano"}}


def job(name: str, *, pods: int = 2, **spec: Any) -> Object:
    task = {"name": "worker", "replicas": pods, "template": TEMPLATE}
    whole = {"minAvailable": pods, "tasks": [task], **spec}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": whole}


def deployment(name: str, replicas: int) -> Object:
    labels = {"app": name}
    template = {**VOLCANO, "metadata": {"labels": labels}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def decide(tmp_path: Path) -> Any:
    """Decide about objects, at a given time."""

    def run(objects: list[Object], *arguments: object) -> Said:
        file = tmp_path / "objects.yaml"
        file.write_text(yaml.safe_dump_all(objects))
        return pumice("decide", "-f", file, "-o", "json", "--now", "2026-01-01T00:00:00Z", *arguments)

    return run


def test_a_job_becomes_a_gang_in_an_assumed_queue(decide: Any) -> None:
    said = decide([node("n0", cpu="8"), job("j")])
    assert said.code == 0
    assert said.json["cycles"][0]["binds"] == {"default/j-worker-0": "n0", "default/j-worker-1": "n0"}
    assert "Queues root and default are not in the input: assumed" in said.err


def test_who_is_evicted_when_a_job_is_submitted(decide: Any, tmp_path: Path) -> None:
    """A dump with a running pod of low priority, and a Job of high priority that needs its room."""
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("high", 1000), ("low", 1))
    ]
    low = pod_group("low", min_member=0, phase="Running", priority_class="low")
    running = pod("low-0", group="low", cpu="2", node="n0", phase="Running", priority=1)
    conf = tmp_path / "scheduler.conf"
    conf.write_text(
        'actions: "enqueue, allocate, preempt"\n'
        "tiers: [{plugins: [{name: priority}, {name: gang}]}, {plugins: [{name: predicates}]}]\n"
    )
    dump = [node("n0", cpu="2"), queue("default"), *classes, low, running]
    said = decide([*dump, job("urgent", pods=1, priorityClassName="high")], "--config", conf)
    (cycle,) = said.json["cycles"]
    assert cycle["evictions"] == ["default/low-0"]
    assert cycle["pipelined"] == {"default/urgent-worker-0": "n0"}


def test_only_what_is_missing_of_a_dumped_job_is_made(decide: Any) -> None:
    uid = "11111111-2222-3333-4444-555555555555"
    dumped = job("j", pods=3)
    dumped["metadata"] |= {"uid": uid, "namespace": "default"}
    dumped["status"] = {"state": {"phase": "Running"}}
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": uid, "controller": True}
    group = pod_group(f"j-{uid}", min_member=3, phase="Running")
    there = pod("j-worker-1", group=f"j-{uid}", node="n0", phase="Running")
    for each in (group, there):
        each["metadata"]["ownerReferences"] = [owner]
    there["metadata"]["annotations"] |= {
        "volcano.sh/task-spec": "worker",
        "volcano.sh/job-name": "j",
        "volcano.sh/job-version": "0",
    }
    said = decide([node("n0"), queue("default"), dumped, group, there])
    assert set(said.json["cycles"][0]["binds"]) == {"default/j-worker-0", "default/j-worker-2"}


def test_a_schedule_says_that_no_time_passes(decide: Any) -> None:
    template = {"spec": {**VOLCANO["spec"], "restartPolicy": "Never"}}
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}
    cron: Object = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec}
    assert "CronJob default/c: nothing is made of it: Jobs come of it as time passes" in decide([node("n0"), cron]).err


def test_a_dumped_flow_without_a_spec_harms_nobody(decide: Any) -> None:
    metadata = {"name": "f", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    flow: Object = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": metadata}
    assert decide([node("n0"), flow, pod("lone")]).json["cycles"][0]["binds"] == {"default/lone": "n0"}


def test_a_deployment_and_a_plain_pod_get_groups(decide: Any) -> None:
    said = decide([node("n0", cpu="8"), deployment("web", 2), pod("lone")])
    binds = said.json["cycles"][0]["binds"]
    assert len(binds) == 3
    assert "default/lone" in binds
    assert sum(name.startswith("default/web-") for name in binds) == 2


def test_where_each_action_ended_for_a_job_that_waits(decide: Any) -> None:
    said = decide([node("n0", cpu="2"), job("big", pods=4), job("small", pods=1)])
    ((waits, ended),) = said.json["ended"].items()
    assert waits.startswith("default/big-")
    assert ended == ["enqueue: not admitted (overcommit)"]


def test_plain_objects_stay_as_they_are(decide: Any) -> None:
    """No queue but Volcano's own is assumed for a PodGroup that names a missing one."""
    said = decide([node("n0"), pod_group("g", queue="gone"), pod("g-0", group="g")])
    assert said.json["pending"]["default/g-0"]["reason"] == "QueueMissing"
    assert list(said.json["queues"]) == ["default", "root"]


def test_a_job_that_is_refused_says_why_and_the_others_go_on(decide: Any) -> None:
    said = decide([node("n0", cpu="8"), job("bad", queue="nowhere"), job("good")])
    assert said.code == 2
    assert "Job default/bad" in said.err
    assert 'queue "nowhere" does not exist' in said.err
    assert set(said.json["cycles"][0]["binds"]) == {"default/good-worker-0", "default/good-worker-1"}


def test_kinds_that_nothing_comes_of_are_named(decide: Any) -> None:
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": {}}
    said = decide([node("n0"), scaler, job("j")])
    assert "HorizontalPodAutoscaler (autoscaling/v2): 1; no controller for it runs here" in said.err
    assert len(said.json["cycles"][0]["binds"]) == 2


def test_the_first_jobs_of_a_flow_are_decided_about(decide: Any) -> None:
    version = "flow.volcano.sh/v1alpha1"
    templates = [{**job(name, pods=1), "apiVersion": version, "kind": "JobTemplate"} for name in ("a", "b")]
    flows = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
    flow = {"apiVersion": version, "kind": "JobFlow", "metadata": {"name": "f"}, "spec": {"flows": flows}}
    said = decide([node("n0"), *templates, flow])
    assert set(said.json["cycles"][0]["binds"]) == {"default/f-a-worker-0"}


def test_one_pod_of_a_stateful_set_and_one_for_each_node(decide: Any) -> None:
    template = {**VOLCANO, "metadata": {"labels": {"app": "s"}}}
    spec = {"selector": {"matchLabels": {"app": "s"}}, "template": template, "replicas": 3}
    stateful = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec}
    daemons = {**stateful, "kind": "DaemonSet", "metadata": {"name": "d"}}
    said = decide([node("n0", cpu="8"), node("n1", cpu="8"), stateful, daemons])
    binds = said.json["cycles"][0]["binds"]
    assert {binds["default/d-0"], binds["default/d-1"]} == {"n0", "n1"}
    assert [name for name in binds if name.startswith("default/s-")] == ["default/s-0"], "the others wait for it"


def test_what_is_made_later_only_is_said(decide: Any) -> None:
    """The other pods of a set, tasks and Jobs that depend on others; nothing comes of a template that is not there."""
    labels = {"app": "web"}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": {**VOLCANO, "metadata": {"labels": labels}}}
    first = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec}
    together = {**first, "metadata": {"name": "all"}, "spec": {**spec, "podManagementPolicy": "Parallel"}}
    tasks = [{"name": name, "replicas": 2, "template": TEMPLATE} for name in ("ps", "worker")]
    tasks[1]["dependsOn"] = {"name": ["ps"]}
    flows = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}, {"name": "c"}]
    templates = [
        {"apiVersion": FLOWS, "kind": "JobTemplate", "metadata": {"name": name}, "spec": job(name)["spec"]}
        for name in ("a", "b")
    ]
    flow = {"apiVersion": FLOWS, "kind": "JobFlow", "metadata": {"name": "f"}, "spec": {"flows": flows}}
    said = decide([node("n0", cpu="64"), first, together, job("j", tasks=tasks), *templates, flow])
    told = [
        line.removeprefix("warning: ")
        for line in said.err.splitlines()
        if line.startswith("warning: ") and "assumed" not in line
    ]
    assert told == [
        (
            "StatefulSet default/web: pod web-1 is made when web-0 runs and is ready, and 1 more one after the other "
            "(podManagementPolicy OrderedReady)"
        ),
        "Job default/j: pods of task worker (2) are made when those of ps run (dependsOn)",
        "JobFlow default/f: Job f-b is made when those of a are Completed (dependsOn)",
        "JobFlow default/f: JobTemplate c is not among the objects: no Job is made of it",
    ]
    bound = decide([node("n0", cpu="64"), together]).json["cycles"][0]["binds"]
    assert set(bound) == {f"default/all-{number}" for number in range(3)}


@pytest.mark.parametrize("recorded", [False, True])
def test_a_job_without_pods_has_a_row_that_says_why(tmp_path: Path, recorded: bool) -> None:
    """Its pods name a class that there is not."""
    nodes, more, db = tmp_path / "nodes.yaml", tmp_path / "more.yaml", tmp_path / "a.db"
    nodes.write_text(yaml.safe_dump(node("n0")))
    lost = job("lost")
    lost["spec"]["tasks"][0]["template"] = {"spec": {**TEMPLATE["spec"], "priorityClassName": "nowhere"}}
    more.write_text(yaml.safe_dump_all([lost, job("well")]))
    question: tuple[object, ...] = ("-f", nodes, "-f", more)
    if recorded:
        assert pumice("run", "-f", nodes, "--db", db, "--time", "virtual", "--until", "3s", "-o", "json").code == 0
        question = ("--db", db, "--cycle", "2", "-f", more)
    why = "no PriorityClass with name nowhere was found"
    told = pumice("decide", *question, "-o", "json").json["without_pods"]
    assert list(told) == ["default/lost"]
    assert why in told["default/lost"]["message"]
    table = pumice("decide", *question, "-o", "table", env={"COLUMNS": "400"}).out
    rows = [line.split(maxsplit=4) for line in table.splitlines() if "default/lost" in line]
    assert [row[:4] for row in rows] == [["default/lost", "default", "Inqueue", "none"]]
    assert why in rows[0][4]


def test_pods_of_kubernetes_own_jobs_are_decided_about(decide: Any) -> None:
    template = {"spec": {**VOLCANO["spec"], "restartPolicy": "Never"}}
    spec = {"completions": 3, "parallelism": 2, "template": template}
    plain = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}, "spec": spec}
    said = decide([node("n0", cpu="8"), plain, job("plain")])
    assert sorted(said.json["cycles"][0]["binds"]) == [
        "default/plain-0", "default/plain-1", "default/plain-worker-0", "default/plain-worker-1",
    ]  # fmt: skip
    refused = decide([node("n0"), {**plain, "spec": {"template": VOLCANO}}])
    assert "spec.template.spec.restartPolicy" in refused.err


def test_the_same_input_twice_gives_the_same_answer(decide: Any) -> None:
    objects = [node("n0"), node("n1"), deployment("web", 3), job("j", pods=3), pod("lone")]
    first, second = decide(objects), decide(objects)
    assert json.dumps(first.json) == json.dumps(second.json)


def test_what_is_handed_in_joins_a_recorded_state(tmp_path: Path) -> None:
    cluster, more, db = tmp_path / "cluster.yaml", tmp_path / "more.yaml", tmp_path / "cluster.db"
    cluster.write_text(yaml.safe_dump_all([node("n0", cpu="4"), job("first", pods=1)]))
    more.write_text(yaml.safe_dump(job("second", pods=1)))
    ran = pumice("run", "-f", cluster, "--db", db, "--time", "virtual", "--until", "cycles=4", "-o", "json")
    assert ran.code == 0, ran.err
    said = pumice("decide", "--db", db, "--cycle", "4", "-f", more, "-o", "json")
    assert said.code == 0, said.err
    assert "default/second-worker-0" in said.json["cycles"][0]["binds"]
    again = pumice("decide", "--db", db, "--cycle", "4", "-f", cluster, "-o", "json")
    assert again.code == 2
    assert "the recorded state has it already" in again.err


def test_explain_of_what_is_handed_in(tmp_path: Path) -> None:
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.safe_dump_all([node("n0", cpu="1"), job("j")]))
    said = pumice("explain", "-f", file, "job", "default/j", "-o", "json")
    assert said.code == 0, said.err
    assert said.json["state"] == "Pending"
    assert sum(said.json["nodes"].values()) == 1


@pytest.mark.parametrize("command", [("decide",), ("explain", "job", "j")])
def test_what_could_not_be_used_is_the_exit_code(tmp_path: Path, command: tuple[str, ...]) -> None:
    """The others are decided about all the same."""
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump_all([node("n0"), node("n1", cpu="many"), job("j")]))
    said = pumice(command[0], "-f", file, *command[1:], "-o", "json")
    assert (said.code, "Node n1" in said.err, "n0" in said.out) == (2, True, True)


def test_a_quota_without_a_status_limits_as_if_its_controller_had_written_one(tmp_path: Path) -> None:
    """And one that says what it has used is believed."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "most", "namespace": "default"},
        "spec": {"hard": {"cpu": "4", "pods": "9"}},
    }
    file = tmp_path / "objects.yaml"
    config = tmp_path / "scheduler.conf"
    config.write_text('actions: "enqueue, allocate"\ntiers: [{plugins: [{name: resourcequota}, {name: gang}]}]\n')
    used = pod("there", cpu="3", node="n0")
    found: list[int] = []
    for status in ({}, {"status": {"hard": {"cpu": "4"}, "used": {"cpu": "0"}}}):
        objects = [node("n0"), used, {**quota, **status}, job("j", pods=2)]
        file.write_text(yaml.safe_dump_all(objects))
        said = pumice("decide", "-f", str(file), "--config", str(config), "-o", "json")
        found.append(len(said.json["cycles"][0]["binds"]))
        assert ("has no status" in said.err) == (not status)
    assert found == [0, 2]


def test_what_the_api_would_refuse_is_refused(decide: Any) -> None:
    round_and_round = [queue("q"), queue("p")]
    for each, parent in zip(round_and_round, ("p", "q"), strict=True):
        each["spec"]["parent"] = parent
    negative = pod_group("bad")
    negative["spec"]["minMember"] = -5
    for each in (*round_and_round, negative):
        each["metadata"].pop("uid", None)
        each.pop("status", None)
    said = decide([node("n0", cpu="8"), *round_and_round, negative, job("j")])
    assert said.code == 2
    assert len(said.json["cycles"][0]["binds"]) == 2  # the others are decided about
    for who, words in (
        ("Queue q", "spec.parent"),
        ("Queue p", "spec.parent"),
        ("PodGroup default/bad", "spec.minMember"),
    ):
        assert any(f" {who}: " in line and f" is invalid: {words}: " in line for line in said.err.splitlines())


@pytest.mark.parametrize("phase", ["Pending", "Inqueue", "Completed"])
def test_a_group_whose_job_is_not_in_the_input_says_so(decide: Any, phase: str) -> None:
    """A Job that waits for admission has no pods: a dump without the Job holds nothing to place."""
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "j", "controller": True}
    group = pod_group("train-1", phase=phase)
    group["metadata"]["ownerReferences"] = [owner]
    absent = "it has no pods, and Job default/train, which makes them, is not in the input: give jobs.batch.volcano.sh"
    said = decide([node("n0"), queue("default"), group])
    told = {"default/train": {"reason": "NoPods", "message": f"{absent} as well"}}
    assert said.json["without_pods"] == ({} if phase == "Completed" else told)
    assert (f"warning: PodGroup default/train-1: {absent}" in said.err) is (phase != "Completed")
    whole = decide([node("n0"), queue("default"), group, job("train")])
    assert "which makes them" not in whole.err


def test_objects_share_nothing_with_each_other_or_with_later_ones() -> None:
    """Who gets a pod may change it: admission keeps one spec of equal pods."""
    plain: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain", "namespace": "default"},
        **VOLCANO,
    }

    def made() -> list[Object]:
        given = [codec.unpack(codec.pack(obj)) for obj in (job("j"), deployment("d", 2), plain)]
        for obj in given:
            obj["metadata"]["namespace"] = "default"
        return brought(Loaded(given), (), 1.7e9).objects

    first = made()
    for obj in first:
        for container in obj.get("spec", {}).get("containers", ()):
            container["image"] = "changed"
            container["resources"]["requests"]["cpu"] = "99"
    pods = [obj for obj in made() if obj["kind"] == "Pod"]
    assert len(pods) == 5
    assert all("99" not in str(obj) and "changed" not in str(obj) for obj in pods)
