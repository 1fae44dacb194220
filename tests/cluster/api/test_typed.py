"""Types of all fields, as a strict store asks for them."""

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.kinds import KINDS
from pumice.cluster.api.schema import is_described, shape_of_kind, unknown_fields
from pumice.cluster.api.schema.field_types import key_problems
from pumice.cluster.api.store import Store
from pumice.core.messages.commands import Create, Patch
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object, is_list, is_mapping
from pumice.storage.codec import pack
from tests.actors.cluster import START
from tests.kit.definitions import definition, widget
from tests.kit.hostile import hostile_object
from tests.kit.jobs import vcjob
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue

WRONG: list[tuple[str, Object, str]] = [
    ("Pod", {"spec": {"containers": [{"env": [{"name": "A", "value": True}]}]}}, "spec.containers[0].env[0].value"),
    ("Pod", {"status": {"startTime": "yesterday"}}, "status.startTime"),
    ("Pod", {"spec": {"volumes": [{"emptyDir": {"sizeLimit": "much"}}]}}, "spec.volumes[0].emptyDir.sizeLimit"),
    ("Pod", {"spec": {"terminationGracePeriodSeconds": "30"}}, "spec.terminationGracePeriodSeconds"),
    ("Service", {"spec": {"ports": [{"port": "80"}]}}, "spec.ports[0].port"),
    ("Service", {"spec": {"ports": [{"port": 2**40}]}}, "spec.ports[0].port"),
    ("ConfigMap", {"data": {"a": 1}}, "data"),
    ("Secret", {"data": {"a": "no base64!"}}, "data"),
    ("Lease", {"spec": {"renewTime": 5}}, "spec.renewTime"),
    ("Job.batch", {"spec": {"parallelism": 1.5}}, "spec.parallelism"),
    ("Queue", {"spec": {"weight": "1"}}, "spec.weight"),
    ("Command", {"action": 3}, "action"),
    ("Node", {"metadata": {"annotations": {"a": True}}}, "metadata.annotations"),
]


@pytest.mark.parametrize(("kind", "fields", "place"), WRONG)
def test_a_wrong_type_is_named(kind: str, fields: Object, place: str) -> None:
    (cause,) = key_problems(kind, {"metadata": {"name": "x"}, **fields})
    assert cause.reason == "FieldValueTypeInvalid"
    assert cause.field.startswith(place)


RIGHT = [pod("p"), node("n"), queue("q"), pod_group("g"), vcjob("j")]


@pytest.mark.parametrize("obj", RIGHT, ids=[obj["kind"] for obj in RIGHT])
def test_what_is_right_passes(obj: Object) -> None:
    assert key_problems(obj["kind"], obj) == []


@pytest.mark.parametrize("obj", RIGHT, ids=[obj["kind"] for obj in RIGHT])
def test_a_field_that_nobody_described_is_seen(obj: Object) -> None:
    """The short way says yes where the long one finds nothing, and never else."""
    row = KINDS[obj["kind"]]
    shape = shape_of_kind(row.group, row.version, row.kind)
    assert unknown_fields(obj, shape) == []
    assert is_described(obj, row.group, row.version, row.kind)
    places: list[Object] = [obj, obj["spec"], obj["metadata"]] if "spec" in obj else [obj, obj["metadata"]]
    for place in places:
        place["nothingLikeIt"] = 1
        assert not is_described(obj, row.group, row.version, row.kind)
        assert unknown_fields(obj, shape)
        del place["nothingLikeIt"]


def test_labels_may_have_any_name_and_a_wrong_type_is_left_to_the_long_way() -> None:
    one = pod("p")
    one["metadata"]["labels"] = {"any": "name"}
    one["spec"]["containers"][0]["resources"] = {"requests": {"x.io/any": 1}}
    assert is_described(one, "", "v1", "Pod")
    one["spec"]["containers"][0]["name"] = 5
    assert not is_described(one, "", "v1", "Pod")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_typed_metadata(kind: str) -> None:
    needed: Object = {"spec": {}} if kind == "CustomResourceDefinition" else {}
    assert key_problems(kind, {"metadata": {"name": "x", "labels": {"a": "b"}}, "unknown": [1], **needed}) == []
    assert key_problems(kind, {"metadata": {"labels": [1]}})


@pytest.mark.parametrize("time", ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.123456Z", "2024-01-01T00:00:00+01:00"])
def test_times(time: str) -> None:
    assert key_problems("Node", {"metadata": {"creationTimestamp": time}}) == []


@pytest.mark.parametrize(
    ("time", "good"),
    [
        ("2024-01-01T00:00:00.123456Z", True),
        ("2024-01-01T00:00:00.000000+01:00", True),
        ("2024-01-01T00:00:00Z", False),
        ("2024-01-01T00:00:00.1Z", False),
        ("2024-01-01T00:00:00.1234567Z", False),
    ],
)
def test_times_of_leases_have_six_digits(time: str, good: bool) -> None:
    problems = key_problems("Lease", {"metadata": {}, "spec": {"renewTime": time}})
    assert (problems == []) is good
    assert good or "expected a time like 2026-01-02T03:04:05.000000Z" in problems[0].message


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "spec", "status", "name", "containers", "data"]), inner, max_size=4
        )
    ),
)


