"""Admission asks the schema which values a field may have, and names them in the order in which Kubernetes does."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import pumice.cluster.api.admission
from pumice.cluster.api.schema.table import enum_of, flat_fields
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.pods import pod

FOLDER: Final = Path(pumice.cluster.api.admission.__file__).parent
OTHERS: Final = {
    ("match_rules", ("In", "NotIn")),  # the selector operators that need values, not those of exit codes
    ("pod_spec", ("In", "NotIn")),
    ("pod_spec", ("Equal", "Exists")),  # of a pod's tolerations, not of a device's
}
"""Not the enum that happens to have the same values."""


def enums() -> set[tuple[str, ...]]:
    names = json.loads((FOLDER.parent / "schema" / "kinds.json").read_text("utf-8"))["messages"]
    return {field.rules.enum for name in names for field in flat_fields(name).values() if field.rules.enum}


def written_lists(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the tuples, lists and sets of texts in a source."""
    for found in ast.walk(ast.parse(text)):
        if isinstance(found, ast.Tuple | ast.List | ast.Set):
            values = [each.value for each in found.elts if isinstance(each, ast.Constant)]
            texts = tuple(value for value in values if isinstance(value, str))
            if texts and len(texts) == len(found.elts):
                yield texts


def test_no_enum_of_the_schema_is_written_by_hand() -> None:
    known = {frozenset(enum) for enum in enums()}
    written = {
        (path.stem, values)
        for path in FOLDER.glob("*.py")
        for values in written_lists(path.read_text("utf-8"))
        if frozenset(values) in known
    }
    assert written == OTHERS


def test_written_lists_are_found_wherever_they_stand() -> None:
    source = 'A = {"x", "y"}\nif a in ("p", "q") or b in ["r"] or c in ("s", d): pass'
    assert sorted(written_lists(source)) == [("p", "q"), ("r",), ("x", "y")]


def test_a_field_without_an_enum_is_an_error() -> None:
    assert enum_of("core.v1.ServicePort", "protocol") == ("SCTP", "TCP", "UDP")
    assert enum_of("core.v1.ServicePort", "protocol", declared=True) == ("TCP", "UDP", "SCTP")
    with pytest.raises(KeyError, match="has no enum"):
        enum_of("core.v1.PodSpec", "nodeName")


def a_pod(**spec: object) -> Object:
    made = pod("p")
    made["spec"] |= spec
    return made


def a_stateful_set(**spec: object) -> Object:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    whole = {"selector": {"matchLabels": {"a": "b"}}, "serviceName": "s", "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": whole}


def on_nodes(operator: str) -> Object:
    terms = [{"matchExpressions": [{"key": "a", "operator": operator}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


SPREAD: Final[Object] = {"maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "Wait"}
UNSUPPORTED: Final = 'Unsupported value: "Wait": supported values: '
REFUSED: Final[list[tuple[Object, str]]] = [
    (a_pod(restartPolicy="Wait"), f'restartPolicy: {UNSUPPORTED}"Always", "OnFailure", "Never"'),
    (a_pod(tolerations=[{"operator": "Wait", "key": "a"}]), f'operator: {UNSUPPORTED}"Equal", "Exists"'),
    (
        a_pod(tolerations=[{"operator": "Exists", "effect": "Wait"}]),
        f'effect: {UNSUPPORTED}"NoSchedule", "PreferNoSchedule", "NoExecute"',
    ),
    (
        a_pod(topologySpreadConstraints=[SPREAD]),
        f'whenUnsatisfiable: {UNSUPPORTED}"DoNotSchedule", "ScheduleAnyway"',
    ),
    (a_pod(affinity=on_nodes("Wait")), 'operator: Invalid value: "Wait": not a valid selector operator'),
    (
        a_stateful_set(podManagementPolicy="Wait"),
        "podManagementPolicy: Invalid value: \"Wait\": must be 'OrderedReady' or 'Parallel'",
    ),
    (
        a_stateful_set(updateStrategy={"type": "Wait"}),
        f'updateStrategy.type: {UNSUPPORTED}"RollingUpdate", "OnDelete"',
    ),
]


@pytest.mark.parametrize(("obj", "message"), REFUSED)
def test_a_value_outside_the_enum_is_refused_in_kubernetes_words(cluster: Cluster, obj: Object, message: str) -> None:
    assert cluster.refused(obj).message.endswith(message)
