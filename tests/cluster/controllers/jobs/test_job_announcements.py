"""What the Job controller says in events, where somebody listens; and tasks that fail in place."""

import pytest

from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.controllers.jobs.rule import VolcanoJobRule
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.cluster.controllers.jobs.job_cluster import FOREVER, fail, job_cluster, phase, policy, run, schedule, status
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import node

FAILED = "the policy for PodFailed of the Job: pod j-a-0 failed with exit code 1"


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(FamilyMachine(VolcanoJobRule(aloud=True)), NodeAgentsMachine())
    found.create(node("n1"))
    return found


def said(cluster: Cluster) -> list[tuple[str, str, str]]:
    events = sorted(cluster.all("Event"), key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [(event["type"], event["reason"], event["message"]) for event in events]


def test_an_action_is_said(cluster: Cluster) -> None:
    run(cluster, vcjob("j", job_task("a", duration="0"), policies=[policy("PodFailed", "RestartJob")]))
    fail(cluster, "j-a-0")
    cluster.settle()
    assert said(cluster) == [
        ("Normal", "ExecuteAction", "Start to execute action RestartJob "),
        ("Normal", "PolicyApplied", f"RestartJob by {FAILED}"),
    ]
    about = cluster.all("Event")[0]
    assert (about["involvedObject"]["kind"], about["source"]["component"]) == ("Job", "vc-controller-manager")


def test_what_is_said_again_is_counted(cluster: Cluster) -> None:
    run(cluster, vcjob("j", job_task("a", duration="0"), policies=[policy("PodFailed", "RestartJob")]))
    for _ in range(2):
        fail(cluster, "j-a-0")
        schedule(cluster)
    events = [each for each in cluster.all("Event") if each["reason"] == "ExecuteAction"]
    assert [(each["message"], each["count"]) for each in events] == [("Start to execute action RestartJob ", 2)]


def test_one_that_is_put_off_is_said_twice(cluster: Cluster) -> None:
    run(cluster, vcjob("j", job_task("a", duration="0"), policies=[policy("PodFailed", "AbortJob", timeout="1m30s")]))
    fail(cluster, "j-a-0")
    cluster.advance(90)
    assert [message for _, _, message in said(cluster)] == [
        "Execute action AbortJob after 1m30s",
        "Start to execute action AbortJob ",
        f"AbortJob by {FAILED}",
    ]


def test_a_command_is_said(cluster: Cluster) -> None:
    run(cluster, vcjob("j", job_task("a", duration="0")))
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    meta = {"name": "c", "namespace": "default", "ownerReferences": [target]}
    command = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": meta, "target": target}
    cluster.create({**command, "action": "AbortJob"})
    cluster.settle()
    words = "Start to execute command AbortJob, and clean it up to make sure executed not more than once."
    assert said(cluster)[:2] == [
        ("Normal", "CommandIssued", words),
        ("Normal", "ExecuteAction", "Start to execute action AbortJob "),
    ]


def test_a_plugin_that_cannot_is_said_once_and_given_up(cluster: Cluster) -> None:
    job = vcjob("j", job_task("a"))
    job["spec"]["plugins"] = {"ray": []}
    run(cluster, job)
    cluster.advance(180)
    words = "Execute plugin when job add failed, err: job j doesn't have head task head"
    assert said(cluster) == [
        ("Warning", "PluginError", words),
        ("Normal", "ExecuteAction", "Job failed on action SyncJob for retry limit reached"),
        ("Normal", "ExecuteAction", "Start to execute action TerminateJob "),
    ]


def test_where_nobody_listens_nothing_is_said() -> None:
    cluster = job_cluster()
    run(cluster, vcjob("j", job_task("a", duration="0"), policies=[policy("PodFailed", "RestartJob")]))
    fail(cluster, "j-a-0")
    cluster.settle()
    assert said(cluster) == []


@pytest.mark.parametrize(("most", "expected"), [(2, "Aborted"), (5, "Running")])
def test_a_task_fails_when_its_containers_were_started_again_too_often(
    cluster: Cluster, most: int, expected: str
) -> None:
    task = job_task("a", policies=[policy("TaskFailed", "AbortJob")])
    task["maxRetry"] = most
    task["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "sleep 1; exit 1"]
    run(cluster, vcjob("j", task))
    cluster.advance(40)
    assert (phase(cluster), status(cluster)["version"] if expected == "Aborted" else 1) == (expected, 1)


@pytest.mark.parametrize(
    ("where", "of_what", "whose"),
    [("job", {"event": "PodFailed"}, "PodFailed of the Job"), ("task", {"exitCode": 3}, "exit code 3 of task a")],
)
def test_restart_names_the_policy_and_what_happened(where: str, of_what: Object, whose: str) -> None:
    cluster = Cluster(FamilyMachine(VolcanoJobRule(aloud=True)), NodeAgentsMachine())
    cluster.create(node("n1"))
    rule = {"action": "RestartJob", **of_what}
    task = job_task("a", replicas=2, duration="0", policies=[rule] if where == "task" else [])
    run(cluster, vcjob("j", task, policies=[rule] if where == "job" else []))
    fail(cluster, "j-a-1", 3)
    words = f"RestartJob by the policy for {whose}: pod j-a-1 failed with exit code 3"
    state = status(cluster)["state"]
    assert (state["phase"], state["reason"], state["message"]) == ("Restarting", "RestartJob", words)
    assert ("Normal", "PolicyApplied", words) in said(cluster)
    cluster.advance(3)
    schedule(cluster)
    assert phase(cluster) == "Running"
    assert "message" not in status(cluster)["state"]


def test_end_of_a_job_keeps_what_brought_it_about(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER, policies=[policy("PodFailed", "TerminateJob", timeout="10s")]))
    fail(cluster, "j-a-1", 3)
    cluster.advance(20)
    assert phase(cluster) == "Terminated"
    words = "TerminateJob by the policy for PodFailed of the Job: pod j-a-1 failed with exit code 3"
    assert status(cluster)["state"]["message"] == words
