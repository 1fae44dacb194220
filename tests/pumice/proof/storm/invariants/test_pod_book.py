"""The monitor reads of a pod what Kubernetes says it asks for, and what the scheduler's own reading says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.cluster.api.admission.pod_spec import default_pod_spec
from pumice.core.objects.metadata import Object
from pumice.core.objects.pod import TemplateTable
from pumice.core.objects.pod_template import PodTemplate
from pumice.core.state.dimensions import Dimensions
from pumice.proof.storm.invariants.pod_book import BookedPodReader, PodBook, share_port

NAMES = ("cpu", "memory", "hugepages-2Mi", "example.com/gpu")
Specs = st.SearchStrategy[Object]
SOME = st.sampled_from("014")
AMOUNTS: Specs = st.fixed_dictionaries({"cpu": SOME}, optional=dict.fromkeys(NAMES[1:], SOME))
RESOURCES: Specs = st.fixed_dictionaries({}, optional={"requests": AMOUNTS, "limits": AMOUNTS})
PORT: Specs = st.fixed_dictionaries(
    {"containerPort": st.sampled_from((80, 81))},
    optional={
        "hostPort": st.sampled_from((0, 80, 81)),
        "protocol": st.sampled_from(("TCP", "UDP")),
        "hostIP": st.sampled_from(("", "0.0.0.0", "10.0.0.1", "10.0.0.2")),
    },
)
PARTS: dict[str, st.SearchStrategy[Any]] = {"resources": RESOURCES, "ports": st.lists(PORT, max_size=2)}
CONTAINER: Specs = st.fixed_dictionaries({}, optional=PARTS)
INIT: Specs = st.fixed_dictionaries({}, optional={**PARTS, "restartPolicy": st.just("Always")})
WHOLE: Specs = st.fixed_dictionaries({"requests": AMOUNTS})
SPECS: Specs = st.fixed_dictionaries(
    {"containers": st.lists(CONTAINER, min_size=1, max_size=2), "initContainers": st.lists(INIT, max_size=4)},
    optional={"overhead": AMOUNTS, "resources": WHOLE, "hostNetwork": st.booleans()},
)


def book(spec: Object) -> PodBook:
    return BookedPodReader().read("d/p", {"metadata": {"uid": "u", "namespace": "d", "name": "p"}, "spec": spec}, None)


def asked(spec: Object) -> dict[str, int]:
    """In thousandths, nothing left out but what is not asked for."""
    return {name: amount for name, amount in book(spec).requests.items() if amount}


def template(spec: Object) -> PodTemplate:
    """What the scheduler reads of it, once the api has let it in."""
    default_pod_spec(spec)
    return TemplateTable(Dimensions()).intern(spec)


def seen(spec: Object) -> dict[str, int]:
    request = template(spec).request
    amounts = {"cpu": request.milli_cpu, "memory": request.memory * 1000}
    for name, amount in (request.scalars or {}).items():
        amounts[name] = amount * 1000 if name == "pods" else amount
    return {name: int(amount) for name, amount in amounts.items() if amount}


@settings(max_examples=300)
@given(SPECS)
def test_it_reads_what_the_scheduler_reads(spec: Object) -> None:
    mine, ports = asked(spec), book(spec).ports  # before admission has filled in anything
    assert mine == seen(spec)
    assert sorted(ports) == sorted(template(spec).host_ports)


def container(cpu: str, **more: Any) -> Object:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


SIDECAR = container("2", restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container("1"), container("500m")]}, 1500),
        ({"containers": [{"resources": {"limits": {"cpu": "3"}}}]}, 3000),
        ({"containers": [{"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}}]}, 1000),
        ({"containers": [container("1")], "initContainers": [container("3"), container("4")]}, 4000),
        ({"containers": [container("1")], "initContainers": [SIDECAR]}, 3000),
        ({"containers": [container("1")], "initContainers": [SIDECAR, SIDECAR, container("3")]}, 7000),
        ({"containers": [container("1")], "initContainers": [container("3"), SIDECAR]}, 3000),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "5"}}, "overhead": {"cpu": "1"}}, 6000),
    ],
)
def test_what_a_pod_asks_for(spec: Object, cpu: int) -> None:
    assert asked(spec) == {"pods": 1000, "cpu": cpu}


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ({"hostPort": 53, "protocol": "UDP"}, {"hostPort": 53, "protocol": "TCP"}, False),
        ({"hostPort": 53}, {"hostPort": 53, "protocol": "TCP"}, True),
        ({"hostPort": 53}, {"hostPort": 54}, False),
        ({"hostPort": 53, "hostIP": "10.0.0.1"}, {"hostPort": 53, "hostIP": "10.0.0.2"}, False),
        ({"hostPort": 53, "hostIP": "10.0.0.1"}, {"hostPort": 53, "hostIP": "10.0.0.1"}, True),
        ({"hostPort": 53, "hostIP": "10.0.0.1"}, {"hostPort": 53}, True),
        ({"hostPort": 53, "hostIP": "0.0.0.0"}, {"hostPort": 53, "hostIP": "10.0.0.1"}, True),
        ({"containerPort": 53}, {"containerPort": 53}, False),
    ],
)
def test_when_two_pods_share_a_port(one: Object, other: Object, *, shared: bool) -> None:
    first, second = (book({"containers": [{"ports": [port]}]}).ports for port in (one, other))
    assert share_port(first, second) is shared
    assert share_port(second, first) is shared


def test_one_reader_reads_pods_of_several_templates() -> None:
    reader, specs = BookedPodReader(), [{"containers": [container(cpu)]} for cpu in ("1", "2")]
    read = [
        reader.read(f"d/{uid}", {"metadata": {"uid": uid, "namespace": "d"}, "spec": spec}, None)
        for uid, spec in zip("abcd", (specs[0], specs[0], specs[1], specs[0]), strict=True)
    ]
    assert [pod.requests["cpu"] for pod in read] == [1000, 1000, 2000, 1000]
    assert [pod.uid for pod in read] == ["a", "b", "c", "d"]
