"""The same hand-written object through `decide -f`, `run -f` and HTTP: one verdict, in the same words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from io import StringIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

import anyio
import pytest
import yaml

from pumice.cluster.api.bootstrap import assumed_queues, first_requests, system_queues
from pumice.cluster.api.kinds import kind_of
from pumice.cluster.api.origin import is_recorded
from pumice.cluster.api.store import Store
from pumice.cluster.kernel.intake import in_order, refusals_of
from pumice.core.messages.commands import Create
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object
from pumice.load.manifests import load
from pumice.questions.oneshot.identity import identity
from pumice.storage.codec import pack
from tests.actors.gateway.rig import serving
from tests.kit import source
from tests.kit.hostile import hostile_object
from tests.pumice.cli.terminal import Said, pumice

SHARED: Final = source.SHARED / "manifests"
REFUSED: Final = re.compile("is invalid: |is forbidden: ")
TEXT: Final = """
{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: x, command: [sleep, 30]}]}}
{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: x, env: [{name: A, value: 1}]}]}}
{apiVersion: v1, kind: Pod, spec: {containers: [{name: Bad_Name, image: x}]}}
{apiVersion: v1, kind: Pod, spec: {containers: []}}
{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: x}], restartPolicy: Sometimes}}
{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: x}], priorityClassName: nosuch}}
{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: x}], ephemeralContainers: [{name: d, image: x}]}}
{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: x, resources: {requests: {cpu: lots}}}]}}
{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 2},
  limits: {cpu: 1}}}]}}
{apiVersion: v1, kind: Pod, metadata: {labels: {a: 1}}, spec: {containers: [{name: c, image: x}]}}
{apiVersion: v1, kind: Pod, metadata: {labels: {"a b": c}}, spec: {containers: [{name: c, image: x}]}}
{apiVersion: v1, kind: Pod, metadata: {creationTimestamp: yesterday}, spec: {containers: [{name: c, image: x}]}}
{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: x}]}}
{apiVersion: v1, kind: Node, metadata: {labels: {a: true}}}
{apiVersion: v1, kind: Node, spec: {taints: [{key: a, effect: Never}]}}
{apiVersion: v1, kind: Node, status: {allocatable: {cpu: "-1"}}}
{apiVersion: v1, kind: Node, status: {allocatable: {cpu: 4, pods: 10}, capacity: {cpu: 4, pods: 10}}}
{apiVersion: v1, kind: ConfigMap, data: {a: 1}}
{apiVersion: v1, kind: ConfigMap, data: {a: "1"}}
{apiVersion: v1, kind: Secret, data: {a: "not base64!"}}
{apiVersion: v1, kind: Service, spec: {ports: [{port: 70000}]}}
{apiVersion: v1, kind: Service, spec: {ports: [{port: "80"}]}}
{apiVersion: v1, kind: ResourceQuota, spec: {hard: {pods: many}}}
{apiVersion: v1, kind: LimitRange, spec: {limits: [{type: Container, min: {cpu: 2}, max: {cpu: 1}}]}}
{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, spec: {members: [{type: Node, selector: {}}]}}
{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, spec: {tier: 1, members: [{type: Node,
  selector: {exactMatch: {name: a}, regexMatch: {pattern: b}}}]}}
{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, spec: {tier: 1, members: [{type: Node,
  selector: {regexMatch: {pattern: "gpu-("}}}]}}
{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, spec: {tier: 1, members: [{type: Node,
  selector: {exactMatch: {name: a}}}]}}
{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, spec: {tier: one, members: []}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, spec: {weight: 0}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, spec: {weight: -1}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, spec: {weight: "1"}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, spec: {parent: nosuch}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, spec: {dequeueStrategy: lifo}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, spec: {capability: {cpu: 2}, deserved: {cpu: 4}}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, spec: {guarantee: {resource: {cpu: 8}}}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, spec: {capability: {cpu: lots}}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, spec: {weight: 2}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, spec: {minMember: -1}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, spec: {minMember: "2"}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, spec: {queue: nosuch}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, spec: {minResources: {cpu: x}}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, spec: {networkTopology: {mode: firm}}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, spec: {minMember: 1}}
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: 2000000000}
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: "10"}
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass}
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: 10, preemptionPolicy: Sometimes}
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: 10}
{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 1, maxUnavailable: 1,
  selector: {matchLabels: {a: b}}}}
{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: -1, selector: {matchLabels: {a: b}}}}
{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: some, selector: {matchLabels: {a: b}}}}
{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}
{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, spec: {minAvailable: 1}}
{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, spec: {minAvailable: 3, tasks: [{name: w, replicas: 2,
  template: {spec: {containers: [{name: c, image: x}]}}}]}}
{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, spec: {queue: nosuch, tasks: [{name: w, replicas: 1,
  template: {spec: {containers: [{name: c, image: x}]}}}]}}
{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, spec: {tasks: [{name: w, replicas: 1,
  template: {spec: {containers: [{name: c, image: x, command: [sleep, 9]}]}}}]}}
{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, spec: {tasks: [{name: w, replicas: 1,
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}]}}
{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, spec: {plugins: {nosuch: []}, tasks: [{name: w, replicas: 1,
  template: {spec: {containers: [{name: c, image: x}]}}}]}}
{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{name: c, image: x}]}}}}
{apiVersion: batch/v1, kind: Job, spec: {selector: {matchLabels: {a: b}}, template: {spec: {restartPolicy: Never,
  containers: [{name: c, image: x}]}}}}
{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c,
  image: x}]}}}}
{apiVersion: batch/v1, kind: CronJob, spec: {schedule: "61 * * * *",
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}}}
{apiVersion: batch/v1, kind: CronJob, spec: {schedule: "0 * * * *",
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}}}
{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: c}}, spec: {containers: [{name: c, image: x}]}}}}
{apiVersion: apps/v1, kind: Deployment, spec: {replicas: -1, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}}
{apiVersion: apps/v1, kind: Deployment, spec: {replicas: "1", selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}}
{apiVersion: apps/v1, kind: StatefulSet, spec: {selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}}}
{apiVersion: flow.volcano.sh/v1alpha1, kind: JobFlow, spec: {flows: [{name: a, dependsOn: {targets: [b]}},
  {name: b, dependsOn: {targets: [a]}}]}}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:metrics:Reader"}, rules: []}
{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: ReadWriteOnce}}
{apiVersion: v1, kind: ServiceAccount, metadata: {name: Bad_Name}}
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: bad.name_}, spec: {weight: 1}}
"""


def written() -> list[Object]:
    """The objects above, each with a name of its own."""
    found: list[Object] = []
    for number, text in enumerate(re.split(r"\n(?=\{)", TEXT.strip())):
        obj: Object = yaml.safe_load(text)
        meta: Object = obj.setdefault("metadata", {})
        meta.setdefault("name", f"o{number}")
        kind = kind_of(obj["apiVersion"], obj["kind"])
        if kind is not None and kind.namespaced:
            meta["namespace"] = "default"
        found.append(obj)
    return found


WRITTEN: Final = written()


def named(obj: Object) -> str:
    meta = obj["metadata"]
    return f"{obj['kind']} {'/'.join(meta[part] for part in ('namespace', 'name') if part in meta)}"


def told(said: Said, objects: Iterable[Object]) -> dict[str, str]:
    """What a command's standard error has against each."""
    found: dict[str, str] = {}
    for line in said.err.splitlines():
        for obj in objects:
            _, known, words = line.partition(f": {named(obj)}: ")
            if known and re.match("(error|warning): ", line) and REFUSED.search(words):
                found[named(obj)] = words.removesuffix("; it is kept, to wait for its queue")
    return found


