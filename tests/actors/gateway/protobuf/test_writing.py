"""What is written as protobuf is read again as the same object: recorded ones, and any that the schema table allows."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.gateway.problems import ApiError
from pumice.actors.gateway.protobuf.reading import decode, read_message
from pumice.actors.gateway.protobuf.writing import encode, knows, varint, write_message
from pumice.actors.gateway.watch_events import PROTOBUF_EVENTS
from pumice.cluster.api.schema.table import flat_fields, is_message
from pumice.core.objects.metadata import Object, is_list, is_mapping
from tests.kit.pods import pod

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("recorded.json").read_text("utf-8"))
KINDS = [
    "admissionregistration.v1.ValidatingAdmissionPolicy",
    "apiextensions.v1.CustomResourceDefinition",
    "apps.v1.Deployment",
    "authorization.v1.SubjectAccessReview",
    "batch.v1.Job",
    "core.v1.Node",
    "core.v1.PersistentVolume",
    "core.v1.Pod",
    "meta.v1.Status",
    "networking.v1.Ingress",
    "resource.v1.ResourceClaim",
]
DEEPEST = 4

MOMENTS = st.datetimes().map(lambda at: f"{at.year:04d}{at.isoformat()[4:19]}Z")
JSON: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers(-(2**31), 2**31) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=3,
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(min_size=1, max_size=200),
    "boolean": st.just(True),
    "int32": st.integers(-(2**31), 2**31 - 1).filter(bool),
    "int64": st.integers(-(2**63), 2**63 - 1).filter(bool),
    "double": st.floats(allow_nan=False, allow_infinity=False).filter(bool),
    "byte": st.binary(min_size=1).map(lambda data: base64.b64encode(data).decode()),
    "Quantity": st.sampled_from(["1", "500m", "2Gi", "1e3"]),
    "IntOrString": st.integers(-(2**31), 2**31 - 1) | st.text(),
    "Time": MOMENTS,
    "MicroTime": MOMENTS.map(lambda at: f"{at[:-1]}.000120Z"),
    "Duration": st.sampled_from(["1s", "2m30s", "1.5s"]),
    "FieldsV1": JSON,
    "RawExtension": JSON,
    "JSON": JSON,
}


@st.composite
def objects(draw: st.DrawFn, name: str, depth: int = 0) -> Object:
    """An object with some of a message's fields, none of them empty."""
    fields = {each.name: each for each in flat_fields(name).values() if each.number}
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), unique=True, max_size=5)) if fields else []
    made = {field: draw(values(fields[field].type, depth + 1)) for field in chosen}
    return {field: value for field, value in made.items() if value is not None}


def values(type_: str, depth: int) -> st.SearchStrategy[Any]:
    """Values of a type of the schema table; None where it would be too deep."""
    if type_[:2] == "[]" or type_[0] == "@":
        inner = values(type_[2:] if type_[0] == "[" else type_[1:], depth)
        return st.none() if depth > DEEPEST else st.lists(inner.filter(_is_there), min_size=1, max_size=3)
    if type_.startswith("{}"):
        inner = values(type_[2:], depth).filter(_is_there)
        return st.none() if depth > DEEPEST else st.dictionaries(st.text(max_size=4), inner, min_size=1, max_size=3)
    if type_ in VALUES:
        return VALUES[type_]
    schema = objects("apiextensions.v1.JSONSchemaProps", max(depth, DEEPEST - 1))
    match type_:
        case "SchemaOrBool":
            return schema | st.booleans()
        case "SchemaOrArray":
            return schema | st.lists(schema, min_size=1, max_size=2)
        case "SchemaOrStrings":
            return schema | st.lists(st.text(), min_size=1, max_size=2)
        case _:
            assert is_message(type_)
            return st.just({}) if depth > DEEPEST else objects(type_, depth)


def _is_there(value: object) -> bool:
    return value is not None


def holds(found: Any, given: Any) -> bool:
    """Whether all that was given was found; what Go prints without being told may be there besides."""
    if is_mapping(given) and is_mapping(found):
        return all(holds(found.get(key), value) for key, value in given.items())
    if is_list(given) and is_list(found):
        return len(found) == len(given) and all(map(holds, found, given))
    return bool(found == given) and type(found) is type(given)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["json"]["kind"])
def test_a_recorded_object_is_read_again_as_it_was(case: dict[str, Any]) -> None:
    found = decode(base64.b64decode(case["bytes"]))
    assert decode(encode(found)) == found


@pytest.mark.parametrize("name", KINDS)
def test_any_object_is_read_again_as_it_was(name: str) -> None:
    @given(objects(name))
    def check(obj: Object) -> None:
        body = write_message(name, obj)
        found = read_message(name, memoryview(body))
        assert holds(found, obj)
        assert read_message(name, memoryview(write_message(name, found))) == found

    check()


def test_nulls_and_unknown_fields_are_left_out() -> None:
    written = write_message("core.v1.ConfigMap", {"data": None, "odd": 1, "metadata": {"name": "a", "labels": None}})
    assert read_message("core.v1.ConfigMap", memoryview(written)) == {"metadata": {"name": "a"}}


def test_numbers_of_manifests_are_quantities() -> None:
    written = write_message("core.v1.ResourceRequirements", {"requests": {"cpu": 2, "memory": "1Gi"}})
    found = read_message("core.v1.ResourceRequirements", memoryview(written))
    assert found == {"requests": {"cpu": "2", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priority": "high"}, "invalid literal"),
        ({"nodeName": 7}, "descriptor 'encode'|has no attribute 'encode'"),
        ({"containers": [None]}, "no attribute"),
        ({"containers": 1}, "not iterable"),
        ({"nodeSelector": []}, "no attribute"),
    ],
)
def test_a_value_that_its_field_cannot_hold_is_not_acceptable(spec: Object, why: str) -> None:
    with pytest.raises(ApiError, match=f'Pod "a" cannot be written as protobuf: .*({why})') as error:
        encode({**pod("a"), "spec": spec})
    assert error.value.refused.code == 406
    assert str(error.value).endswith("Accept application/json.")


def test_kubernetes_kinds_are_known_and_volcanos_are_not() -> None:
    assert knows("v1", "Pod")
    assert knows("v1", "Status")
    assert not knows("batch.volcano.sh/v1alpha1", "Job")
    assert not knows("example.org/v1", "Anything")


@pytest.mark.parametrize(("number", "expected"), [(0, "00"), (127, "7f"), (128, "8001"), (2**64 - 1, "ff" * 9 + "01")])
def test_numbers_take_seven_bits_a_byte(number: int, expected: str) -> None:
    assert varint(number).hex() == expected


@given(st.lists(st.sampled_from(["ADDED", "BOOKMARK", "DELETED"]), max_size=5))
def test_frames_that_were_joined_are_told_apart(types: list[str]) -> None:
    events = [
        PROTOBUF_EVENTS.write(type_, {**pod(f"a{number}"), "metadata": {"resourceVersion": str(number)}})
        for number, type_ in enumerate(types)
    ]
    found = PROTOBUF_EVENTS.split(b"".join(events))
    assert found == events
    assert [PROTOBUF_EVENTS.revision(event) for event in found] == list(range(len(types)))
    assert [PROTOBUF_EVENTS.is_bookmark(event) for event in found] == [type_ == "BOOKMARK" for type_ in types]
