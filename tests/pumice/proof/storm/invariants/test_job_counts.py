"""What a Volcano Job says of its pods, by phase."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object
from pumice.proof.storm.invariants.statuses import LAG_S, JobCounts
from pumice.proof.storm.invariants.truth import StormTruth
from pumice.storage import codec

OWNED = {"uid": "u", "controller": True, "kind": "Job"}


def pod(name: str, phase: str) -> Object:
    meta = {"namespace": "d", "name": name, "uid": name, "ownerReferences": [OWNED]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}, "status": {"phase": phase}}


def job(**status: int) -> Object:
    meta = {"namespace": "d", "name": "j", "uid": "u"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": {}, "status": status}


def group(phase: str) -> Object:
    meta = {"namespace": "d", "name": "j", "uid": "g", "ownerReferences": [OWNED]}
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    return {**kind, "metadata": meta, "spec": {"minMember": 1}, "status": {"phase": phase}}


class Watched:
    """A truth and the counts, told of objects at a time that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.truth, self.counts = StormTruth(), JobCounts(lambda: self.now)

    def tell(self, obj: Object, change: str = "MODIFIED") -> list[str]:
        meta = obj["metadata"]
        revision = self.truth.revision + 1
        told = Mutation(revision, change, obj["kind"], meta["namespace"], meta["name"], codec.pack(obj))
        self.truth.apply(told)
        return list(self.counts.see(told, obj))

    def at_rest(self) -> Iterator[str]:
        return self.counts.wrong_at_rest(self.truth)


@pytest.fixture
def watched() -> Watched:
    found = Watched()
    for each in (pod("a", "Pending"), pod("b", "Running"), job()):
        assert found.tell(each, "ADDED") == []
    return found


def test_counts_that_were_so_within_the_lag_are_right(watched: Watched) -> None:
    watched.tell(pod("a", "Running"))
    watched.now = LAG_S - 1
    assert watched.tell(job(pending=1, running=1)) == []
    assert watched.tell(job(running=2)) == []
    assert watched.tell(job(running=3)) == ["job d/j says 3 running, of its pods there are 0 to 2"]


def test_counts_older_than_the_lag_are_wrong_when_they_are_written(watched: Watched) -> None:
    watched.tell(pod("a", "Running"))
    watched.now = LAG_S + 1
    assert len(watched.tell(job(pending=1, running=1))) == 2


def test_a_write_of_something_else_keeps_old_counts(watched: Watched) -> None:
    assert watched.tell(job(pending=1, running=1)) == []
    watched.tell(pod("a", "Running"))
    watched.now = 2 * LAG_S
    assert watched.tell({**job(pending=1, running=1), "spec": {"queue": "q"}}) == []


@pytest.mark.parametrize(("phase", "wrong"), [("Running", 2), ("Inqueue", 2), ("Pending", 0), ("", 0)])
def test_a_job_at_rest_counts_its_pods_while_its_group_is_admitted(watched: Watched, phase: str, wrong: int) -> None:
    watched.tell(group(phase), "ADDED")
    watched.tell(job(pending=1, running=1))
    assert list(watched.at_rest()) == []
    watched.tell(pod("a", "Running"))
    assert len(list(watched.at_rest())) == wrong
