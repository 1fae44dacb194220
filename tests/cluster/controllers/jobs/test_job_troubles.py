"""The Job controller when things go wrong: policies, commands, refusals, restarts."""

import pytest

from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.controllers.jobs.rule import MOST_FAILURES, VolcanoJobRule
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.messages.commands import Create
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster, bind_all, enqueue_all
from tests.cluster.controllers.jobs.job_cluster import (
    FOREVER,
    fail,
    phase,
    pods,
    policy,
    run,
    schedule,
    status,
)
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import node
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue

# --- policies


def test_an_eviction_can_restart_the_job(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER, policies=[policy("PodEvicted", "RestartJob")]))
    old = {each["metadata"]["uid"] for each in cluster.all("Pod")}
    cluster.evict("j-a-1")
    cluster.advance(1)
    assert phase(cluster) == "Restarting"
    cluster.advance(2)
    schedule(cluster)
    new = cluster.all("Pod")
    assert not old & {each["metadata"]["uid"] for each in new}
    assert {each["metadata"]["annotations"]["volcano.sh/job-version"] for each in new} == {"1"}
    assert {each["metadata"]["annotations"]["volcano.sh/job-retry-count"] for each in new} == {"1"}
    assert (phase(cluster), status(cluster)["retryCount"], status(cluster)["version"]) == ("Running", 1, 1)


def test_a_restart_happens_once_though_all_pods_go(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER, policies=[policy("PodEvicted", "RestartJob")]))
    for pod in pods(cluster):
        cluster.evict(pod)
    cluster.advance(3)
    schedule(cluster)
    assert (phase(cluster), status(cluster)["retryCount"]) == ("Running", 1)


def test_after_the_last_retry_it_has_failed(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER, policies=[policy("PodFailed", "RestartJob")], max_retry=2))
    for _ in range(2):
        fail(cluster, "j-a-0")
        cluster.advance(3)
        schedule(cluster)
    assert (phase(cluster), status(cluster)["retryCount"]) == ("Failed", 2)
    cluster.advance(5)
    assert all(each["status"]["phase"] in ("Succeeded", "Failed") for each in cluster.all("Pod"))


@pytest.mark.parametrize(
    ("action", "on_the_way", "at_the_end"),
    [
        ("AbortJob", "Aborting", "Aborted"),
        ("TerminateJob", "Terminating", "Terminated"),
        ("CompleteJob", "Completing", "Completed"),
    ],
)
def test_a_failure_can_end_the_job(cluster: Cluster, action: str, on_the_way: str, at_the_end: str) -> None:
    run(cluster, vcjob("j", FOREVER, policies=[policy("PodFailed", action)]))
    fail(cluster, "j-a-0")
    assert phase(cluster) == on_the_way
    cluster.advance(2)
    assert phase(cluster) == at_the_end
    assert pods(cluster) == ["j-a-0"], "what has ended stays"
    assert cluster.all("PodGroup") == []
    assert status(cluster)["failed"] == 1


def test_a_completed_task_can_complete_the_job(cluster: Cluster) -> None:
    master = job_task("master", duration="3s", policies=[policy("TaskCompleted", "CompleteJob")])
    run(cluster, vcjob("j", master, job_task("worker", replicas=3, duration="0")))
    cluster.advance(2.9)
    assert phase(cluster) == "Running"
    cluster.advance(2)
    assert (phase(cluster), status(cluster)["succeeded"]) == ("Completed", 1)
    assert pods(cluster) == ["j-master-0"]


def test_an_exit_code_chooses(cluster: Cluster) -> None:
    policies = [{"exitCode": 42, "action": "AbortJob"}, policy("PodFailed", "RestartJob")]
    run(cluster, vcjob("j", FOREVER, policies=policies))
    fail(cluster, "j-a-0", 42)
    assert phase(cluster) == "Aborting"


@pytest.mark.parametrize(("action", "renewed"), [("RestartTask", {"j-a-0", "j-a-1"}), ("RestartPod", {"j-a-0"})])
def test_a_task_or_a_pod_can_restart_alone(cluster: Cluster, action: str, renewed: set[str]) -> None:
    tasks = [job_task("a", replicas=2, duration="0"), job_task("b", duration="0")]
    run(cluster, vcjob("j", *tasks, policies=[policy("PodFailed", action)], min_available=1))
    before = {each["metadata"]["name"]: each["metadata"]["uid"] for each in cluster.all("Pod")}
    fail(cluster, "j-a-0")
    cluster.advance(3)
    schedule(cluster)
    after = {each["metadata"]["name"]: each["metadata"]["uid"] for each in cluster.all("Pod")}
    assert {name for name in before if before[name] != after[name]} == renewed
    assert (phase(cluster), status(cluster)["retryCount"]) == ("Running", 1)


def test_a_policy_can_wait(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER, policies=[policy("PodFailed", "AbortJob", timeout="1m")]))
    fail(cluster, "j-a-0")
    cluster.advance(59)
    assert phase(cluster) == "Running"
    cluster.advance(3)
    assert phase(cluster) == "Aborted"


def test_a_pod_that_pends_too_long_is_a_reason_and_one_that_runs_in_time_is_none(cluster: Cluster) -> None:
    waits = [policy("PodPending", "AbortJob", timeout="1m")]
    cluster.create(vcjob("slow", job_task("a"), policies=waits))
    run(cluster, vcjob("quick", job_task("a", duration="0"), policies=waits))
    assert cluster.timers() == 0 or phase(cluster, "quick") == "Running"
    cluster.create(vcjob("never", job_task("a"), policies=waits))
    cluster.settle()
    enqueue_all(cluster)
    cluster.advance(62)
    assert phase(cluster, "quick") == "Running"
    assert phase(cluster, "never") == "Aborted"


