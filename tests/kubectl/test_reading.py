"""What kubectl shows: get in every form, describe, explain, api-resources, version, watches."""

import json
import time
from typing import Any

import pytest

from tests.kit.kubectl import Kubectl
from tests.kit.roles import USER
from tests.kit.serving import Served
from tests.kubectl.conftest import pod, queue, text


def test_version_and_api_resources(kubectl: Kubectl) -> None:
    assert "Server Version: v1.35.3" in kubectl("version")
    listed = kubectl("api-resources").splitlines()
    assert sum(".volcano.sh" in line for line in listed) == 11
    short = {line.split()[0]: line.split()[1] for line in listed if "volcano.sh" in line}
    assert (short["queues"], short["podgroups"], short["jobs"]) == (
        "q,queue-v1beta1",
        "pg,podgroup-v1beta1",
        "vcjob,vj",
    )
    assert kubectl("get", "--raw", "/readyz") == "ok"


def test_get_in_every_form(kubectl: Kubectl, inside: Any, namespace: str) -> None:
    inside("create", "-f", "-", stdin=text(pod("a", app="x"), pod("b", app="z")))
    inside("wait", "--for=condition=Ready", "pod", "--all", "--timeout=30s")
    head, *rows = inside("get", "pods").splitlines()
    assert head.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row.split()[:3] for row in rows] == [["a", "1/1", "Running"], ["b", "1/1", "Running"]]
    assert "NODE" in inside("get", "po", "-o", "wide").splitlines()[0].split()
    assert inside("get", "pods", "-o", "name") == "pod/a\npod/b"
    assert json.loads(inside("get", "pod", "a", "-o", "json"))["status"]["phase"] == "Running"
    assert inside("get", "pod", "a", "-o", "jsonpath={.metadata.labels.app}") == "x"
    assert inside("get", "pod", "a", "-o", "yaml").startswith("apiVersion: v1\nkind: Pod")
    columns = "custom-columns=N:.metadata.name,A:.metadata.labels.app"
    assert inside("get", "pods", "-o", columns, "--no-headers").split() == ["a", "x", "b", "z"]
    assert inside("get", "pods", "-l", "app=x", "-o", "name") == "pod/a"
    assert inside("get", "pods", "--field-selector", "metadata.name=b", "-o", "name") == "pod/b"
    assert inside("get", "pods", "--chunk-size=1", "-o", "name") == "pod/a\npod/b"
    everywhere = kubectl("get", "pods", "-A", "--show-labels")
    assert any(row.split()[:2] == [namespace, "a"] and "app=x" in row for row in everywhere.splitlines())
    assert "pod/a" in inside("get", "all")


def test_short_names_and_columns_of_volcanos_kinds(kubectl: Kubectl) -> None:
    head, *rows = kubectl("get", "q").splitlines()
    assert head.split() == ["NAME", "PARENT"]
    assert ["default", "root"] in [row.split() for row in rows]
    assert kubectl("get", "q", "default", "-o", "jsonpath={.status.state}") == "Open"
    for name in ("pg", "vcjob", "vj", "hn", "jf", "jt", "numatopo", "nsh", "cronvj"):
        kubectl("get", name, "-A")


def test_nodes(kubectl: Kubectl) -> None:
    rows = [row.split() for row in kubectl("get", "nodes", "--no-headers").splitlines()]
    assert [row[:2] for row in rows[:1]] == [["node-0", "Ready"]]
    wide = kubectl("get", "no", "-o", "wide").splitlines()[0]
    assert "CONTAINER-RUNTIME" in wide
    assert "Allocatable:" in kubectl("describe", "node", "node-2")
    assert kubectl("top", "nodes").splitlines()[0].split()[0] == "NAME"


def test_describe_shows_events(kubectl: Kubectl, inside: Any) -> None:
    inside("create", "-f", "-", stdin=text(pod("huge", cpu="1000")))
    deadline = time.monotonic() + 20
    told = ""
    while "Events:" not in told or "<none>" in told.partition("Events:")[2]:
        assert time.monotonic() < deadline, told
        told = inside("describe", "pg")
    assert "Unschedulable" in told
    assert "Priority:" in inside("describe", "pod", "huge")
    assert "Weight:" in kubectl("describe", "q", "default")
    assert inside("get", "events", "-o", "name")


def test_explain(kubectl: Kubectl) -> None:
    told = kubectl("explain", "queue.spec.weight")
    assert "KIND:       Queue" in told
    assert "weight <integer>" in told
    assert "<[]Container>" in kubectl("explain", "pod.spec.containers")
    assert "minAvailable" in kubectl("explain", "vcjob.spec")


def test_watch_follows_a_pods_life(kubectl: Kubectl, inside: Any, namespace: str) -> None:
    with kubectl.start("-n", namespace, "get", "pods", "-w") as watch:
        try:
            inside("create", "-f", "-", stdin=text(pod("w")))
            assert watch.stdout is not None
            assert watch.stdout.readline().split()[0] == "NAME"
            inside("wait", "--for=condition=Ready", "pod/w", "--timeout=30s")
            inside("delete", "pod", "w")
            seen: list[str] = []
            while not seen or seen[-1] not in ("Terminating", "Completed"):
                seen.append(watch.stdout.readline().split()[2])
        finally:
            watch.kill()
    assert seen[0] == "Pending"
    assert "Running" in seen


@pytest.mark.slow
def test_wait_for_conditions_paths_and_ends(kubectl: Kubectl, inside: Any) -> None:
    inside("create", "-f", "-", stdin=text(pod("quick", lasts="1s")))
    inside("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/quick", "--timeout=30s")
    inside("delete", "pod", "quick", "--wait=false")
    inside("wait", "--for=delete", "pod/quick", "--timeout=30s")
    assert "timed out" in kubectl.refused("wait", "--for=jsonpath={.status.state}=Closed", "q/root", "--timeout=1s")


def test_who_may_do_what(kubectl: Kubectl, server: Served) -> None:
    assert kubectl("auth", "can-i", "create", "pods") == "yes"
    assert ("deployments.apps" if server.roles else "*.*") in kubectl("auth", "can-i", "--list")
    assert (USER if server.roles else "pumice") in kubectl("auth", "whoami")


def test_logs_and_top(kubectl: Kubectl, inside: Any, namespace: str) -> None:
    inside("create", "-f", "-", stdin=text(pod("talk")))
    inside("wait", "--for=condition=Ready", "pod/talk", "--timeout=30s")
    assert "simulates this container" in inside("logs", "talk")
    assert "simulates this container" in inside("logs", "talk", "-c", "main", "--tail=1")
    assert inside("top", "pods").splitlines()[1].split()[:2] == ["talk", "100m"]
    assert "containers are simulated" in kubectl.refused("-n", namespace, "exec", "talk", "--", "ls")


def test_sorting_and_what_is_not_there(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", stdin=text(queue("sorted-b"), queue("sorted-a")))
    names = kubectl("get", "q", "--sort-by=.metadata.name", "-o", "name").splitlines()
    assert names == sorted(names)
    assert 'pods "none" not found' in kubectl.refused("-n", namespace, "get", "pod", "none")
    assert "the server doesn't have a resource type" in kubectl.refused("get", "nonsense")
