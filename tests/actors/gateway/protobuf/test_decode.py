"""What is refused in protobuf bodies, what the wire allows, and that no bytes do anything else."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pumice.actors.gateway.protobuf.reading import READERS, MalformedBodyError, UnknownProtobufKindError, decode

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("recorded.json").read_text("utf-8"))
BODIES = [base64.b64decode(case["bytes"]) for case in RECORDED]


def varint(number: int) -> bytes:
    """A number on the wire."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def run(number: int, data: bytes) -> bytes:
    """A field of bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(api_version: str, kind: str, raw: bytes, *more: bytes) -> bytes:
    """The envelope around a message."""
    return b"k8s\x00" + run(1, run(1, api_version.encode()) + run(2, kind.encode())) + run(2, raw) + b"".join(more)


def test_the_type_comes_from_the_envelope() -> None:
    found = decode(body("v1", "ConfigMap", run(1, run(1, b"x")) + run(2, run(1, b"key") + run(2, b"value"))))
    assert found == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"key": "value"}}


def test_a_key_without_bytes_stays_as_an_empty_one() -> None:
    assert decode(body("v1", "Secret", run(2, run(1, b"key"))))["data"] == {"key": ""}


@pytest.mark.parametrize("api_version", ["v1", "apps/v1", "policy/v1", "meta.k8s.io/v1"])
def test_options_come_under_any_version(api_version: str) -> None:
    assert decode(body(api_version, "DeleteOptions", b"\x08\x00"))["gracePeriodSeconds"] == 0


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("batch.volcano.sh/v1alpha1", "Job"), ("v2", "Pod"), ("", ""), ("policy/v1beta1", "PodDisruptionBudget")],
)
def test_an_unknown_kind_is_named(api_version: str, kind: str) -> None:
    with pytest.raises(UnknownProtobufKindError, match=kind or "no kind") as error:
        decode(body(api_version, kind, b""))
    assert (error.value.code, error.value.reason) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "does not start"),
        (b'{"kind":"Pod"}', "does not start"),
        (body("v1", "Pod", b"\x0a\xff"), "unexpected end"),
        (body("v1", "Pod", b"\x0a\x05abc"), "unexpected end of the message"),
        (body("v1", "Pod", b"\x00\x00"), "field number 0"),
        (body("v1", "Pod", b"\x0b"), "wire type 3"),
        (body("v1", "Pod", b"\x08\x01"), "expected bytes, found a number"),
        (body("v1", "Pod", run(1, run(1, b"\xff"))), "not UTF-8"),
        (body("v1", "Pod", b"", run(3, b"gzip")), "unknown content encoding 'gzip'"),
        (body("v1", "Pod", run(1, run(8, b"\x08" + varint(2**62)))), "out of range"),
        (b"k8s\x00\x08\x01", "the envelope is broken"),
        (body("v1", "Pod", b"\x80" * 11), "unexpected end of a number"),
    ],
)
def test_broken_bytes_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(MalformedBodyError, match=why) as error:
        decode(data)
    assert error.value.code == 400


def test_a_message_that_comes_in_parts_is_one() -> None:
    raw = run(1, run(1, b"x")) + run(1, run(3, b"ns"))
    assert decode(body("v1", "ConfigMap", raw))["metadata"] == {"name": "x", "namespace": "ns"}


def test_packed_numbers_are_a_list() -> None:
    packed, single = run(4, b"\x01\x02"), b"\x20\x03"
    found = decode(body("v1", "Pod", run(2, run(14, packed + single))))
    assert found["spec"]["securityContext"]["supplementalGroups"] == [1, 2, 3]


def test_fields_that_nobody_knows_are_passed_over() -> None:
    raw = run(1, run(1, b"x")) + run(1000, b"future") + varint(1001 << 3) + b"\x07"
    assert decode(body("v1", "Secret", raw)) == {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}


def test_deep_nesting_is_refused() -> None:
    raw = b""
    for _ in range(200):
        raw = run(28, raw)  # JSONSchemaProps.not
    spec = run(2, run(1, b"g") + run(7, run(4, run(1, raw))))
    with pytest.raises(MalformedBodyError, match="nested"):
        decode(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec))


@pytest.mark.parametrize(
    ("nanos", "told"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1500, "1.5µs"),
        (2_000_000, "2ms"),
        (1_500_000_000, "1.5s"),
        (60_000_000_000, "1m0s"),
        (3_600_000_000_000, "1h0m0s"),
        (-90_000_000_000, "-1m30s"),
    ],
)
def test_durations_are_spelt_as_go_spells_them(nanos: int, told: str) -> None:
    assert READERS["Duration"](memoryview(b"\x08" + varint(nanos % 2**64))) == told


def test_a_boolean_in_place_of_a_schema() -> None:
    closed = run(30, b"\x08\x00")  # additionalProperties: false
    listed = run(24, run(2, run(5, b"string")) + run(2, run(5, b"integer")))  # items: two schemas
    spec = run(2, run(7, run(1, b"v1") + run(4, run(1, closed + listed))))
    found = decode(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec))
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["additionalProperties"] is False
    assert schema["items"] == [{"type": "string"}, {"type": "integer"}]


def answered(data: bytes) -> None:
    """The body is an object or refused."""
    try:
        found = decode(data)
    except (MalformedBodyError, UnknownProtobufKindError):
        return
    json.dumps(found, allow_nan=True)


@given(st.binary(max_size=200), st.sampled_from(["Pod", "CustomResourceDefinition", "Event", "DeleteOptions"]))
def test_any_message_is_answered(raw: bytes, kind: str) -> None:
    group = {"CustomResourceDefinition": "apiextensions.k8s.io/v1"}
    answered(body(group.get(kind, "v1"), kind, raw))
    answered(b"k8s\x00" + raw)
    answered(raw)


@given(
    st.sampled_from(BODIES), st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), max_size=5), st.booleans()
)
@example(BODIES[0], [(40, 255)], False)
def test_damaged_bodies_are_answered(data: bytes, damage: list[tuple[int, int]], cut: bool) -> None:
    broken = bytearray(data)
    for at, byte in damage:
        broken[at % len(broken)] = byte
    answered(bytes(broken[: damage[0][0] % len(broken)] if cut and damage else broken))