@cache
def verdicts() -> dict[str, dict[str, str]]:
    """By shell and object: the words of the refusal."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "objects.yaml"
        file.write_text(yaml.safe_dump_all(WRITTEN), "utf-8")
        decided = pumice("decide", "-f", file, "-o", "json")
        until = ["--time", "virtual", "--until", "1s", "--db", Path(folder) / "run.db", "-o", "json"]
        lived = pumice("run", "-f", file, *until)
    return {
        "decide": told(decided, WRITTEN),
        "run": told(lived, WRITTEN),
        "http": anyio.run(posted, WRITTEN),
        "counts": {"decide": str(decided.json["input"]), "run": str(lived.json["input"])},
    }


async def posted(objects: Sequence[Object]) -> dict[str, str]:
    """POST each to a server; the messages of those that are refused."""
    found: dict[str, str] = {}
    async with serving() as web:
        for obj in [*queues(), *in_order(objects)]:
            kind = kind_of(obj["apiVersion"], obj["kind"])
            assert kind is not None
            root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
            inside = f"/namespaces/{obj['metadata']['namespace']}" if kind.namespaced else ""
            answer = await web.http.post(f"{root}{inside}/{kind.plural}", json=obj)
            if answer.status_code != 201 and obj in objects:
                found[named(obj)] = answer.json()["message"]
    return found


def queues() -> list[Object]:
    """The queues that every command assumes."""
    return list(system_queues())


def refused_by_server(objects: Sequence[Object]) -> dict[tuple[str, str, str], str]:
    """What a served API refuses of strangers' objects, in the order in which the other shells hand them in."""
    store = Store(served=True)
    for request in first_requests(queues=True, address=("127.0.0.1", 6443)):
        if isinstance(request, Create):
            store.apply(request, 0.0)
    found: dict[tuple[str, str, str], str] = {}
    for obj in in_order(objects):
        namespace = obj["metadata"].get("namespace")
        if namespace:
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            store.apply(Create(pack(space), user="kubectl"), 0.0)
        answer = store.apply(Create(pack(obj), user="kubectl"), 0.0)
        if isinstance(answer, Refused) and answer.reason != "AlreadyExists":
            found[identity(obj)] = answer.message
    return found


