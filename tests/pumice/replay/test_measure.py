"""What a run did for each job is counted right, from the api's changes alone."""

from __future__ import annotations

from typing import Any

from core.messages.events import Mutation
from pumice.replay.measure import Measurer
from storage import codec
from tests.kit import gang, node


class Told:
    """A measurer that hears of changes a second after each other."""

    def __init__(self) -> None:
        self.measurer = Measurer()
        self._now = 100.0

    def __call__(self, obj: dict[str, Any], kind: str = "MODIFIED") -> None:
        meta = obj["metadata"]
        where = (obj["kind"], meta.get("namespace", ""), meta["name"])
        self.measurer.note(Mutation(1, kind, *where, codec.pack(obj)), self._now)
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
    assert (job.wait_s, job.finished_s) == (3.0, None)  # the second one runs still
    told(on(second, "n0", "Succeeded"))  # 107
    (job,) = told.measurer.jobs().values()
    assert (job.bound, job.wait_s, job.finished_s) == (2, 3.0, 7.0)


def test_a_pod_that_is_gone_has_ended_then() -> None:
    told = Told()
    group, only = gang("g", pods=1)
    for obj in (group, only):  # 100, 101
        told(obj, "ADDED")
    told(on(only, "n0"))  # 102
    told(on(only, "n0"), "DELETED")  # 103
    (job,) = told.measurer.jobs().values()
    assert (job.wait_s, job.finished_s) == (1.0, 3.0)
