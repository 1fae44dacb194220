"""The schema table: it describes every served kind, holds together, and is read only when asked."""

import subprocess
import sys
from pathlib import Path

import pytest

import pumice.cluster.api.schema
from pumice.cluster.api.kinds import KINDS
from pumice.cluster.api.schema import message, of_kind, of_type
from pumice.cluster.api.schema.table import SchemaMessage, element, flat_fields, is_message

SPECIAL = {
    *("string", "boolean", "int32", "int64", "double", "byte", "Quantity", "IntOrString", "Time", "MicroTime"),
    *("Duration", "FieldsV1", "RawExtension", "JSON", "SchemaOrBool", "SchemaOrArray", "SchemaOrStrings"),
}
NOT_MANIFESTS = ("NodeMetrics",)


def everything() -> dict[str, SchemaMessage]:
    """Every message that a served kind reaches."""
    found: dict[str, SchemaMessage] = {}
    rows = KINDS.values()
    waiting = [each.name for row in rows if (each := of_kind(row.group, row.version, row.kind))]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = message(name)
            waiting += [kind for field in found[name].fields if is_message(kind := innermost(field.type))]
    return found


def innermost(type_: str) -> str:
    """The type without the marks of lists and maps."""
    while element(type_) != type_:
        type_ = element(type_)
    return type_


@pytest.mark.parametrize("key", sorted(KINDS.keys() - set(NOT_MANIFESTS)))
def test_every_served_kind_is_described(key: str) -> None:
    row = KINDS[key]
    found = of_kind(row.group, row.version, row.kind)
    assert found is not None
    assert {"apiVersion", "kind", "metadata"} <= flat_fields(found.name).keys()
    assert of_type(row.api_version, row.kind) is found


@pytest.mark.parametrize("what", [(None, "Pod"), ("v1", 3), ("v1", "Nonsense"), ("a/b/c", "Pod"), ("", "")])
def test_nothing_else_is(what: tuple[object, object]) -> None:
    assert of_type(*what) is None


def test_every_type_is_known_and_every_number_stands_once() -> None:
    for name, found in everything().items():
        assert all(innermost(field.type) in SPECIAL or is_message(innermost(field.type)) for field in found.fields), (
            name
        )
        numbers = [field.number for field in found.fields if field.number]
        assert len(numbers) == len(set(numbers)), name
        names = [field.name for field in found.fields]
        assert len(names) == len(set(names)), name


def test_keys_of_lists_are_fields_of_their_elements() -> None:
    seen = 0
    for name, found in everything().items():
        for field in found.fields:
            keys = {*field.rules.keys, *filter(None, [field.rules.merge_key])}
            if keys and is_message(field.item):
                seen += 1
                assert keys <= flat_fields(field.item).keys(), f"{name}.{field.name}"
    assert seen > 50


def test_facts_that_others_build_on() -> None:
    pod_spec = flat_fields("core.v1.PodSpec")
    containers = pod_spec["containers"]
    assert (containers.type, containers.number) == ("[]core.v1.Container", 2)
    assert (containers.many, containers.item, containers.required) == ("list", "core.v1.Container", True)
    assert (containers.rules.merge_key, containers.rules.strategy) == ("name", ("merge",))
    assert pod_spec["volumes"].rules.strategy == ("merge", "retainKeys")
    ports = flat_fields("core.v1.Container")["ports"]
    assert (ports.rules.list_type, ports.rules.keys) == ("map", ("containerPort", "protocol"))
    assert flat_fields("core.v1.Volume").keys() > {"name", "emptyDir", "configMap"}  # the embedded source is flat
    queue = of_kind("scheduling.volcano.sh", "v1beta1", "Queue")
    assert queue is not None
    weight = flat_fields(flat_fields(queue.name)["spec"].type)["weight"]
    assert (weight.rules.default, weight.rules.minimum, weight.number) == (1, 1, 0)
    assert weight.rules.doc


def test_the_data_file_is_small() -> None:
    path = Path(pumice.cluster.api.schema.__file__).with_name("kinds.json")
    assert path.stat().st_size < 300_000


def test_a_start_of_the_command_line_does_not_read_it() -> None:
    code = """if True:
        import sys, pumice.cli.app
        table = sys.modules.get("pumice.cluster.api.schema.table")
        print("read" if table and table._data.cache_info().currsize else "not read")
    """
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "not read"