def agree(objects: Sequence[Object]) -> None:
    new = [obj for obj in objects if not is_recorded(obj)]
    ours = zip(new, refusals_of(new, assumed_queues(new)), strict=True)
    assert {identity(obj): answer.message for obj, answer in ours if answer is not None} == refused_by_server(new)


@pytest.mark.parametrize("obj", WRITTEN, ids=named)
def test_one_object_has_one_verdict_in_every_shell(obj: Object) -> None:
    found = verdicts()
    words = found["http"].get(named(obj))
    assert found["run"].get(named(obj)) == words
    assert found["decide"].get(named(obj)) == words


def test_many_of_them_are_refused_and_many_are_not() -> None:
    refused = len(verdicts()["http"])
    assert refused >= 50
    assert len(WRITTEN) - refused >= 12


def test_the_output_counts_what_was_judged_and_what_was_refused() -> None:
    found, refused = verdicts(), len(verdicts()["http"])
    kept = 1  # the PodGroup whose queue does not exist
    assert found["counts"]["decide"] == str({"new": len(WRITTEN), "recorded": 0, "refused": refused - kept})
    assert found["counts"]["run"] == str({"new": len(WRITTEN), "recorded": 0, "refused": refused})


@pytest.mark.parametrize("first", range(0, 400, 20))
def test_hostile_objects_have_the_verdict_of_a_server(first: int) -> None:
    for seed in range(first, first + 20):
        agree([hostile_object(Random(seed))])


def test_manifests_of_other_projects_have_the_verdict_of_a_server() -> None:
    if not SHARED.is_dir():
        pytest.skip("../shared/manifests is absent")
    files = sorted(path for path in SHARED.rglob("*") if path.suffix in (".yaml", ".yml", ".json"))
    assert files
    for file in files:
        agree(load([str(file)], StringIO()).objects)


@pytest.mark.parametrize("command", ["decide", "queue", "eta", "explain"])
def test_a_command_says_which_objects_it_judged(tmp_path: Path, command: str) -> None:
    new: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [1]}}
    had: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "uid": "u"}, "spec": {"containers": []}}
    for name, obj in (("new.yaml", new), ("dump.yaml", had)):
        (tmp_path / name).write_text(yaml.safe_dump(obj), "utf-8")
    asked = ["pod", "default/b"] if command == "explain" else []
    said = pumice(command, *asked, "-f", tmp_path, "-o", "json")
    assert f"objects judged as new, by the API's rules: 1 ({tmp_path / 'new.yaml'})" in said.err
    assert re.search(rf"objects read as a cluster had them.*: 1 \({re.escape(str(tmp_path / 'dump.yaml'))}\)", said.err)
    assert 'Pod default/a: Pod "a" is invalid: spec.containers[0]' in said.err


def test_a_bad_object_with_a_generated_name_does_not_stop_others(tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    bad: Object = {"metadata": {"generateName": "made-"}, "spec": {"containers": [{"name": "c", "command": [1]}]}}
    good: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n0"},
        "status": {"allocatable": {"cpu": "1"}},
    }
    file.write_text(yaml.safe_dump_all([{"apiVersion": "v1", "kind": "Pod", **bad}, good]), "utf-8")
    words = "spec.containers[0].command[0]: Invalid value: expected a text, was 1"
    decided = pumice("decide", "-f", file, "-o", "json")
    until = ["--time", "virtual", "--until", "1s", "--db", tmp_path / "run.db"]
    lived = pumice("run", "-f", file, *until)
    assert words in decided.err
    assert f'{file}:1: Pod default/made-: Pod "" is invalid: {words}' in lived.err
    assert decided.json["input"] == {"new": 2, "recorded": 0, "refused": 1}
