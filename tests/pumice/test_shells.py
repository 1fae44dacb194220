"""The same inputs through every shell: `run`, the library, `sweep`, `whatif`, `eta` and `decide` judge and place alike.

A gang of two pods is the question; what admission, quotas, LimitRanges, budgets of disruptions and the state of nodes
say of it must not depend on who asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice import Cluster
from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.questions.sweep.one_run import lived
from tests.pumice.cli.terminal import pumice

QUEUE = "scheduling.volcano.sh/v1beta1"
RESOURCEQUOTA = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: resourcequota}]
"""


def node(name: str = "n0", **more: Any) -> Object:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": "True"}, *more.pop("conditions", [])]
    status = {"allocatable": dict(amounts), "capacity": dict(amounts), "conditions": conditions}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": more, "status": status}


def gang(name: str = "j", cpu: str | None = "2", **spec: Any) -> Object:
    resources = {} if cpu is None else {"resources": {"requests": {"cpu": cpu}}}
    template = {
        "metadata": {"annotations": {"pumice.dev/duration": "60s"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "b", **resources}]},
    }
    tasks = [{"name": "w", "replicas": 2, "template": template}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 2, "schedulerName": "volcano", "tasks": tasks, **spec},
    }


def quota(**hard: str) -> Object:
    spec = {"hard": {name.replace("_", "."): amount for name, amount in hard.items()}}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": spec,
    }


def limits(**of_containers: Any) -> Object:
    spec = {"limits": [{"type": "Container", **of_containers}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"}, "spec": spec}


def queue(name: str, **more: Any) -> Object:
    return {"apiVersion": QUEUE, "kind": "Queue", "metadata": {"name": name}, **more}


@dataclass(frozen=True)
class Question:
    """`starts`: whether the gang does, within a minute."""

    objects: tuple[Object, ...]
    starts: bool
    config: str = ""


QUESTIONS = {
    "room": Question((node(), gang()), True),
    "quota that is too small": Question((node(), quota(requests_cpu="3"), gang()), False),
    "quota that is large enough": Question((node(), quota(requests_cpu="4"), gang()), True),
    "quota of pods": Question((node(), quota(pods="1"), gang()), False),
    "quota and its plugin": Question((node(), quota(requests_cpu="3"), gang()), False, RESOURCEQUOTA),
    "quota that is large enough, and its plugin": Question(
        (node(), quota(requests_cpu="4"), gang()), True, RESOURCEQUOTA
    ),
    "quota, and pods that say nothing": Question((node(), quota(requests_cpu="3"), gang(cpu=None)), False),
    "LimitRange that fills in": Question((node(), limits(defaultRequest={"cpu": "9"}), gang(cpu=None)), False),
    "LimitRange that forbids": Question((node(), limits(max={"cpu": "1"}), gang()), False),
    "cordoned node": Question((node(unschedulable=True), gang()), False),
    "node under pressure": Question((node(conditions=[{"type": "DiskPressure", "status": "True"}]), gang()), False),
    "closed queue": Question((node(), queue("old", status={"state": "Closed"}), gang(queue="old")), False),
    "queue that does not exist": Question((node(), gang(queue="none")), False),
}


class Asker:
    """Asks every shell whether the gang starts."""

    def __init__(self, folder: Path, question: Question) -> None:
        self.file = folder / "objects.yaml"
        self.file.write_text(yaml.safe_dump_all(question.objects), "utf-8")
        self.config = folder / "scheduler.conf"
        self.config.write_text(question.config, "utf-8")
        self.options = ["--config", self.config] if question.config else []
        self.base = ["--base-config", self.config] if question.config else []
        self.db = folder / "run.db"

    def run(self) -> bool:
        until = ["--time", "virtual", "--until", "90s", "--db", self.db]
        jobs = pumice("run", "-f", self.file, *self.options, *until, "-o", "json").json["jobs"]
        return bool(jobs.get("default/j", {}).get("phase") == "Completed")

    def library(self) -> bool:
        try:
            cluster = Cluster.of_files(self.file, config=self.config if self.options else None)
        except InputError:
            return False
        cluster.run(90)
        return any(job["status"]["state"]["phase"] == "Completed" for job in cluster.objects("Job"))

    def sweep(self) -> bool:
        told = {"config": str(self.config)} if self.options else {}
        try:
            return bool(lived({"input": str(self.file), "until": "90s", **told}, ".")["cpu held_s"])
        except InputError:
            return False

    def whatif(self) -> bool:
        asked = ["--until-starts", "default/j", "--budget", "0", "-o", "json"]
        found = pumice("whatif", "-f", self.file, *self.base, *asked)
        return found.code == 0 and found.json["starts_s"] is not None

    def eta(self) -> bool:
        found = pumice("eta", "-f", self.file, *self.options, "--samples", "1", "--horizon", "2m", "-o", "json")
        told: dict[str, Any] = found.json.get("default/j") or {}
        return bool(told.get("known") and told["low_s"] is not None)

    def decide(self) -> bool:
        found = pumice("decide", "-f", self.file, *self.options, "-o", "json")
        return len(found.json["cycles"][0]["binds"]) == 2


SHELLS = ("run", "library", "sweep", "whatif", "eta", "decide")


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_shell_gives_the_same_answer(name: str, tmp_path: Path) -> None:
    asker = Asker(tmp_path, QUESTIONS[name])
    answers = {shell: getattr(asker, shell)() for shell in SHELLS}
    assert answers == dict.fromkeys(SHELLS, QUESTIONS[name].starts)
