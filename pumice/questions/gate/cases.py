# SPDX-License-Identifier: Apache-2.0
"""Golden cases state a small cluster, its events, and expectations, in a few lines of YAML.

    name: an urgent gang takes the place of a low one
    given:
    - {nodes: 1, cpu: 8}
    when:
    - {job: low, pods: 4, cpu: 2, class: low, runs: 10m}
    - {job: urgent, pods: 2, cpu: 2, class: high, at: 30s, runs: 1m}
    then:
    - {measure: "wait.max[name=urgent]", op: <=, value: 10s}

`given` and `when` also take `{object: MANIFEST}` and `{file: PATH}`. A case says nothing of policy: it is tried under
base and under head.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.config.errors import ConfigError
from pumice.config.read import ValuePlace, read_yaml, shaped
from pumice.config.scalars import resolve_true_false
from pumice.core.objects.metadata import Object, annotations_of, objects_in, section, text_map
from pumice.errors import InputError
from pumice.lab.builders import GPU, gang, nodes
from pumice.load.source import read_text
from pumice.questions.gate.expectations import Expectation
from pumice.questions.gate.policy import (
    IDLE,
    Workload,
    WrittenExpectation,
    demand_duration,
    demand_horizon,
    demand_time,
    read_expectation,
)
from pumice.questions.gate.workloads import arrival_s, read_workload
from pumice.runtime.arrivals import ARRIVAL, duration_text
from pumice.yaml_text import dump_yaml

Amount = int | float | str
HOSTNAME: Final = "kubernetes.io/hostname"


class CaseNodes(Struct, forbid_unknown_fields=True):
    """Stands for a number of equal nodes, ready; or for nodes with these names."""

    nodes: int | list[str]
    cpu: Amount = 8
    memory: Amount = "32Gi"
    gpu: Amount = 0
    name: str = "node"
    labels: dict[str, str] = field(default_factory=dict[str, str])

    def objects(self) -> list[Object]:
        """Return the nodes."""
        count = self.nodes if isinstance(self.nodes, int) else len(self.nodes)
        made = nodes(count, cpu=self.cpu, memory=self.memory, gpu=self.gpu, name=self.name, labels=self.labels)
        if isinstance(self.nodes, list):
            for node, name in zip(made, self.nodes, strict=True):
                node["metadata"]["name"] = name
                node["metadata"]["labels"] = {HOSTNAME: name, **self.labels}
        return made


class CaseJob(Struct, forbid_unknown_fields=True):
    """Stands for a gang of equal pods that comes `at` a time and `runs` so long. `min`: pods that must start together,
    all unless it says fewer; `class`: its PriorityClass; `policies`: those of a Volcano Job.
    """

    job: str
    pods: int = 1
    cpu: Amount = 1
    memory: Amount | None = None
    gpu: Amount = 0
    queue: str = "default"
    priority_class: str = field(default="", name="class")
    at: str = "0s"
    runs: str = "1m"
    min: int | None = None
    namespace: str = "default"
    labels: dict[str, str] = field(default_factory=dict[str, str])
    policies: list[Object] = field(default_factory=list[Object])

    def object(self) -> Object:
        """Return the job."""
        made = gang(
            self.job,
            self.pods,
            cpu=self.cpu,
            memory=self.memory,
            gpu=self.gpu,
            duration=self.runs,
            min_available=self.min,
            queue=self.queue,
            priority=self.priority_class or None,
            arrival=None if self.at == "0s" else self.at,
            namespace=self.namespace,
        )
        if self.labels:
            made["metadata"]["labels"] = dict(self.labels)
        if self.policies:
            made["spec"]["policies"] = list(self.policies)
        return made


class CaseObject(Struct, forbid_unknown_fields=True):
    """Contains one manifest."""

    object: Object


class CaseManifests(Struct, forbid_unknown_fields=True):
    """Names manifests or a trace, as `-f` takes them."""

    file: str


Given = CaseNodes | CaseJob | CaseObject | CaseManifests
FORMS: Final[Mapping[str, type[Given]]] = {
    "nodes": CaseNodes,
    "job": CaseJob,
    "object": CaseObject,
    "file": CaseManifests,
}


class WrittenCase(Struct, forbid_unknown_fields=True):
    """Contains a case as its file has it. `policy`: the folder of a policy, to run the case without a comparison."""

    then: list[WrittenExpectation]
    name: str = ""
    given: list[Object] = field(default_factory=list[Object])
    when: list[Object] = field(default_factory=list[Object])
    until: str = IDLE
    start: str = ""
    default_duration: str = "5s"
    policy: str = ""


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """Contains a golden case after it was read. `policy`: the folder of a policy beside it, "" for none."""

    workload: Workload
    objects: tuple[Object, ...]
    expect: tuple[Expectation, ...]
    policy: str = ""


def read_case(path: Path) -> GoldenCase:
    """Return the case of a file. Raises InputError, ConfigError, which name the place and the problem."""
    place, said = read_yaml(read_text(path), str(path), resolve_true_false)
    written = shaped(place, said, WrittenCase)
    until_s = demand_horizon(place.at("until"), written.until)
    demand_duration(place.at("default_duration"), written.default_duration)
    demand_time(place.at("start"), written.start)
    workload = Workload(written.name or path.stem, (), None, written.start, until_s, written.default_duration)
    objects = [
        *_objects(written.given, place.at("given"), path.parent),
        *_objects(written.when, place.at("when"), path.parent),
    ]
    expect = tuple(read_expectation(one, place.at("then").at(number)) for number, one in enumerate(written.then))
    if not expect:
        raise place.at("then").error(ConfigError, "expected at least one expectation")
    return GoldenCase(workload, tuple(objects), expect, written.policy)


def _objects(given: Sequence[Mapping[str, Any]], place: ValuePlace, folder: Path) -> Iterator[Object]:
    for number, said in enumerate(given):
        here = place.at(number)
        form = next((FORMS[key] for key in FORMS if key in said), None)
        if form is None:
            raise here.error(ConfigError, f"expected one of the keys {', '.join(FORMS)}")
        try:
            yield from _made(shaped(here, dict(said), form), here, folder)
        except InputError as error:
            raise here.error(ConfigError, error.problem) from error


def _made(said: Given, place: ValuePlace, folder: Path) -> list[Object]:
    match said:
        case CaseNodes():
            return said.objects()
        case CaseJob():
            demand_duration(place.at("at"), said.at)
            demand_duration(place.at("runs"), said.runs)
            return [said.object()]
        case CaseObject():
            return [said.object]
        case CaseManifests():
            return read_workload(Workload("", (said.file,)), folder)


# --- Writing


def case_text(name: str, objects: Sequence[Object], expect: Sequence[Expectation], until_s: float | None) -> str:
    """Return a case as `read_case` reads it: nodes and jobs have their short form where it is complete."""
    there, coming = list[Object](), list[Object]()
    for obj in objects:
        (there if obj["kind"] not in ("Job", "Pod", "PodGroup") else coming).append(obj)
    then = list(map(written_out, expect))
    content: Object = {
        "name": name,
        "given": _short_nodes(there),
        "when": [_short(obj) for obj in sorted(coming, key=lambda obj: arrival_s(obj) or 0.0)],
        "then": then,
    }
    if until_s is not None:
        content["until"] = duration_text(until_s)
    return dump_yaml(content)


def written_out(expectation: Expectation) -> Object:
    """Return an expectation as a file has it."""
    content = {
        "name": expectation.name,
        "measure": expectation.measure,
        "op": expectation.op,
        "value": plain_number(expectation.said),
    }
    if expectation.name == expectation.text:
        del content["name"]  # a reader names it so anyway
    return content


def plain_number(said: str) -> float | str:
    """Return a bound as YAML has it: as a number where it is a number."""
    try:
        return int(said) if said.isdecimal() else float(said)
    except ValueError:
        return said


def _short_nodes(objects: Sequence[Object]) -> list[Object]:
    """Return equal nodes as one entry, where this describes them completely; the others as they are."""
    found, alike = list[Object](), dict[bytes, Object]()
    for obj in objects:
        said = _node(obj)
        if said is None:
            found.append({"object": obj})
            continue
        content = msgspec.json.encode({key: value for key, value in said.items() if key != "nodes"}, order="sorted")
        if content in alike:
            alike[content]["nodes"] += said["nodes"]
        else:
            alike[content] = said
            found.append(said)
    return found


def _node(obj: Object) -> Object | None:
    """Return the short form of one node, None where it is not complete."""
    if obj["kind"] != "Node":
        return None
    name, amounts = str(obj["metadata"]["name"]), section(section(obj, "status"), "allocatable")
    labels = {key: one for key, one in text_map(obj["metadata"].get("labels")).items() if key != HOSTNAME}
    said = CaseNodes([name], amounts.get("cpu", 0), amounts.get("memory", "0"), amounts.get(GPU, 0), labels=labels)
    same = {key: str(one) for key, one in amounts.items() if str(one) != "0"}
    made = {key: str(one) for key, one in said.objects()[0]["status"]["allocatable"].items() if str(one) != "0"}
    return _plain(said) if same == made and not section(obj, "spec") else None


def _short(obj: Object) -> Object:
    """Return a job in its short form where this makes the same job, else the manifest."""
    spec, meta = section(obj, "spec"), obj["metadata"]
    tasks = objects_in(spec, "tasks")
    if obj["kind"] != "Job" or len(tasks) != 1:
        return {"object": obj}
    template, count = section(tasks[0], "template"), int(tasks[0].get("replicas", 1))
    containers = objects_in(section(template, "spec"), "containers") or [{}]
    amounts = section(section(containers[0], "resources"), "requests")
    least = int(spec.get("minAvailable") or count)
    said = CaseJob(
        str(meta.get("name")),
        count,
        amounts.get("cpu", 1),
        amounts.get("memory"),
        amounts.get(GPU, 0),
        str(spec.get("queue") or "default"),
        str(spec.get("priorityClassName") or ""),
        text_map(meta.get("annotations")).get(ARRIVAL, "0s"),
        annotations_of(template).get(DURATION, "5s"),
        None if least == count else least,
        str(meta.get("namespace") or "default"),
        text_map(meta.get("labels")),
        list(spec.get("policies") or ()),
    )
    return _plain(said) if _alike(said.object(), obj) else {"object": obj}


def _plain(said: CaseNodes | CaseJob) -> Object:
    """Return the written keys, without the default values."""
    content: Object = msgspec.to_builtins(said)
    usual: Object = msgspec.to_builtins(
        type(said)(content["nodes"]) if isinstance(said, CaseNodes) else CaseJob(said.job)
    )
    first = next(iter(content))
    return {key: value for key, value in content.items() if key == first or value != usual[key]}


def _alike(short: Object, obj: Object) -> bool:
    """Return whether two jobs are the same to the scheduler: names of tasks, containers and images do not count."""
    return _bare(short) == _bare(obj)


def _bare(obj: Object) -> Object:
    spec = section(obj, "spec")
    tasks = objects_in(spec, "tasks")
    pods = [
        {
            "replicas": task.get("replicas", 1),
            "annotations": text_map(section(section(task, "template"), "metadata").get("annotations")),
            "labels": text_map(section(section(task, "template"), "metadata").get("labels")),
            "spec": {
                **{
                    key: value
                    for key, value in section(section(task, "template"), "spec").items()
                    if key not in ("containers", "restartPolicy", "schedulerName", "priorityClassName")
                },
                "requests": [
                    {name: str(value) for name, value in section(section(each, "resources"), "requests").items()}
                    for each in objects_in(section(section(task, "template"), "spec"), "containers")
                ],
            },
        }
        for task in tasks
    ]
    rest = {key: value for key, value in spec.items() if key not in ("tasks", "schedulerName", "maxRetry") and value}
    return {"labels": text_map(obj["metadata"].get("labels")), "spec": rest, "pods": pods}
