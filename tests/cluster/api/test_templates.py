"""Objects of one template: what is remembered of the first is what all checks make of the next."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.store import Store
from pumice.cluster.api.templates import Templates
from pumice.core.messages.commands import Create, Delete, StoreRequest
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import START
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue

TERM: Object = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["task"]}
NEAR: Object = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
SPECS: tuple[Object, ...] = (
    {"cpu": "1"},
    {"cpu": "0.5", "memory": "1024Mi", "gpus": 1},
    {"priority_class": "high"},
    {"priority": 7, "host_ports": [80]},
    {"scheduler": "default-scheduler"},
    {"affinity": NEAR},
    {"tolerations": [{"key": "k", "operator": "Sometimes"}]},
)
"""The last one is refused."""
ANNOTATIONS = (
    dict[str, str](),
    {"pumice.dev/duration": "5s"},
    {"pumice.dev/duration": "soon"},
    {"volcano.sh/jdb-min-available": "0"},
)
LABELS: tuple[Any, ...] = ({}, {"task": "a"}, {"task": "b", "index": "1"}, {"not a key": ""}, {"task": 3})


@st.composite
def pods(draw: st.DrawFn) -> Object:
    """A pod of one of a few templates, with a name of few, so that some are there already."""
    made = pod(f"p{draw(st.integers(0, 9))}", **draw(st.sampled_from(SPECS)))
    meta = made["metadata"]
    meta["labels"], meta["annotations"] = dict(draw(st.sampled_from(LABELS))), dict(draw(st.sampled_from(ANNOTATIONS)))
    if draw(st.booleans()):
        made.pop("status", None)
    if draw(st.integers(0, 9)) == 0:
        made["spec"]["nodeSelector"] = draw(st.sampled_from([None, 3, {"a": "b"}]))
    return made


@st.composite
def groups(draw: st.DrawFn) -> Object:
    """A PodGroup of one of a few templates."""
    made = pod_group(f"g{draw(st.integers(0, 9))}", min_member=draw(st.integers(1, 2)))
    made["spec"]["queue"] = draw(st.sampled_from(["default", "q", ""]))
    made["spec"]["minResources"] = draw(st.sampled_from([{"cpu": "0.50"}, {"cpu": "-1"}, {}]))
    made["metadata"]["labels"] = draw(st.sampled_from(LABELS[:-1]))
    if draw(st.booleans()):
        made.pop("status", None)
    return made


def _class(name: str, value: int, *, default: bool) -> Object:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    return {**kind, "value": value, "globalDefault": default}


def _limits() -> Object:
    spec = {"limits": [{"type": "Container", "default": {"cpu": "2"}, "max": {"cpu": "3"}}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"}, "spec": spec}


def _quota() -> Object:
    meta, spec = {"name": "few", "namespace": "default"}, {"hard": {"requests.cpu": "3", "pods": "6"}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": spec}


def _namespace() -> Object:
    meta = {"name": "default", "annotations": {"scheduling.volcano.sh/queue-name": "q"}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


OTHERS: tuple[StoreRequest, ...] = (
    *[Create(pack(_class("high", value, default=value > 5))) for value in (5, 9)],
    Delete("PriorityClass", "", "high"),
    Create(pack(_limits())),
    Delete("LimitRange", "default", "l"),
    Create(pack(_quota())),
    Create(pack(_namespace())),
    Create(pack(queue("q"))),
    Delete("Queue", "", "q"),
)
"""What admission reads beside an object itself."""
REQUESTS = st.one_of(
    pods().map(lambda each: Create(pack(each), user="job-controller")),
    groups().map(lambda each: Create(pack(each), user="job-controller")),
    st.sampled_from(OTHERS),
    st.integers(0, 9).map(lambda number: Delete("Pod", "default", f"p{number}")),
)


class Forgetful(Templates):
    """Remembers nothing: every object goes through all checks."""

    def of(self, kind: Kind, obj: Object) -> None:
        return None


def _stored(requests: list[StoreRequest], *, remembers: bool) -> tuple[list[object], list[tuple[str, bytes]], int]:
    """Return the answers, the changes and how many templates were remembered."""
    store, answers = Store(), list[object]()
    if not remembers:
        store.registry.templates = Forgetful(store.tables)
    store.apply(Create(pack(queue("default"))), START)
    for request in requests:
        answer = store.apply(request, START)
        answers.append((type(answer), unpack(answer.blob) if isinstance(answer, Accepted) and answer.blob else answer))
    return answers, [(each.type, each.blob) for each in store.drain()], len(store.registry.templates)


@given(st.lists(REQUESTS, min_size=10, max_size=40))
def test_objects_of_a_template_are_stored_as_by_all_checks(requests: list[StoreRequest]) -> None:
    assert _stored(requests, remembers=True)[:2] == _stored(requests, remembers=False)[:2]


def test_second_pod_of_a_template_differs_in_metadata_alone() -> None:
    made = [pod(f"p{number}", labels={"index": str(number)}) for number in range(3)]
    answers, _, remembered = _stored([Create(pack({**each, "status": {}})) for each in made], remembers=True)
    assert remembered == 0  # a status is not part of what is remembered
    made = [{part: value for part, value in each.items() if part != "status"} for each in made]
    answers, _, remembered = _stored([Create(pack(each)) for each in made], remembers=True)
    assert remembered == 1
    stored = [answer[1] for answer in answers if isinstance(answer, tuple)]
    assert [each["metadata"]["labels"]["index"] for each in stored] == ["0", "1", "2"]
    assert all(each["spec"] == stored[0]["spec"] and each["status"]["qosClass"] == "Burstable" for each in stored)


def test_template_of_a_class_that_has_gone_is_refused() -> None:
    named = {part: value for part, value in pod("p", priority_class="high").items() if part != "status"}
    again = {**named, "metadata": {**named["metadata"], "name": "p2"}}
    answers, _, _ = _stored([OTHERS[0], Create(pack(named)), OTHERS[2], Create(pack(again))], remembers=True)
    assert [answer[0] for answer in answers if isinstance(answer, tuple)] == [Accepted, Accepted, Accepted, Refused]
