"""The Queue controller: states and families."""

import itertools

import pytest

from pumice.cluster.controllers.queues import (
    QUEUE_LIFE,
    QueueAction,
    QueueMachine,
    QueueState,
    state_of,
    trigger_of,
)
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import CLOSED_BY_PARENT
from tests.actors.cluster import Cluster
from tests.kit.pod_groups import pod_group
from tests.kit.queues import queue

S, A = QueueState, QueueAction


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(QueueMachine())


def command(action: str, name: str) -> Object:
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": "c-", "namespace": "default"},
        "action": action,
        "target": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": name},
    }


def order(cluster: Cluster, action: str, name: str) -> None:
    cluster.create(command(action, name))
    cluster.settle()


def state(cluster: Cluster, name: str = "q") -> str:
    return str(cluster.get("Queue", name, "")["status"]["state"])


# --- the table


# What Volcano's state files say: what an action comes to in a queue without PodGroups, and in one with some.
EXPECTED = {
    S.OPEN: {A.SYNC: (S.OPEN, S.OPEN), A.OPEN: (S.OPEN, S.OPEN), A.CLOSE: (S.CLOSED, S.CLOSING)},
    S.CLOSED: {A.SYNC: (S.CLOSED, S.CLOSED), A.OPEN: (S.OPEN, S.OPEN), A.CLOSE: (S.CLOSED, S.CLOSED)},
    S.CLOSING: {A.SYNC: (S.CLOSED, S.CLOSING), A.OPEN: (S.OPEN, S.OPEN), A.CLOSE: (S.CLOSED, S.CLOSING)},
    S.UNKNOWN: {A.SYNC: (S.UNKNOWN, S.UNKNOWN), A.OPEN: (S.OPEN, S.OPEN), A.CLOSE: (S.CLOSED, S.CLOSING)},
}


@pytest.mark.parametrize(("before", "action", "busy"), list(itertools.product(QueueState, QueueAction, (False, True))))
def test_every_state_knows_every_action(before: QueueState, action: QueueAction, busy: bool) -> None:
    trigger = trigger_of(action, has_pod_groups=busy)
    after = before if trigger is None else QUEUE_LIFE.after(before, trigger)
    assert after is EXPECTED[before][action][busy]


@pytest.mark.parametrize(
    ("text", "expected"), [("", QueueState.OPEN), ("Closing", QueueState.CLOSING), ("Odd", QueueState.UNKNOWN)]
)
def test_what_a_state_is(text: str, expected: QueueState) -> None:
    assert state_of(text) is expected


# --- the machine


def test_the_status_does_not_count_groups(cluster: Cluster) -> None:
    """As in Volcano, where that is a metric: each phase of each job would be a write more."""
    cluster.create(queue("q"))
    cluster.settle()
    before = cluster.get("Queue", "q", "")
    assert before["status"] == {"state": "Open"}
    for number, phase in enumerate(("Pending", "Running")):
        cluster.create(pod_group(f"g{number}", queue="q", phase=phase))
    cluster.status("PodGroup", "g0", {"phase": "Inqueue"})
    cluster.settle()
    assert cluster.get("Queue", "q", "") == before


def test_what_the_scheduler_wrote_stays(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    cluster.status("Queue", "q", {"allocated": {"cpu": "3"}}, "")
    cluster.create(pod_group("g", queue="q"))
    cluster.settle()
    assert cluster.get("Queue", "q", "")["status"]["allocated"] == {"cpu": "3"}


def test_an_empty_queue_closes_immediately_and_opens_again(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    order(cluster, "CloseQueue", "q")
    assert state(cluster) == "Closed"
    assert cluster.all("Command") == []
    order(cluster, "OpenQueue", "q")
    assert state(cluster) == "Open"


def test_a_busy_one_waits_for_its_last_group(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    cluster.create(pod_group("g", queue="q"))
    order(cluster, "CloseQueue", "q")
    assert state(cluster) == "Closing"
    cluster.delete("PodGroup", "g")
    cluster.settle()
    assert state(cluster) == "Closed"


def test_the_root_does_not_close(cluster: Cluster) -> None:
    order(cluster, "CloseQueue", "root")
    assert state(cluster, "root") == "Open"


def test_children_close_and_open_with_their_parent(cluster: Cluster) -> None:
    for name, parent in (("top", "root"), ("middle", "top"), ("low", "middle"), ("apart", "top")):
        cluster.create(queue(name, parent=parent))
    order(cluster, "CloseQueue", "apart")
    order(cluster, "CloseQueue", "top")
    assert [state(cluster, name) for name in ("top", "middle", "low", "apart")] == ["Closed"] * 4
    order(cluster, "OpenQueue", "top")
    assert [state(cluster, name) for name in ("top", "middle", "low")] == ["Open"] * 3
    assert state(cluster, "apart") == "Closed", "it was closed for itself"


def test_child_that_is_closing_opens_with_its_parent(cluster: Cluster) -> None:
    """While it is Closing nothing of it may be changed, the mark of its parent included."""
    cluster.create(queue("top"))
    cluster.create(queue("low", parent="top"))
    cluster.create(pod_group("g", queue="low"))
    order(cluster, "CloseQueue", "top")
    low = cluster.get("Queue", "low", "")
    assert (state(cluster, "low"), low["metadata"]["annotations"][CLOSED_BY_PARENT]) == ("Closing", "true")
    order(cluster, "OpenQueue", "top")
    low = cluster.get("Queue", "low", "")
    assert (state(cluster, "low"), low["metadata"]["annotations"][CLOSED_BY_PARENT]) == ("Open", "false")


def test_nothing_opens_below_a_closed_parent(cluster: Cluster) -> None:
    cluster.create(queue("top"))
    cluster.create(queue("low", parent="top"))
    order(cluster, "CloseQueue", "top")
    order(cluster, "OpenQueue", "low")
    assert state(cluster, "low") == "Closed"


def test_a_queue_that_comes_under_a_closed_parent_closes(cluster: Cluster) -> None:
    cluster.create(queue("top"))
    order(cluster, "CloseQueue", "top")
    cluster.create(queue("low", parent="top"))
    cluster.settle()
    assert state(cluster, "low") == "Closed"


def test_commands_for_others_are_left_alone(cluster: Cluster) -> None:
    other = command("AbortJob", "j")
    other["target"]["kind"] = "Job"
    cluster.create(other)
    cluster.settle()
    assert len(cluster.all("Command")) == 1


def test_a_restart_writes_nothing(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    cluster.create(pod_group("g", queue="q"))
    cluster.settle()
    before = cluster.store.revision
    cluster.restart(QueueMachine())
    cluster.settle()
    assert cluster.store.revision == before
