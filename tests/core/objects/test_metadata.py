"""Names, times and words of any object, devices that a node is to have, and objects as Go's clients encode them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.objects.metadata import (
    format_time,
    object_key,
    parse_bool,
    parse_time,
    same_metadata,
    same_section,
    section,
    text_map,
)
from pumice.core.objects.node_devices import (
    NONE,
    NodeDevices,
    NumaCells,
    SharedGpus,
    VirtualGpus,
    devices_of,
    read_devices,
)
from pumice.core.objects.typed import canonical, typed_group, typed_node, typed_pod, typed_queue
from pumice.core.quantity import quantity_of
from tests.kit import Object, node, pod, pod_group, queue


@given(st.integers(0, 2**33))
def test_time_comes_back_from_its_text(seconds: int) -> None:
    assert parse_time(format_time(seconds)) == seconds
    assert format_time(seconds + 0.9) == format_time(seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, 0.0),
        ("", 0.0),
        ("1970-01-01T00:00:01Z", 1.0),
        ("1970-01-01T00:00:01.5Z", 1.5),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("1970-01-01T00:00:01", 1.0),  # without a zone it is UTC
    ],
)
def test_time_of_another_form_is_read(text: str | None, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        (["1", "t", "T", "TRUE", "true", "True"], True),
        (["0", "f", "F", "FALSE", "false", "False"], False),
        (["", "yes", "tRUE", " true", "no"], None),
    ],
)
def test_words_for_true_and_false_are_gos(texts: list[str], value: bool | None) -> None:
    assert {parse_bool(text) for text in texts} == {value}


@pytest.mark.parametrize(
    ("obj", "key"),
    [
        ({}, "default/"),
        ({"metadata": None}, "default/"),
        ({"metadata": {"name": "p", "namespace": ""}}, "default/p"),
        ({"metadata": {"name": "p", "namespace": "ns"}}, "ns/p"),
    ],
)
def test_key_of_an_object_without_a_namespace_is_in_the_default_one(obj: Object, key: str) -> None:
    assert object_key(obj) == key


@pytest.mark.parametrize("value", [None, {}, ""])
def test_section_that_is_empty_is_a_mapping(value: Any) -> None:
    assert section({"a": value}, "a") == section({}, "a") == text_map(value) == {}
    assert same_section({"a": value}, {}, "a")
    assert not same_section({"a": value}, {"a": {"b": 1}}, "a")


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"resourceVersion": "2"}, True),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, True),
        ({"uid": "v"}, False),
        ({"labels": {"a": "c"}}, False),
        ({"annotations": {"a": "b"}}, False),
        ({"creationTimestamp": "2026-01-01T00:00:00Z"}, False),
    ],
)
def test_metadata_that_describes_an_object_alike_is_the_same(change: Object, same: bool) -> None:
    meta = {"name": "p", "uid": "u", "labels": {"a": "b"}}
    assert same_metadata({"metadata": meta}, {"metadata": {**meta, **change}}) is same


# --- Devices that a manifest announces


def test_devices_of_a_node_are_read() -> None:
    text = '{"vgpu": {"cards": 2, "memory": 9}, "gpu": {"cards": 1, "memory": 5}, "numa": {"cells": 2, "cpus": 8}}'
    expected = NodeDevices(VirtualGpus(2, 9), SharedGpus(1, 5), NumaCells(2, 8))
    assert read_devices(text) == devices_of(node("n", annotations={"pumice.dev/devices": text})) == expected
    assert devices_of(node("n")) == devices_of({}) == NONE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "truncated"),
        ("[]", "Expected `object`"),
        ('{"gpus": {}}', "unknown field `gpus`"),
        ('{"gpu": {"cards": 1}}', "missing required field `memory`"),
        ('{"gpu": {"cards": 0, "memory": 1}}', r">= 1.*gpu\.cards"),
        ('{"gpu": {"cards": 65, "memory": 1}}', r"<= 64.*gpu\.cards"),
        ('{"vgpu": {"cards": 1, "memory": 1, "type": "a,b"}}', r"regex.*vgpu\.type"),
        ('{"vgpu": {"cards": 1, "memory": 1, "mode": "mps"}}', r"mps.*vgpu\.mode"),
        ('{"numa": {"cells": 2, "cpus": 8, "policy": "any"}}', r"any.*numa\.policy"),
    ],
)
def test_devices_that_cannot_be_read_say_where_and_are_none(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_devices(text)
    assert devices_of(node("n", annotations={"pumice.dev/devices": text})) == NONE


# --- Objects as Go's typed clients encode them


AMOUNTS = st.from_regex(r"[1-9][0-9]{0,4}(m|k|M|Ki|Mi|Gi)?", fullmatch=True)


@given(st.dictionaries(st.sampled_from(["cpu", "memory", "a/b"]), AMOUNTS))
def test_canonical_quantities_are_equal_and_stay_as_they_are(quantities: dict[str, str]) -> None:
    found = canonical(quantities)
    assert canonical(found) == found
    assert all(quantity_of(found[name]).compare(quantity_of(each)) == 0 for name, each in quantities.items())


def test_canonical_leaves_what_is_not_a_quantity() -> None:
    assert canonical({"cpu": "0.5", "memory": 3000, "a/b": "many"}) == {"cpu": "500m", "memory": "3k", "a/b": "many"}


def test_typed_pod_has_resources_and_no_kind() -> None:
    made = pod("p", cpu="0.5", memory="1024Ki")
    made["spec"] |= {"overhead": {"cpu": "0.1"}, "initContainers": [{"name": "i"}], "resources": None}
    before = deepcopy(made)
    found = typed_pod(made)
    assert made == before
    assert not {"kind", "apiVersion"} & found.keys()
    (container,) = found["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "500m", "memory": "1Mi"}}
    assert found["spec"]["initContainers"] == [{"name": "i", "resources": {}}]
    assert (found["spec"]["overhead"], found["spec"]["resources"]) == ({"cpu": "100m"}, {})
    assert found["metadata"] == made["metadata"]


def test_typed_node_has_what_its_type_never_leaves_out() -> None:
    made = node("n", cpu="1500m", memory="2048Mi")
    made["status"]["conditions"] = [{"type": "Ready", "lastHeartbeatTime": "now"}]
    before = deepcopy(made)
    status = typed_node(made)["status"]
    assert made == before
    assert status["allocatable"]["memory"] == status["capacity"]["memory"] == "2Gi"
    assert status["conditions"] == [{"lastHeartbeatTime": "now", "lastTransitionTime": None, "type": "Ready"}]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert set(status["nodeInfo"].values()) == {""}
    assert typed_node({"status": {"nodeInfo": {"bootID": "b"}}})["status"]["nodeInfo"]["bootID"] == "b"


def test_typed_group_and_queue_have_canonical_lists() -> None:
    assert typed_group(pod_group("g", min_resources={"cpu": "1000m"}))["spec"]["minResources"] == {"cpu": "1"}
    made = queue("q", capability={"cpu": "2000m"}, guarantee={"memory": "1024Mi"})
    found = typed_queue(made)
    assert (found["spec"]["capability"], found["spec"]["guarantee"]) == ({"cpu": "2"}, {"resource": {"memory": "1Gi"}})
    assert (typed_queue(queue("q"))["spec"]["guarantee"], found["status"]) == ({}, {"reservation": {}, "state": "Open"})