@given(JSON, st.sampled_from(sorted(KINDS)))
def test_anything_gets_a_verdict(obj: Any, kind: str) -> None:
    assert all(isinstance(cause.field, str) for cause in key_problems(kind, {"metadata": {}, "spec": obj}))


@pytest.mark.parametrize("served", [True, False])
@pytest.mark.parametrize("user", ["jobs", "submit"])
def test_what_anybody_writes_is_typed(served: bool, user: str) -> None:
    odd = pod("p")
    odd["spec"]["containers"][0]["env"] = [{"name": "A", "value": 1}]
    reply = Store(served=served).apply(Create(pack(odd), user=user), START)
    assert isinstance(reply, Refused)
    assert (reply.code, reply.details["causes"][0]["field"]) == (422, "spec.containers[0].env[0].value")


def test_of_a_users_own_kind_the_metadata_is_typed() -> None:
    store = Store(served=True)
    assert isinstance(store.apply(Create(pack(definition()), user="submit"), START), Accepted)
    assert isinstance(store.apply(Create(pack(widget()), user="submit"), START), Accepted)
    odd = widget("odd")
    odd["metadata"]["managedFields"] = "mine"
    assert isinstance(store.apply(Create(pack(odd), user="submit"), START), Refused)


@pytest.mark.parametrize("levels", [129, 300, 490])
def test_what_a_patch_nests_too_deeply_is_refused(levels: int) -> None:
    deep: Any = {}
    for _ in range(levels):
        deep = {"a": [deep]}
    config_map: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    store = Store(served=True)
    assert isinstance(store.apply(Create(pack(config_map), user="submit"), START), Accepted)
    body = pack([{"op": "add", "path": "/data", "value": deep}])
    reply = store.apply(Patch("ConfigMap", "default", "c", body, form="json", manager="m"), START)
    assert isinstance(reply, Refused)
    assert reply.code in (400, 422)


def test_a_wrong_value_is_named_with_what_was_expected() -> None:
    (cause,) = key_problems("Pod", {"metadata": {}, "spec": {"terminationGracePeriodSeconds": "30"}})
    assert cause.message == "Invalid value: expected a whole number, was '30'"


def test_a_field_that_is_missing_is_named_in_kubernetes_words() -> None:
    (cause,) = key_problems("Node", {"metadata": {}, "spec": {"taints": [{"key": "a"}]}})
    assert (cause.field, cause.reason, cause.message) == (
        "spec.taints[0].effect", "FieldValueRequired", "Required value",
    )  # fmt: skip
    assert key_problems("Pod", {"spec": {}})[0].field == "metadata"


IN_MAPPINGS: list[tuple[str, Object, str]] = [
    ("ResourceSlice", {"devices": [{"capacity": {"a": {"value": "1Gi"}, "b": {"value": "many"}}}]},
     "spec.devices[0].capacity[b].value"),
    ("Numatopology", {"cpuDetail": {"0": {"numa": 1}, "1": {"numa": "none"}}}, "spec.cpuDetail[1].numa"),
    ("Job", {"plugins": {"svc": ["a"], "ssh": [1]}}, "spec.plugins[ssh][0]"),
    ("PodGroup", {"minTaskMember": {"a": 1, "b": 2**40}}, "spec.minTaskMember[b]"),
    (
        "Pod",
        {"containers": [{"resources": {"limits": {"a": 1, "cpu": [1]}}}]},
        "spec.containers[0].resources.limits[cpu]",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spec", "place"), IN_MAPPINGS)
def test_a_wrong_value_in_a_mapping_is_named_by_its_key(kind: str, spec: Object, place: str) -> None:
    (cause,) = key_problems(kind, {"metadata": {}, "spec": spec})
    assert cause.field == place
    assert "was" in cause.message or "many" in cause.message


@given(st.integers(0, 2**32), st.sampled_from([{"odd": 1}, ["odd"], True, 2**70, "odd"]))
def test_a_planted_wrong_value_is_found_and_described(seed: int, odd: Any) -> None:
    """Some leaf of an object becomes something else: it is of its type still, or one cause says where and what."""
    chance = Random(seed)
    obj = hostile_object(chance)
    row = chance.choice(
        [row for row in KINDS.values() if (row.kind, row.api_version) == (obj["kind"], obj["apiVersion"])]
    )
    places = list(leaves(obj))
    holder, key = chance.choice(places)
    holder[key] = odd
    for cause in key_problems(row.key, obj):
        assert "[...]" not in cause.field
        assert "`" not in cause.message


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the places of all values that hold no others, each as its holder and its key."""
    entries = cast("Iterable[tuple[Any, Any]]", value.items() if is_mapping(value) else enumerate(value))
    for key, each in entries:
        if each and (is_mapping(each) or is_list(each)):
            yield from leaves(each)
        else:
            yield value, key