def test_an_unknown_group_is_an_event(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER, policies=[policy("Unknown", "RestartJob")]))
    [group] = cluster.all("PodGroup")
    cluster.status("PodGroup", group["metadata"]["name"], {"phase": "Unknown"})
    cluster.settle()
    assert phase(cluster) == "Restarting"


# --- commands, time to live, trouble


def command(action: str, job: str = "j") -> Object:
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": "c-", "namespace": "default"},
        "action": action,
        "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job},
    }


def test_a_job_can_be_suspended_and_resumed(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER))
    cluster.create(command("AbortJob"))
    cluster.advance(2)
    assert (phase(cluster), pods(cluster)) == ("Aborted", [])
    assert cluster.all("Command") == []
    cluster.create(command("ResumeJob"))
    cluster.advance(2)
    schedule(cluster)
    assert (phase(cluster), len(pods(cluster))) == ("Running", 3)


def test_command_for_a_job_that_has_gone_spares_its_namesake(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER))
    cluster.delete("Job", "j")
    cluster.create(command("TerminateJob"))
    cluster.settle()
    assert pods(cluster) == ["j-a-0", "j-a-1", "j-a-2"], "they are on their way out"
    cluster.create(vcjob("j", FOREVER))
    cluster.advance(3)
    schedule(cluster)
    assert (phase(cluster), cluster.all("Command")) == ("Running", [])


def test_a_finished_job_goes_after_its_time_to_live(cluster: Cluster) -> None:
    run(cluster, vcjob("j", job_task("a"), ttl_s=60))
    cluster.advance(5)
    assert (phase(cluster), cluster.timers()) == ("Completed", 1)
    cluster.advance(59)
    assert cluster.exists("Job", "j")
    cluster.advance(1)
    assert not cluster.exists("Job", "j")
    assert (pods(cluster), cluster.timers()) == ([], 0)


def test_a_job_whose_pods_are_refused_says_why_and_is_given_up(cluster: Cluster) -> None:
    cluster.create(vcjob("j", job_task("a", replicas=2), priority_class="none"))
    cluster.settle()
    enqueue_all(cluster)
    cluster.advance(1)
    state = status(cluster)["state"]
    assert state["reason"] == "CreationRefused"
    assert "no PriorityClass with name none was found" in state["message"]
    cluster.advance(162)
    assert phase(cluster) == "Pending", "fifteen tries take 5 ms × (2^15 - 1)"
    cluster.advance(2)
    assert phase(cluster) == "Terminated"
    assert "no PriorityClass" in status(cluster)["state"]["message"]
    tries = [request for request, _ in cluster.requests if isinstance(request, Create) and b"j-a-0" in request.blob]
    assert len(tries) == MOST_FAILURES + 1
    assert cluster.timers() == 0


def test_and_goes_on_when_the_trouble_is_over(cluster: Cluster) -> None:
    cluster.create(vcjob("j", job_task("a", replicas=2), priority_class="late"))
    cluster.settle()
    enqueue_all(cluster)
    cluster.advance(1)
    cluster.create(priority_class("late", 5))
    cluster.advance(1)
    schedule(cluster)
    assert phase(cluster) == "Running"
    assert "message" not in status(cluster)["state"]


def test_a_closed_queue_keeps_the_group_out_and_says_so(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    cluster.create(vcjob("j", job_task("a"), queue="q"))
    cluster.status("Queue", "q", {"state": "Closed"}, "")
    cluster.advance(1)
    assert "queue `q` status is `Closed`" in status(cluster)["state"]["message"]
    cluster.status("Queue", "q", {"state": "Open"}, "")
    cluster.advance(2)
    assert len(cluster.all("PodGroup")) == 1


# --- restarts


def test_a_restart_in_any_moment_ends_the_same(cluster: Cluster) -> None:
    def lived(stop_at: int | None) -> tuple[str, int, int]:
        found = Cluster(FamilyMachine(VolcanoJobRule()), NodeAgentsMachine())
        found.create(node("n1"))
        found.create(vcjob("j", job_task("a", replicas=3), policies=[policy("PodEvicted", "RestartJob")]))
        for turn in range(40):
            if turn == stop_at:
                found.restart(FamilyMachine(VolcanoJobRule()), NodeAgentsMachine())
            match turn % 4:
                case 0:
                    enqueue_all(found)
                case 1:
                    bind_all(found)
                case 2:
                    found.settle()
                case _:
                    found.advance(1)
        return phase(found), status(found).get("succeeded", 0), len(pods(found))

    assert lived(None) == ("Completed", 3, 3)
    for stop_at in range(40):
        assert lived(stop_at) == ("Completed", 3, 3), f"restarted at turn {stop_at}"


def test_a_failure_nobody_saw_before_the_restart_is_seen_after_it(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER, policies=[policy("PodFailed", "AbortJob")]))
    cluster.status("Pod", "j-a-0", {"phase": "Failed"})
    cluster.restart(FamilyMachine(VolcanoJobRule()), NodeAgentsMachine())
    cluster.advance(3)
    assert phase(cluster) == "Aborted"


def test_evicted_pod_fails_before_it_is_evicted(cluster: Cluster) -> None:
    policies = [policy("PodFailed", "TerminateJob"), policy("PodEvicted", "RestartJob")]
    run(cluster, vcjob("j", FOREVER, policies=policies))
    cluster.evict("j-a-1")
    cluster.advance(1)
    assert (phase(cluster), status(cluster).get("retryCount")) == ("Terminating", None)
    cluster.advance(2)
    assert phase(cluster) == "Terminated"
