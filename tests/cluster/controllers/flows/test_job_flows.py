"""JobFlows: Jobs from templates, each in its turn; JobTemplates know their Jobs."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.kernel.roster import families, flow_rules
from pumice.cluster.kube.statuses import timestamp
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster

VERSION = "flow.volcano.sh/v1alpha1"


def template(name: str) -> Object:
    task = {"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": VERSION, "kind": "JobTemplate", "metadata": metadata, "spec": {"tasks": [task]}}


def flow(*flows: tuple[str, list[str]], **spec: Any) -> Object:
    """Templates, with those that each depends on."""
    listed = [{"name": name, **({"dependsOn": {"targets": targets}} if targets else {})} for name, targets in flows]
    metadata = {"name": "f", "namespace": "default"}
    return {"apiVersion": VERSION, "kind": "JobFlow", "metadata": metadata, "spec": {"flows": listed, **spec}}


DIAMOND: tuple[tuple[str, list[str]], ...] = (("a", []), ("b", ["a"]), ("c", ["a"]), ("d", ["b", "c"]))


def started(made: Object, templates: str = "abcd") -> Cluster:
    cluster = Cluster(*families(*flow_rules()))
    for name in templates:
        cluster.create(template(name))
    cluster.create(made)
    cluster.settle()
    return cluster


def jobs(cluster: Cluster) -> str:
    return "".join(each["metadata"]["name"].removeprefix("f-") for each in cluster.all("Job"))


def come_to(cluster: Cluster, phase: str, *names: str) -> None:
    for name in names:
        cluster.status("Job", f"f-{name}", {"state": {"phase": phase}})
    cluster.settle()


def status(cluster: Cluster) -> Object:
    found: Object = cluster.get("JobFlow", "f").get("status") or {}
    return found


def phase(cluster: Cluster) -> str:
    state: Object = status(cluster).get("state") or {}
    return str(state.get("phase"))


def test_each_in_its_turn() -> None:
    cluster = started(flow(*DIAMOND))
    assert (jobs(cluster), phase(cluster)) == ("a", "Pending")
    come_to(cluster, "Running", "a")
    assert (jobs(cluster), phase(cluster)) == ("a", "Running")
    come_to(cluster, "Completed", "a")
    assert jobs(cluster) == "abc"
    come_to(cluster, "Completed", "b")
    assert jobs(cluster) == "abc"
    come_to(cluster, "Completed", "c")
    assert (jobs(cluster), phase(cluster)) == ("abcd", "Running")
    come_to(cluster, "Completed", "d")
    assert phase(cluster) == "Succeed"
    assert status(cluster)["completedJobs"] == ["f-a", "f-b", "f-c", "f-d"]


def test_what_a_job_of_a_flow_is_like() -> None:
    cluster = started(flow(("a", [])))
    job = cluster.get("Job", "f-a")
    marks = {"volcano.sh/createdByJobTemplate": "default.a", "volcano.sh/createdByJobFlow": "default.f"}
    assert job["metadata"]["labels"] == marks
    assert marks.items() <= job["metadata"]["annotations"].items()
    [owner] = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == ("JobFlow", True)
    assert [each["name"] for each in job["spec"]["tasks"]] == ["t"]
    assert ("Created", "create a job named f-a!") in [
        (each["reason"], each["message"]) for each in cluster.all("Event")
    ]
    assert cluster.get("JobTemplate", "a")["status"] == {"jobDependsOnList": ["f-a"]}
    assert "status" not in cluster.get("JobTemplate", "b")


def test_a_job_that_fails_is_the_end() -> None:
    cluster = started(flow(("a", []), ("b", ["a"])))
    come_to(cluster, "Running", "a")
    come_to(cluster, "Failed", "a")
    assert (jobs(cluster), phase(cluster)) == ("a", "Failed")
    come_to(cluster, "Completed", "a")
    assert (jobs(cluster), phase(cluster)) == ("a", "Failed")


def test_what_each_job_has_been() -> None:
    cluster = started(flow(("a", [])))
    come_to(cluster, "Pending", "a")
    cluster.advance(10)
    come_to(cluster, "Running", "a")
    cluster.status("Job", "f-a", {"runningDuration": "1m0s", "retryCount": 2})
    come_to(cluster, "Restarting", "a")
    [said] = status(cluster)["jobStatusList"]
    assert (said["name"], said["state"], said["restartCount"]) == ("f-a", "Restarting", 2)
    assert said["endTimestamp"] == "2023-11-14T22:14:20Z"
    assert [(each["state"], each.get("endTimestamp")) for each in said["runningHistories"]] == [
        ("Pending", "2023-11-14T22:13:30Z"),
        ("Running", "2023-11-14T22:13:30Z"),
        ("Restarting", None),
    ]
    assert status(cluster)["unKnowJobs"] == ["f-a"]
    assert status(cluster)["conditions"]["f-a"]["runningDuration"] == "1m0s"


@pytest.mark.parametrize(("policy", "left"), [("retain", "a"), ("delete", "")])
def test_its_jobs_may_go_once_it_has_succeeded(policy: str, left: str) -> None:
    cluster = started(flow(("a", []), jobRetainPolicy=policy))
    come_to(cluster, "Running", "a")
    come_to(cluster, "Completed", "a")
    assert (jobs(cluster), phase(cluster)) == (left, "Succeed")
    if left:
        cluster.status("Job", "f-a", {"runningDuration": "9s"})
        cluster.settle()
        assert status(cluster)["conditions"]["f-a"]["runningDuration"] == "9s"
        cluster.delete("Job", "f-a")
        cluster.settle()
        assert (jobs(cluster), phase(cluster)) == ("", "Succeed")


def test_it_waits_for_its_templates() -> None:
    cluster = started(flow(("a", []), ("b", [])), templates="a")
    assert jobs(cluster) == "a"
    warnings = [each["message"] for each in cluster.all("Event") if each["type"] == "Warning"]
    assert [('jobtemplate.flow.volcano.sh "b" not found' in each) for each in warnings] == [True]
    cluster.create(template("b"))
    cluster.settle()
    assert jobs(cluster) == "ab"


def test_jobs_go_with_it() -> None:
    cluster = started(flow(*DIAMOND))
    cluster.delete("JobFlow", "f")
    cluster.settle()
    assert jobs(cluster) == ""


def test_controllers_that_start_anew_change_nothing() -> None:
    cluster = started(flow(*DIAMOND))
    come_to(cluster, "Completed", "a")
    before = cluster.store.revision
    cluster.restart(*families(*flow_rules()))
    cluster.settle()
    assert cluster.store.revision == before


@pytest.mark.parametrize(
    ("flows", "why"),
    [
        ((("a", ["a"]),), "jobflow Flow is not DAG"),
        ((("a", ["b"]), ("b", ["a"])), "jobflow Flow is not DAG"),
        ((("a", ["z"]),), "jobflow Flow is not DAG: vertex is not defined: z"),
    ],
)
def test_flows_do_not_go_round_in_circles(flows: tuple[tuple[str, list[str]], ...], why: str) -> None:
    refused = Cluster().refused(flow(*flows))
    assert refused.message.endswith(why)
    cluster = started(flow(("a", [])))
    answer = cluster.patch("JobFlow", "f", {"spec": flow(*flows)["spec"]})
    assert isinstance(answer, Refused)


def test_what_else_is_refused() -> None:
    assert "spec.jobRetainPolicy" in Cluster().refused(flow(("a", []), jobRetainPolicy="burn")).message
    assert "spec.flows[0].name" in Cluster().refused(flow(("", []))).message


@pytest.mark.parametrize(("fixes", "after"), [((), "Running"), (("terminated-jobs-fail-flows",), "Failed")])
def test_terminated_job_leaves_a_running_flow_alone_unless_mended(fixes: tuple[str, ...], after: str) -> None:
    cluster = Cluster(*families(*flow_rules(lambda: fixes)))
    for name in "abcd":
        cluster.create(template(name))
    cluster.create(flow(*DIAMOND))
    cluster.settle()
    come_to(cluster, "Running", "a")
    come_to(cluster, "Terminated", "a")
    assert phase(cluster) == after


def test_a_user_thinks_before_the_next_job() -> None:
    thoughtful = template("b")
    thoughtful["metadata"]["annotations"] = {"pumice.dev/think-time": "30s"}
    cluster = Cluster(*families(*flow_rules()))
    for made in (template("a"), thoughtful, flow(("a", []), ("b", ["a"]))):
        cluster.create(made)
    cluster.settle()
    cluster.advance(100)
    ended = {"phase": "Completed", "lastTransitionTime": timestamp(cluster.now)}
    cluster.status("Job", "f-a", {"state": ended})
    cluster.settle()
    assert jobs(cluster) == "a"
    cluster.advance(29)
    assert jobs(cluster) == "a"
    cluster.advance(1)
    assert jobs(cluster) == "ab"


def done(*fixes: str) -> Cluster:
    """Return a flow of a and b, both Completed."""
    cluster = Cluster(*families(*flow_rules(lambda: fixes)))
    for made in (template("a"), template("b"), flow(("a", []), ("b", []))):
        cluster.create(made)
    cluster.settle()
    come_to(cluster, "Running", "a", "b")
    come_to(cluster, "Completed", "a", "b")
    assert phase(cluster) == "Succeed"
    return cluster


def gone(cluster: Cluster, name: str) -> None:
    cluster.delete("Job", f"f-{name}")
    cluster.settle()


@pytest.mark.parametrize(("fixes", "after"), [((), "ab"), (("flows-follow-deletions",), "b")])
def test_job_of_a_done_flow_is_made_anew_with_the_next_change(fixes: tuple[str, ...], after: str) -> None:
    cluster = done(*fixes)
    gone(cluster, "a")
    assert jobs(cluster) == "b"
    come_to(cluster, "Aborted", "b")
    assert (jobs(cluster), phase(cluster)) == (after, "Succeed")


@pytest.mark.parametrize(("fixes", "after"), [((), "b"), (("flows-follow-deletions",), "ab")])
def test_deleted_job_of_a_running_flow_waits_unless_mended(fixes: tuple[str, ...], after: str) -> None:
    cluster = Cluster(*families(*flow_rules(lambda: fixes)))
    for made in (template("a"), template("b"), flow(("a", []), ("b", []))):
        cluster.create(made)
    cluster.settle()
    come_to(cluster, "Running", "a", "b")
    gone(cluster, "a")
    cluster.create(template("c"))
    cluster.settle()
    assert jobs(cluster) == after
    come_to(cluster, "Completed", "b")
    assert jobs(cluster) == "ab"
    events = [each for each in cluster.all("Event") if each["message"] == "create a job named f-a!"]
    assert sum(each.get("count") or 1 for each in events) == 2


def test_template_lists_a_deleted_job_until_another_comes() -> None:
    cluster = done()
    listed = {"a": ["f-a"], "b": ["f-b"]}

    def known() -> dict[str, list[str]]:
        names = {name: cluster.get("JobTemplate", name) for name in "ab"}
        return {name: obj["status"]["jobDependsOnList"] for name, obj in names.items()}

    assert known() == listed
    more = cluster.get("Job", "f-a")
    meta = {"name": "mine", "namespace": "default", "labels": more["metadata"]["labels"]}
    cluster.create({"apiVersion": more["apiVersion"], "kind": "Job", "metadata": meta, "spec": more["spec"]})
    cluster.settle()
    assert known() == {**listed, "a": ["f-a", "mine"]}
    gone(cluster, "a")
    assert known() == {**listed, "a": ["f-a", "mine"]}
    cluster.create(
        {"apiVersion": more["apiVersion"], "kind": "Job", "metadata": {**meta, "name": "next"}, "spec": more["spec"]}
    )
    cluster.settle()
    assert known()["a"] == ["mine", "next"]
