"""The policies in examples/policies start what a plain second implementation of each starts, from random states."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import pytest

import pumice
from pumice.core.objects.metadata import Object
from pumice.questions.evaluation.evaluate import Evaluator
from pumice.questions.evaluation.policy import Policy, installed
from pumice.questions.evaluation.task import place
from pumice.units import format_moment
from tests.kit.source import ROOT

HERE = ROOT / "examples" / "policies"
NOW = 1_767_225_600  # 2026-01-01T00:00:00Z


class Waits(NamedTuple):
    """A job that waits, of so many processors, in the order of arrival."""

    name: str
    size: int
    lasts_s: int


class Runs(NamedTuple):
    """So many processors are busy until then."""

    size: int
    ends_s: int


# --- The second implementations: processors are alike and counted


def started(policy: str, processors: int, running: list[Runs], waiting: list[Waits]) -> set[str]:
    busy, left, found = list(running), list(waiting), set[str]()
    if policy == "sjf":
        left.sort(key=lambda job: job.lasts_s)
    while left and left[0].size <= processors - sum(each.size for each in busy):
        busy.append(Runs(left[0].size, left[0].lasts_s))
        found.add(left.pop(0).name)
    if policy != "easy" or not left:
        return found
    first, *others = left
    free, at, extra = processors - sum(each.size for each in busy), 0, 0
    room = free
    for each in sorted(busy, key=lambda each: each.ends_s):
        room, at = room + each.size, each.ends_s
        if room >= first.size:
            extra = room - first.size
            break
    for job in others:
        if job.size > free or (job.lasts_s > at and job.size > extra):
            continue
        found.add(job.name)
        free -= job.size
        if job.lasts_s > at:
            extra -= job.size
    return found


# --- The same states as objects


def state(chance: random.Random, processors: int, *, whole_nodes: bool) -> tuple[list[Object], list[Runs], list[Waits]]:
    """Make a random state: one node whose cpus are the processors, or nodes of one processor each."""
    running, left = list[Runs](), processors
    while left > 1 and chance.random() < 0.8:
        size = chance.randint(1, max(1, left // 2))
        running.append(Runs(size, chance.randint(2, 400)))
        left -= size
    waiting = [
        Waits(f"j{number:02}", chance.randint(1, processors), chance.randint(2, 400))
        for number in range(chance.randint(2, 9))
    ]
    nodes = pumice.nodes(processors, cpu=1) if whole_nodes else pumice.nodes(1, cpu=processors)
    objects, taken = list(nodes), 0
    for number, each in enumerate(running):
        for part in range(each.size if whole_nodes else 1):
            node = nodes[taken]["metadata"]["name"] if whole_nodes else "node-0"
            taken += whole_nodes
            objects += group(f"r{number}", 1 if part == 0 else 0, "Running")
            objects.append(pod(f"r{number}", part, 1 if whole_nodes else each.size, 1000, node, each.ends_s))
    for number, job in enumerate(waiting):
        count = job.size if whole_nodes else 1
        objects += group(job.name, count, "Inqueue", number)
        objects += [pod(job.name, part, 1 if whole_nodes else job.size, job.lasts_s) for part in range(count)]
    return objects, running, waiting


def group(name: str, size: int, phase: str, after_s: int = 0) -> list[Object]:
    metadata = {"name": name, "namespace": "default", "creationTimestamp": format_moment(NOW - 1000 + after_s)}
    spec = {"minMember": size, "queue": "default"}
    made = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": phase},
    }
    return [made] if size else []


def pod(job: str, number: int, cpu: int, lasts_s: int, node: str = "", ends_s: int = 0) -> Object:
    annotations = {"scheduling.k8s.io/group-name": job, "pumice.dev/duration": f"{lasts_s}s"}
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": str(cpu)}}}
    status = {"phase": "Running", "startTime": format_moment(NOW + ends_s - lasts_s)} if node else {"phase": "Pending"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{job}-{number}", "namespace": "default", "annotations": annotations},
        "spec": {"schedulerName": "volcano", "containers": [container], **({"nodeName": node} if node else {})},
        "status": status,
    }


def policy_of(name: str) -> Policy:
    return Policy.of(HERE / f"{name}.conf").with_modules(HERE / "batch.py")


@pytest.mark.parametrize("whole_nodes", [False, True])
@pytest.mark.parametrize("name", ["fcfs", "sjf", "easy"])
def test_a_cycle_starts_what_a_plain_one_starts(name: str, whole_nodes: bool) -> None:
    chance, passed = random.Random(f"{name}/{whole_nodes}"), 0
    policy = policy_of(name)
    for _ in range(25):
        processors = chance.randint(3, 12)
        objects, running, waiting = state(chance, processors, whole_nodes=whole_nodes)
        given = pumice.Workload("state", objects, placement=True, start=format_moment(NOW))
        run = Evaluator(given)._task(policy, "state", 0).run  # pyright: ignore[reportPrivateUsage]
        with installed(policy.modules):
            record = place(run)
        found = {job.name for job in record.jobs if job.started is not None and job.name.startswith("j")}
        wanted = started(name, processors, running, waiting)
        assert found == wanted, (processors, running, waiting)
        passed += bool(wanted) and wanted != {job.name for job in waiting}
    assert passed > 5  # states in which some start and some wait


def test_backfilling_lets_short_jobs_pass_and_delays_nobody() -> None:
    """A whole-cluster job waits for a long one; a short job passes under EASY alone."""
    work = [
        *pumice.nodes(1, cpu=4),
        pumice.gang("long", 1, cpu=3, duration="100s"),
        pumice.gang("wide", 1, cpu=4, duration="50s", arrival="10s"),
        pumice.gang("short", 1, cpu=1, duration="30s", arrival="20s"),
        pumice.gang("late", 1, cpu=1, duration="300s", arrival="25s"),
    ]
    waits = {
        name: {
            job: pumice.evaluate(policy_of(name), work, f"minimise wait.max[name={job}]").score
            for job in ("wide", "short", "late")
        }
        for name in ("fcfs", "easy")
    }
    assert waits["easy"]["short"] < 5 < waits["fcfs"]["short"]
    assert waits["easy"]["wide"] == pytest.approx(waits["fcfs"]["wide"], abs=2)
    assert waits["easy"]["late"] > 100


def test_the_example_needs_no_file_but_its_own() -> None:
    assert sorted(path.name for path in Path(HERE).glob("*.*")) == ["batch.py", "easy.conf", "fcfs.conf", "sjf.conf"]
