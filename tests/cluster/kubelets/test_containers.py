"""Containers that say what they do: run, ended, started again, as a kubelet does; on a clock moved by hand."""

from itertools import pairwise
from typing import Any

import pytest

from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.pods import pod


def container(script: str, name: str = "main", **more: Any) -> Object:
    return {"name": name, "image": "busybox", "command": ["sh", "-c", script], **more}


def bound(cluster: Cluster, *containers: Object, policy: str = "Always", **spec: Any) -> None:
    made = pod("p")
    made["metadata"].pop("annotations", None)
    made["spec"] |= {"containers": list(containers), "restartPolicy": policy, **spec}
    cluster.create(made)
    cluster.bind("p", "n1")
    cluster.settle()


def status(cluster: Cluster) -> Object:
    found: Object = cluster.get("Pod", "p")["status"]
    return found


def main(cluster: Cluster) -> Object:
    found: Object = status(cluster)["containerStatuses"][0]
    return found


def test_a_command_says_when_and_how_it_ends(cluster: Cluster) -> None:
    bound(cluster, container("sleep 10s && exit 3"), policy="Never")
    cluster.advance(9.9)
    assert status(cluster)["phase"] == "Running"
    cluster.advance(0.1)
    assert status(cluster)["phase"] == "Failed"
    ended = main(cluster)["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["finishedAt"]) == (3, "Error", "2023-11-14T22:13:30Z")
    assert cluster.timers() == 0


@pytest.mark.parametrize(
    ("policy", "phase"), [("OnFailure", "Succeeded"), ("Never", "Succeeded"), ("Always", "Running")]
)
def test_one_that_ends_well(cluster: Cluster, policy: str, phase: str) -> None:
    bound(cluster, container("sleep 1"), policy=policy)
    cluster.advance(1.5)
    assert (status(cluster)["phase"], main(cluster)["restartCount"]) == (phase, int(policy == "Always"))


def test_the_annotation_comes_first(cluster: Cluster) -> None:
    made = pod("p", duration="20s")
    made["spec"]["containers"] = [container("exit 1")]
    cluster.create(made)
    cluster.bind("p", "n1")
    cluster.advance(20)
    assert status(cluster)["phase"] == "Succeeded"


def test_a_program_that_nobody_knows_runs_for_the_duration_of_its_pod(cluster: Cluster) -> None:
    bound(cluster, container("", command=["python", "train.py"]))
    cluster.advance(5)
    assert status(cluster)["phase"] == "Succeeded"
    assert "lastState" not in main(cluster)


def test_work_runs_for_the_duration_of_its_pod_and_is_done(cluster: Cluster) -> None:
    bound(cluster, container("sleep 2; python train.py"))
    cluster.advance(6.9)
    assert status(cluster)["phase"] == "Running"
    cluster.advance(0.1)
    assert status(cluster)["phase"] == "Succeeded"


def test_a_service_that_is_kept_up_runs_for_ever(cluster: Cluster) -> None:
    bound(cluster, {"name": "main", "image": "docker.io/library/nginx:1.27"})
    cluster.advance(10**6)
    assert status(cluster)["phase"] == "Running"


def test_back_off_doubles_up_to_five_minutes(cluster: Cluster) -> None:
    """The kubelet's: immediately, then 10 s after the end, 20 s, 40 s, 80 s, 160 s, 300 s, 300 s."""
    bound(cluster, container("sleep 1; exit 1"), policy="OnFailure")
    starts = [0.0]
    while len(starts) < 9:
        before = main(cluster)["restartCount"]
        cluster.advance(0.5)
        if main(cluster)["restartCount"] > before:
            starts.append(cluster.now - 1_700_000_000.0)
    gaps = [round(late - early, 3) for early, late in pairwise(starts)]
    assert gaps == [1.0, 11.0, 21.0, 41.0, 81.0, 161.0, 301.0, 301.0]
    cluster.advance(1)
    assert status(cluster)["phase"] == "Running"
    waiting = main(cluster)["state"]["waiting"]
    uid = cluster.get("Pod", "p")["metadata"]["uid"]
    assert waiting["reason"] == "CrashLoopBackOff"
    assert waiting["message"] == f"back-off 5m0s restarting failed container=main pod=p_default({uid})"
    assert main(cluster)["lastState"]["terminated"]["exitCode"] == 1
    assert cluster.timers() == 0, "nobody waits for one that fails for ever"


def test_a_long_run_forgets_the_back_off(cluster: Cluster) -> None:
    bound(cluster, container("sleep 601"))
    for restarts in (1, 2, 3):
        cluster.advance(601)
        assert "running" in main(cluster)["state"]
        assert main(cluster)["restartCount"] == restarts


def test_what_comes_first_comes_in_order(cluster: Cluster) -> None:
    first = [container("sleep 2", "a"), container("sleep 3", "b")]
    bound(cluster, container("sleep 4"), policy="Never", initContainers=first)
    cluster.advance(2.5)
    now = status(cluster)
    assert now["phase"] == "Pending"
    assert [next(iter(each["state"])) for each in now["initContainerStatuses"]] == ["terminated", "running"]
    assert now["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    assert {each["type"]: each["status"] for each in now["conditions"]}["Initialized"] == "False"
    cluster.advance(3)
    assert status(cluster)["phase"] == "Running"
    cluster.advance(3.5)
    assert status(cluster)["phase"] == "Succeeded"


def test_what_comes_first_and_fails_ends_the_pod_or_is_tried_again(cluster: Cluster) -> None:
    bound(cluster, container("sleep 4"), policy="Never", initContainers=[container("exit 2", "a")])
    cluster.advance(0)
    assert status(cluster)["phase"] == "Failed"
    cluster.delete("Pod", "p", grace_s=0)
    bound(cluster, container("sleep 4"), initContainers=[container("exit 2", "a")])
    cluster.advance(5)
    assert status(cluster)["phase"] == "Pending"
    assert status(cluster)["initContainerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"


def test_a_sidecar_runs_until_the_others_have_ended(cluster: Cluster) -> None:
    aside = container("sleep infinity", "aside", restartPolicy="Always")
    bound(cluster, container("sleep 4"), policy="Never", initContainers=[aside])
    assert status(cluster)["initContainerStatuses"][0]["ready"] is True
    cluster.advance(4)
    assert status(cluster)["phase"] == "Succeeded"
    assert status(cluster)["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 137


def test_several_end_when_the_last_does(cluster: Cluster) -> None:
    bound(cluster, container("exit 1"), container("sleep 9", "other"), policy="Never")
    cluster.advance(8)
    now = status(cluster)
    assert (now["phase"], [each["ready"] for each in now["containerStatuses"]]) == ("Running", [False, True])
    ready = {each["type"]: each for each in now["conditions"]}["Ready"]
    assert (ready["status"], ready["message"]) == ("False", "containers with unready status: [main]")
    cluster.advance(1)
    assert status(cluster)["phase"] == "Failed"


def test_a_deadline(cluster: Cluster) -> None:
    bound(cluster, container("sleep 100"), activeDeadlineSeconds=7)
    cluster.advance(7)
    assert (status(cluster)["phase"], status(cluster)["reason"]) == ("Failed", "DeadlineExceeded")


def test_a_restart_goes_on_from_what_the_status_says(cluster: Cluster) -> None:
    bound(cluster, container("sleep 10; exit 1"), policy="OnFailure", initContainers=[container("sleep 5", "a")])
    for pause in (3, 6, 7, 5, 8):
        cluster.advance(pause)
        cluster.restart(NodeAgentsMachine())
    cluster.advance(0)
    assert main(cluster)["restartCount"] == 1
    assert main(cluster)["state"]["waiting"]["message"].startswith("back-off 10s")
    cluster.advance(6)
    assert main(cluster)["restartCount"] == 2


def test_a_deleted_one_stops(cluster: Cluster) -> None:
    bound(cluster, container("exit 1"))
    cluster.advance(3)
    cluster.delete("Pod", "p")
    cluster.advance(1)
    assert not cluster.exists("Pod", "p")
    assert cluster.timers() == 0


def test_variables_come_from_the_pod(cluster: Cluster) -> None:
    env = [{"name": "CODE", "value": "4"}, {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    bound(cluster, container("echo $ME; exit $(CODE)", env=env), policy="Never")
    cluster.advance(0)
    assert main(cluster)["state"]["terminated"]["exitCode"] == 4
