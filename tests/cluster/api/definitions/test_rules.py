"""Rules in CEL of a definition bind its objects."""

import pytest

from pumice.cluster.api.definitions.rules import change_problems, unreadable
from pumice.cluster.api.definitions.structure import structure_problems
from pumice.cluster.api.definitions.values import value_problems
from pumice.cluster.api.definitions.work import TooDearError, Work
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster


def spec(*rules: Object, **properties: Object) -> Object:
    return {"type": "object", "properties": properties, "x-kubernetes-validations": list(rules)}


def told(schema: Object, value: Object) -> list[str]:
    return [cause.message for cause in value_problems(value, schema, Work(value), "spec")]


NUMBERS: Object = {"type": "array", "items": {"type": "integer"}}


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("self.least <= self.most", {"least": 1, "most": 2}, {"least": 3, "most": 2}),
        ("self.most % self.least == 0", {"least": 2, "most": 4}, {"least": 2, "most": 5}),
        ("self.most / 2 * 2 == self.most", {"most": 4}, {"most": 5}),
        ("self.list.all(x, x > 0)", {"list": [1, 2]}, {"list": [1, 0]}),
        ("self.list.exists(x, x == 2)", {"list": [1, 2]}, {"list": [1]}),
        ("self.list.exists_one(x, x == 2)", {"list": [1, 2]}, {"list": [2, 2]}),
        ("self.list.filter(x, x > 1).size() == 1", {"list": [1, 2]}, {"list": [2, 2]}),
        ("self.list.map(x, x * 2) == [2, 4]", {"list": [1, 2]}, {"list": [1]}),
        ("!has(self.most) || self.most - 1 > 0", {}, {"most": 1}),
        ("has(self.least) ? self.least == -3 : true", {"least": -3}, {"least": 3}),
    ],
)
def test_a_rule_holds_or_is_told_of(rule: str, good: Object, bad: Object) -> None:
    number: Object = {"type": "integer"}
    schema = spec({"rule": rule, "message": "no good"}, least=number, most=number, list=NUMBERS)
    assert told(schema, good) == []
    assert told(schema, bad) == ['Invalid value: "object": no good']


def test_messages_and_places_are_as_the_definition_says() -> None:
    rule: Object = {"rule": "self.a > 1", "messageExpression": "'found ' + string(self.a)", "fieldPath": ".a"}
    [cause] = value_problems({"a": 1}, spec({**rule, "reason": "FieldValueForbidden"}), Work({}), "spec")
    assert (cause.field, cause.reason, cause.message) == ("spec.a", "FieldValueForbidden", "Forbidden: found 1")
    assert told(spec({"rule": "self.a > 1"}), {"a": 1}) == ['Invalid value: "object": failed rule: self.a > 1']
    [missing] = told(spec({"rule": "self.b > 1"}), {"a": 1})
    assert "no such key: b" in missing


def test_a_rule_about_changes_is_asked_of_what_was_there() -> None:
    fixed: Object = {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is fixed"}]}
    schema = spec(name=fixed)
    assert told(schema, {"name": "a"}) == []
    assert change_problems({"name": "a"}, {}, schema, Work({})) == []
    assert change_problems({"name": "a"}, {"name": "a"}, schema, Work({})) == []
    [cause] = change_problems({"name": "b"}, {"name": "a"}, schema, Work({}), "spec")
    assert (cause.field, cause.message) == ("spec.name", 'Invalid value: "string": is fixed')


def test_an_unreadable_rule_is_refused_with_its_definition() -> None:
    [cause] = unreadable(spec({"rule": "self.a >"}), "schema", root=True)
    assert cause.field == "schema.x-kubernetes-validations[0].rule"
    assert "compilation failed" in cause.message
    assert structure_problems(spec({"rule": "(("}), "schema")
    assert unreadable(spec({"rule": "self.a > 1"}, a={"type": "integer"}), "schema", root=True) == []
    [unknown] = structure_problems(spec({"rule": "self.b > 1"}, a={"type": "integer"}), "schema")
    assert "undefined field 'b'" in unknown.message


def test_a_rule_that_looks_at_too_much_is_stopped() -> None:
    value = {"list": list(range(400))}
    rule = {"rule": "self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))"}
    with pytest.raises(TooDearError):
        told(spec(rule, list=NUMBERS), value)


def test_objects_of_a_defined_kind_are_bound() -> None:
    cluster = Cluster()
    schema = spec({"rule": "self.size < 10", "message": "too large"}, size={"type": "integer"})
    schema["properties"]["size"]["x-kubernetes-validations"] = [{"rule": "self >= oldSelf", "message": "may only grow"}]
    cluster.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "boxes.test.io"},
            "spec": {
                "group": "test.io",
                "scope": "Namespaced",
                "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
                    }
                ],
            },
        }
    )

    def box(name: str, size: int) -> Object:
        meta = {"name": name, "namespace": "default"}
        return {"apiVersion": "test.io/v1", "kind": "Box", "metadata": meta, "spec": {"size": size}}

    cluster.create(box("a", 3))
    assert 'spec: Invalid value: "object": too large' in cluster.refused(box("b", 10)).message
    refused = cluster.patch("Box.test.io", "a", {"spec": {"size": 2}})
    assert isinstance(refused, Refused)
    assert refused.message.endswith('spec.size: Invalid value: "integer": may only grow')
    assert isinstance(cluster.patch("Box.test.io", "a", {"spec": {"size": 4}}), Accepted)
