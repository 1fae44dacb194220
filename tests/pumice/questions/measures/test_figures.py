"""What a run did for each job is counted right, from the api's changes alone."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.messages.decisions import Evict
from pumice.core.messages.events import EvictRefused, Mutation
from pumice.questions.measures.figures import Measurer
from pumice.questions.measures.jobs import JobRow, Jobs
from pumice.questions.measures.lives import Lives
from pumice.storage import codec
from pumice.storage.journal import API, DECISION, OUTCOME, Stored
from tests.kit import gang, node, pod, pod_group


class Told:
    """A measurer that sees changes a second after each other."""

    def __init__(self) -> None:
        self.measurer = Measurer(110.0)
        self._now = 100.0

    def __call__(self, obj: dict[str, Any], kind: str = "MODIFIED") -> None:
        meta = obj["metadata"]
        where = (obj["kind"], meta.get("namespace", ""), meta["name"])
        self.measurer.lives.note(Mutation(1, kind, *where, codec.pack(obj)), self._now)
        self._now += 1.0


def on(pod: dict[str, Any], where: str, phase: str = "Running") -> dict[str, Any]:
    return {**pod, "spec": {**pod["spec"], "nodeName": where}, "status": {"phase": phase}}


def test_a_job_has_finished_when_its_last_pod_has() -> None:
    told = Told()
    told(node("n0"), "ADDED")  # 100
    group, first, second = gang("g", pods=2)
    for obj in (group, first, second):  # 101, 102, 103
        told(obj, "ADDED")
    told(on(first, "n0"))  # 104
    told(on(second, "n0"))  # 105
    told(on(first, "n0", "Succeeded"))  # 106
    (job,) = told.measurer.jobs().values()
    assert (job.wait_s, job.finished_s) == (4.0, None)  # the second one runs still
    told(on(second, "n0", "Succeeded"))  # 107
    (job,) = told.measurer.jobs().values()
    assert (job.bound, job.bound_s, job.wait_s, job.finished_s) == (2, 5.0, 4.0, 7.0)
    assert told.measurer.queues()["default"].mean_wait_s == 4.0


def test_a_pod_that_is_gone_has_ended_then() -> None:
    told = Told()
    group, only = gang("g", pods=1)
    for obj in (group, only):  # 100, 101
        told(obj, "ADDED")
    told(on(only, "n0"))  # 102
    told(on(only, "n0"), "DELETED")  # 103
    (job,) = told.measurer.jobs().values()
    assert (job.wait_s, job.finished_s) == (2.0, 3.0)


def test_a_wait_is_what_measures_call_so() -> None:
    """From the submission of the Job, which has no pods yet, until as many run as it needs: not until all are bound."""
    told, rows = Told(), list[JobRow]()
    measuring = Jobs(rows.append)
    lives = Lives((measuring,))
    group, first, second = gang("g", pods=2, min_member=1)
    job: dict[str, Any] = {
        "kind": "Job",
        "metadata": {"namespace": "default", "name": "g"},
        "spec": {"minAvailable": 1},
    }
    said = [job, group, first, on(first, "n0", "Pending"), on(first, "n0"), second]  # 100 to 105
    for at, obj in enumerate(said):
        kind = "MODIFIED" if obj["spec"].get("nodeName") else "ADDED"
        lives.note(Mutation(1, kind, obj["kind"], "default", obj["metadata"]["name"], codec.pack(obj)), 100.0 + at)
        told(obj, kind)
    measuring.close()
    (figures,), (row,) = told.measurer.jobs().values(), rows
    assert figures.wait_s == row.wait_s == 4.0
    assert (figures.bound, figures.bound_s) == (1, None)


def test_every_resource_is_measured_and_cut_where_the_record_ends() -> None:
    told = Told()
    there = node("n0", cpu="8", memory="16Gi", gpus=4)
    told(there, "ADDED")  # 100
    group, first, second = gang("g", pods=2, cpu="500m", memory="1Gi", gpus=1, queue="default")
    for obj in (group, first, second):  # 101, 102, 103
        told(obj, "ADDED")
    told(on(first, "n0"))  # 104
    told(on(first, "n0", "Succeeded"))  # 105
    told({**there, "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": 6}}})  # 106
    told(there, "DELETED")  # 107
    queue, cluster = told.measurer.queues()["default"], told.measurer.cluster()
    gpus = queue.resources["nvidia.com/gpu"]
    assert (gpus.requested_s, gpus.allocated_s) == (3 + 7, 1)  # the second one waits to the end
    assert cluster["nvidia.com/gpu"].capacity_s == 6 * 4 + 1 * 6
    assert gpus.utilisation == pytest.approx(1 / 30, abs=1e-4)
    assert queue.resources["cpu"].requested_s == 5
    assert cluster["memory"].allocated_s == 2**30


def test_a_pod_holds_nothing_of_a_node_that_is_gone() -> None:
    """And nobody uses more than there is: a pod stays for a while after its node, or was bound to none."""
    told = Told()
    there = node("n0", cpu="1")
    told(there, "ADDED")  # 100
    told(pod("p", cpu="1"), "ADDED")  # 101
    told(pod("q", cpu="1"), "ADDED")  # 102
    told(on(pod("p", cpu="1"), "n0"))  # 103
    told(on(pod("q", cpu="1"), "n9"))  # 104
    told(there, "DELETED")  # 105
    told(there, "ADDED")  # 106
    told(there, "DELETED")  # 107
    told(pod("p", cpu="1"), "DELETED")  # 108
    cpu = told.measurer.cluster()["cpu"]
    assert (cpu.allocated_s, cpu.capacity_s) == (2 + 1, 5 + 1)
    assert cpu.utilisation == 0.5


def test_a_plain_pod_belongs_to_its_groups_job_and_queue() -> None:
    """A controller tells it its group after a while; the job is who owns the group."""
    told = Told()
    told(pod("p"), "ADDED")
    owner = {"kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}
    group = pod_group("podgroup-u", queue="research")
    told({**group, "metadata": {**group["metadata"], "ownerReferences": [owner]}}, "ADDED")
    told(pod("p", group="podgroup-u"))
    told(on(pod("p", group="podgroup-u"), "n0"))
    jobs = [(name, job.queue, job.bound) for name, job in told.measurer.jobs().items()]
    assert jobs == [("default/web-1", "research", 1)]
    assert list(told.measurer.queues()) == ["research"]


def test_what_comes_later_than_the_end_does_not_count() -> None:
    measured = Measurer(100.5)
    for at, name in ((100.0, "p"), (101.0, "q")):
        mutation = Mutation(1, "ADDED", "Pod", "default", name, codec.pack(pod(name)))
        measured.follow(Stored(1, API, codec.encode(mutation), 0, at, b""))
    assert sum(job.pods for job in measured.jobs().values()) == 1


@pytest.mark.parametrize(("refused", "lost_pod_s"), [(False, 3.0), (True, 0.0)])
def test_what_a_pod_ran_is_not_lost_when_its_eviction_is_refused(refused: bool, lost_pod_s: float) -> None:
    """A pod that its owner deletes later was not evicted."""
    measured, runs = Measurer(110.0), on(pod("p"), "n0")
    uid = runs["metadata"]["uid"]
    asked: list[tuple[str, Any]] = [
        (API, Mutation(1, "ADDED", "Pod", "default", "p", codec.pack(runs))),
        (DECISION, Evict("default", "p", uid, "n0", "default/p", "", "", "reclaim")),
        (API, Mutation(2, "DELETED", "Pod", "default", "p", codec.pack(runs))),
    ]
    if refused:
        asked.insert(2, (OUTCOME, EvictRefused("1/0", 1, "default", "p", uid)))
    for at, (kind, message) in zip((100.0, 101.0, *((102.0,) if refused else ()), 103.0), asked, strict=True):
        measured.follow(Stored(1, kind, codec.encode(message), 0, at, b""))
    (job,) = measured.jobs().values()
    assert job.lost_pod_s == lost_pod_s
