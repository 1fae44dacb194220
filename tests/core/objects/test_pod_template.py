"""Requests of pods against Kubernetes' definition, and what else of a spec decides where a pod may go."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pumice.core.errors import QuantityError
from pumice.core.objects.pod import TemplateTable
from pumice.core.objects.pod_template import largest, nonzero_request, pod_request
from pumice.core.state.dimensions import Dimensions

GPU = "nvidia.com/gpu"
MIB = 2**20
UNITS = {"cpu": "m", "memory": "Mi"}
AMOUNTS = st.fixed_dictionaries(
    {}, optional={"cpu": st.integers(0, 4000), "memory": st.integers(0, 900), GPU: st.integers(0, 4)}
)
FIRST = st.lists(st.tuples(AMOUNTS, st.booleans()), max_size=4)
Amounts = dict[str, int]


def written(amounts: Amounts) -> dict[str, str]:
    """In milli-cores, MiB and pieces."""
    return {name: f"{amount}{UNITS.get(name, '')}" for name, amount in amounts.items()}


def spec_of(containers: list[Amounts], first: list[tuple[Amounts, bool]], **more: Amounts) -> dict[str, Any]:
    """`first`: init containers, and whether each stays (a sidecar)."""
    spec: dict[str, Any] = {
        "containers": [{"resources": {"requests": written(each)}} for each in containers],
        "initContainers": [
            {"resources": {"requests": written(each)}, **({"restartPolicy": "Always"} if stays else {})}
            for each, stays in first
        ],
    }
    if "overhead" in more:
        spec["overhead"] = written(more["overhead"])
    if "level" in more:
        spec["resources"] = {"requests": written(more["level"])}
    return spec


def needed(containers: list[Amounts], first: list[tuple[Amounts, bool]], name: str, unsaid: int = 0) -> int:
    """The most that runs at one moment: init containers one after the other, sidecars from their turn on."""
    moments, running = list[int](), 0
    for amounts, stays in first:
        moments.append(running + amounts.get(name, unsaid))
        running += amounts.get(name, unsaid) if stays else 0
    return max([*moments, running + sum(each.get(name, unsaid) for each in containers)])


@example([{"cpu": 100}], [({"cpu": 200}, True), ({"cpu": 3000}, False)], {})
@given(st.lists(AMOUNTS, max_size=3), FIRST, AMOUNTS)
def test_request_of_a_pod_is_the_most_it_needs_at_one_moment(
    containers: list[Amounts], first: list[tuple[Amounts, bool]], overhead: Amounts
) -> None:
    spec = spec_of(containers, first, overhead=overhead)
    before = deepcopy(spec)
    request = pod_request(spec)
    assert spec == before
    assert request.milli_cpu == needed(containers, first, "cpu") + overhead.get("cpu", 0)
    assert request.memory == (needed(containers, first, "memory") + overhead.get("memory", 0)) * MIB
    scalars = request.scalars or {}
    assert scalars.get(GPU, 0.0) == (needed(containers, first, GPU) + overhead.get(GPU, 0)) * 1000
    assert scalars["pods"] == 1.0


@given(st.lists(AMOUNTS, max_size=3), FIRST, AMOUNTS, AMOUNTS)
def test_request_on_the_level_of_the_pod_counts_in_place_of_containers(
    containers: list[Amounts], first: list[tuple[Amounts, bool]], level: Amounts, overhead: Amounts
) -> None:
    request = pod_request(spec_of(containers, first, level=level, overhead=overhead))
    plain = pod_request(spec_of(containers, first))
    assert request.milli_cpu == level.get("cpu", plain.milli_cpu) + overhead.get("cpu", 0)
    memory = level["memory"] * MIB if "memory" in level else plain.memory
    assert request.memory == memory + overhead.get("memory", 0) * MIB
    # of devices nothing is said on that level
    assert (request.scalars or {}).get(GPU, 0.0) == (plain.scalars or {}).get(GPU, 0.0) + overhead.get(GPU, 0) * 1000


@example([{}], [({}, True), ({"cpu": 3000, "memory": 900}, False)], {})
@given(st.lists(AMOUNTS, max_size=3), FIRST, AMOUNTS)
def test_request_for_scorers_fills_in_what_containers_leave_out(
    containers: list[Amounts], first: list[tuple[Amounts, bool]], overhead: Amounts
) -> None:
    cpu, memory = nonzero_request(spec_of(containers, first, overhead=overhead))
    assert cpu == needed(containers, first, "cpu", 100) + overhead.get("cpu", 0)
    assert memory == (needed(containers, first, "memory", 200) + overhead.get("memory", 0)) * MIB


@pytest.mark.parametrize(
    ("spec", "milli_cpu"),
    [
        ({}, 0.0),
        ({"containers": None, "initContainers": None, "overhead": None, "resources": None}, 0.0),
        ({"containers": [{"resources": None}, {"resources": {"requests": None}}]}, 0.0),
        ({"containers": [{"resources": {"limits": {"cpu": "4"}}}]}, 0.0),  # admission copies limits to requests
        ({"containers": [{"resources": {"requests": {"cpu": "0.1"}}}]}, 100.0),
        ({"containers": [{"resources": {"requests": {"cpu": "1u"}}}]}, 1.0),  # rounded up
        ({"containers": [{"resources": {"requests": {"cpu": 2}}}]}, 2000.0),
    ],
)
def test_request_of_an_odd_spec_is_what_it_says(spec: dict[str, Any], milli_cpu: float) -> None:
    assert pod_request(spec).milli_cpu == milli_cpu


@pytest.mark.parametrize("said", ["one", "", "1 Gi", "--1"])
def test_request_that_is_not_a_quantity_is_refused(said: str) -> None:
    with pytest.raises(QuantityError):
        TemplateTable(Dimensions()).intern({"containers": [{"resources": {"requests": {"memory": said}}}]})


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([], {}),
        ([{"cpu": "1"}, {"cpu": "1000m"}], {"cpu": "1"}),  # of equals the first, as it was written
        ([{"cpu": "1"}, {"cpu": "1500m", "memory": "1Gi"}], {"cpu": "1500m", "memory": "1Gi"}),
        ([{"memory": "1Gi"}, {"memory": "1G"}], {"memory": "1Gi"}),
    ],
)
def test_largest_of_lists_is_taken_resource_by_resource(lists: list[dict[str, str]], expected: dict[str, str]) -> None:
    assert largest(*lists) == expected


PORT = {"containerPort": 80}


@pytest.mark.parametrize(
    ("spec", "ports"),
    [
        ({"containers": [{"ports": [PORT]}]}, ()),
        ({"containers": [{"ports": [{**PORT, "hostPort": 8080}]}]}, (("0.0.0.0", "TCP", 8080),)),
        ({"containers": [{"ports": [PORT]}], "hostNetwork": True}, (("0.0.0.0", "TCP", 80),)),
        (
            {"containers": [{"ports": [{"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]}]},
            (("10.0.0.1", "UDP", 53),),
        ),
        ({"initContainers": [{"ports": [{"hostPort": 1}]}]}, ()),
        ({"initContainers": [{"ports": [{"hostPort": 1}], "restartPolicy": "Always"}]}, (("0.0.0.0", "TCP", 1),)),
    ],
)
def test_host_ports_are_those_of_containers_that_stay(spec: dict[str, Any], ports: tuple[Any, ...]) -> None:
    template = TemplateTable(Dimensions()).intern(spec)
    assert template.host_ports == ports
    assert template.plain is not bool(ports)


COMPANY: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}, True),
    ({"volumes": [{"name": "v", "emptyDir": {}}]}, True),
    ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, False),
    ({"volumes": [{"name": "v", "ephemeral": {}}]}, False),
    ({"resourceClaims": [{"name": "c"}]}, False),
    ({"affinity": {"podAffinity": {}}}, False),
    ({"topologySpreadConstraints": [{"maxSkew": 1}]}, False),
]


@pytest.mark.parametrize(("more", "plain"), COMPANY)
def test_template_with_claims_or_company_is_not_plain(more: dict[str, Any], plain: bool) -> None:
    assert TemplateTable(Dimensions()).intern({"containers": [{}], **more}).plain is plain


def test_template_says_what_its_spec_says() -> None:
    spec = {
        "containers": [{"image": "a"}, {}],
        "initContainers": [{"image": "b"}],
        "schedulingGates": [{"name": "g"}, {}],
        "preemptionPolicy": "Never",
    }
    template = TemplateTable(Dimensions()).intern(spec)
    assert (template.images, template.container_count) == (("a", ""), 3)
    assert (template.scheduling_gates, template.preemption_policy) == (("g", ""), "Never")
    assert template.best_effort
    assert (template.node_selector, template.affinity, template.tolerations) == ({}, {}, ())


MORE = st.dictionaries(st.sampled_from(["x/a", "x/b"]), st.integers(1, 9).map(float)).map(lambda said: (*said.items(),))


@given(st.lists(MORE, max_size=5))
def test_template_that_asks_for_more_comes_back_to_its_spec(more: list[tuple[tuple[str, float], ...]]) -> None:
    table = TemplateTable(Dimensions())
    plain = table.intern(spec_of([{"cpu": 1000, GPU: 1}], []))
    template = plain
    for each in more:
        template = table.asking_for(template, each)
        assert template is table.asking_for(plain, each)
        assert template.request.scalars == {**(plain.request.scalars or {}), **dict(each)}
    assert table.asking_for(template, ()) is plain
    assert plain.request.scalars == {"pods": 1.0, GPU: 1000.0}


def test_template_without_uncounted_resources_asks_for_the_rest() -> None:
    table = TemplateTable(Dimensions())
    before = table.intern(spec_of([{"cpu": 1000, GPU: 2}], []))
    table.uncount(frozenset({GPU}))
    after = table.intern(spec_of([{"cpu": 1000, GPU: 2}], []))
    assert after is table.lighter(before) is table.lighter(after)
    assert (after.request.scalars, after.request.milli_cpu) == ({"pods": 1.0}, 1000.0)
    assert before.request.scalars == {"pods": 1.0, GPU: 2000.0}
    other = table.intern(spec_of([{"cpu": 1000}], []))
    assert table.lighter(other) is other
