"""Server-side apply step by step: words of conflicts, subresources, times, kubectl's annotation, what is refused."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pumice.cluster.api.apply import Applicant, apply, track_update
from pumice.cluster.api.apply.owners import LAST_APPLIED, by_update, resets, without_managers
from pumice.cluster.api.schema import shape_of_kind, shape_of_schema
from pumice.core.messages.replies import Refused

GROUP = "scheduling.volcano.sh"
VERSION = f"{GROUP}/v1beta1"
QUEUE = shape_of_kind(GROUP, "v1beta1", "Queue")
POD = shape_of_kind("", "v1", "Pod")
T0, T1, T2 = (f"2026-01-01T00:00:0{at}Z" for at in range(3))


def queue(**spec: Any) -> dict[str, Any]:
    """A Queue as a manifest has it."""
    return {"apiVersion": VERSION, "kind": "Queue", "metadata": {"name": "q"}, "spec": spec}


def applied(live: Any, config: Any, name: str = "kubectl", now: str = T0, **how: Any) -> dict[str, Any]:
    """The object after an apply that must succeed."""
    got = apply(live, config, Applicant(name, VERSION, **how), now, QUEUE)
    assert not isinstance(got, Refused), got
    return got


def refused(live: Any, config: Any, name: str = "other", **how: Any) -> Refused:
    """The refusal of an apply that must not succeed."""
    got = apply(live, config, Applicant(name, VERSION, **how), T1, QUEUE)
    assert isinstance(got, Refused), got
    return got


def owners(obj: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """The owned fields by manager and operation."""
    entries: list[dict[str, Any]] = obj["metadata"].get("managedFields") or []
    return {(each["manager"], each["operation"]): each["fieldsV1"] for each in entries}


def test_the_first_apply_makes_the_object_and_owns_what_it_states() -> None:
    made = applied(None, queue(weight=2, capability={"cpu": "4"}))
    assert made["spec"] == {"weight": 2, "capability": {"cpu": "4"}}
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "kubectl",
            "operation": "Apply",
            "apiVersion": VERSION,
            "time": T0,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:capability": {"f:cpu": {}}, "f:weight": {}}},
        }
    ]


def test_a_conflict_with_an_applier_is_told_as_kubernetes_tells_it() -> None:
    answer = refused(applied(None, queue(weight=2)), queue(weight=3))
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert answer.message == 'Apply failed with 1 conflict: conflict with "kubectl": .spec.weight'
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl"', "field": ".spec.weight"}
    assert answer.details == {"causes": [cause]}


def test_several_conflicts_are_listed_by_manager() -> None:
    live = applied(applied(None, queue(weight=2)), queue(reclaimable=True), "second")
    answer = refused(live, queue(weight=3, reclaimable=False), "third")
    lines = 'conflicts with "kubectl":\n- .spec.weight\nconflicts with "second":\n- .spec.reclaimable'
    assert answer.message == f"Apply failed with 2 conflicts: {lines}"


def test_a_conflict_with_client_side_apply_names_the_version() -> None:
    note = {LAST_APPLIED: json.dumps(queue(weight=2))}
    live = queue(weight=2) | {"metadata": {"name": "q", "uid": "u", "annotations": note}}
    answer = refused(live, queue(weight=3))
    who = f'conflict with "kubectl-client-side-apply" using {VERSION}'
    assert answer.message == f"Apply failed with 1 conflict: {who}: .spec.weight"
    assert answer.details == {"causes": [{"reason": "FieldManagerConflict", "message": who, "field": ".spec.weight"}]}


def test_what_nobody_is_known_to_have_written_belongs_to_before_first_apply() -> None:
    answer = refused(queue(weight=2) | {"metadata": {"name": "q", "uid": "u"}}, queue(weight=3))
    assert f'conflict with "before-first-apply" using {VERSION}: .spec.weight' in answer.message


def test_kubectl_takes_over_what_it_applied_client_side_and_keeps_its_annotation_current() -> None:
    note = {LAST_APPLIED: json.dumps(queue(weight=2))}
    live = queue(weight=2) | {"metadata": {"name": "q", "uid": "u", "annotations": note}}
    after = applied(live, queue(weight=3), "kubectl", T1)
    assert after["spec"]["weight"] == 3
    assert json.loads(after["metadata"]["annotations"][LAST_APPLIED]) == queue(weight=3)


def test_kubectl_does_not_take_over_what_somebody_changed_since() -> None:
    note = {LAST_APPLIED: json.dumps(queue(weight=2))}
    live = queue(weight=7) | {"metadata": {"name": "q", "uid": "u", "annotations": note}}
    assert refused(live, queue(weight=3), "kubectl").code == 409


def test_force_takes_the_field_from_its_owner() -> None:
    live = applied(applied(None, queue(weight=2, reclaimable=True)), queue(weight=3), "other", T1, force=True)
    assert live["spec"] == {"weight": 3, "reclaimable": True}
    assert owners(live) == {
        ("kubectl", "Apply"): {"f:spec": {"f:reclaimable": {}}},
        ("other", "Apply"): {"f:spec": {"f:weight": {}}},
    }


def test_a_field_goes_with_its_last_owner() -> None:
    both = applied(applied(None, queue(weight=2, reclaimable=True)), queue(weight=2), "other")
    one = applied(both, queue(reclaimable=True))
    assert one["spec"] == {"weight": 2, "reclaimable": True}  # the other one still applies it
    assert applied(one, queue(), "other")["spec"] == {"reclaimable": True}


def test_the_same_apply_again_changes_nothing_not_even_a_time() -> None:
    live = applied(None, queue(weight=2), now=T0)
    assert applied(live, queue(weight=2), now=T1) == live
    assert applied(live, queue(weight=3), now=T1)["metadata"]["managedFields"][0]["time"] == T1


def test_an_update_takes_fields_from_their_owners() -> None:
    live = applied(None, queue(weight=2, reclaimable=True))
    new = {**live, "spec": {**live["spec"], "weight": 9}}
    after = track_update(live, new, by_update("edit", VERSION), T1, QUEUE)
    assert owners(after) == {
        ("edit", "Update"): {"f:spec": {"f:weight": {}}},
        ("kubectl", "Apply"): {"f:spec": {"f:reclaimable": {}}},
    }


def test_objects_that_were_never_applied_keep_no_owners() -> None:
    after = track_update(queue(weight=1), queue(weight=2), by_update("edit", VERSION), T1, QUEUE)
    assert "managedFields" not in after["metadata"]


def test_an_update_can_take_the_owners_away() -> None:
    live = applied(None, queue(weight=2))
    new: dict[str, Any] = {**live, "metadata": {"name": "q", "managedFields": [{}]}}
    assert track_update(live, new, by_update("edit", VERSION), T1, QUEUE) == queue(weight=2)


def test_an_empty_list_takes_no_owners_away() -> None:
    """Kubernetes keeps them from clients that do not know of them."""
    live = applied(None, queue(weight=2))
    new: dict[str, Any] = {**live, "metadata": {"name": "q", "managedFields": []}}
    assert track_update(live, new, by_update("edit", VERSION), T1, QUEUE) == live


def test_a_status_apply_owns_only_the_status_and_says_so() -> None:
    live = applied(None, queue(weight=2))
    reset = resets("status", drops_status=True)
    config = queue(weight=2) | {"status": {"state": "Open"}}
    after = applied(live, config, "queue-controller", subresource="status", reset=reset)
    assert owners(after)["queue-controller", "Apply"] == {"f:status": {"f:state": {}}}
    entries = after["metadata"]["managedFields"]
    assert [each.get("subresource") for each in entries if each["manager"] == "queue-controller"] == ["status"]
    text = refused(after, config | {"status": {"state": "Closed"}}, subresource="status", reset=reset).message
    assert 'conflict with "queue-controller" with subresource "status": .status.state' in text


def test_a_main_apply_does_not_own_the_status() -> None:
    reset = resets("", drops_status=True)
    after = applied(None, queue(weight=2) | {"status": {"state": "Open"}}, reset=reset)
    assert owners(after) == {("kubectl", "Apply"): {"f:spec": {"f:weight": {}}}}


def test_the_eleventh_updater_makes_the_oldest_one_of_many() -> None:
    live = applied(None, queue(weight=0))
    for at in range(12):
        spec = {**live["spec"], f"key{at}": at}
        live = track_update(
            live, {**live, "spec": spec}, by_update(f"u{at:02d}", VERSION), f"2026-01-01T00:01:{at:02d}Z", QUEUE
        )
    names = [each["manager"] for each in live["metadata"]["managedFields"] if each["operation"] == "Update"]
    assert len(names) == 10
    assert names[0] == "ancient-changes"
    assert owners(live)["ancient-changes", "Update"]["f:spec"] == {"f:key0": {}, "f:key1": {}, "f:key2": {}}


def test_managed_fields_cannot_be_applied() -> None:
    answer = refused(None, queue() | {"metadata": {"name": "q", "managedFields": []}})
    assert (answer.code, answer.message) == (400, "metadata.managedFields must be nil")


@pytest.mark.parametrize(
    ("containers", "why"),
    [
        ([{"name": "a"}, {"name": "a"}], 'duplicate entries for key {"name":"a"}'),
        ([{"image": "x"}], "expected a map with the keys name"),
        (["a"], ".spec.containers[0]: expected object, got string"),
    ],
)
def test_a_list_that_is_not_one_of_its_sort_is_refused(containers: list[Any], why: str) -> None:
    config = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}
    answer = apply(None, config, Applicant("me", "v1"), T0, POD)
    assert isinstance(answer, Refused)
    assert answer.code == 400
    assert why in answer.message


def test_a_users_own_kind_merges_by_its_schema() -> None:
    port = {"type": "object", "properties": {"port": {"type": "integer"}, "note": {"type": "string"}}}
    listed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"], "items": port}
    tags = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    spec = {"type": "object", "properties": {"ports": listed, "tags": tags, "plain": {"type": "array", "items": port}}}
    shape = shape_of_schema({"type": "object", "properties": {"spec": spec}}, top=True)

    def config(**spec: Any) -> dict[str, Any]:
        return {"apiVersion": "x.dev/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec}

    one = apply(None, config(ports=[{"port": 1}], tags=["a"]), Applicant("one", "x.dev/v1"), T0, shape)
    two = apply(one, config(ports=[{"port": 2}], tags=["b"]), Applicant("two", "x.dev/v1"), T1, shape)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert not isinstance(two, Refused)
    assert two["spec"] == {"ports": [{"port": 1}, {"port": 2}], "tags": ["a", "b"]}
    plain = apply(two, config(plain=[{"port": 1}]), Applicant("one", "x.dev/v1"), T1, shape)
    assert not isinstance(plain, Refused)
    assert plain["spec"] == {"ports": [{"port": 2}], "tags": ["b"], "plain": [{"port": 1}]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "name"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "containers", "spec", "metadata", "labels", "status"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.sampled_from(["spec", "metadata", "status", "other"]), JSON, max_size=4),
    st.dictionaries(st.sampled_from(["spec", "metadata", "status", "other"]), JSON, max_size=4),
)
@example({"spec": {"containers": []}}, {})
def test_whatever_is_applied_is_answered(config: dict[str, Any], second: dict[str, Any]) -> None:
    who = Applicant("kubectl", "v1", force=True)
    got = apply(None, config, who, T0, POD)
    if isinstance(got, Refused):
        assert got.code == 400
        return
    again = apply(got, config, who, T1, POD)
    assert not isinstance(again, Refused)
    if "managedFields" in got["metadata"]:
        assert again == got
    else:  # an empty list owns nothing, and what nobody owns is before-first-apply's, as recorded.json has it
        assert without_managers(again) == got
        assert {name for name, _ in owners(again)} <= {"before-first-apply"}
    other = apply(got, second, Applicant("b", "v1"), T2, POD)
    assert isinstance(other, Refused) or isinstance(other["metadata"], dict)


def test_the_annotation_of_client_side_apply_belongs_to_it() -> None:
    """By it kubectl finds whose fields to move to itself; those that nobody stated must not be among them."""
    note = {LAST_APPLIED: json.dumps(queue(weight=2))}
    live = queue(weight=2, parent="root") | {"metadata": {"name": "q", "uid": "u", "annotations": note}}
    owned = {
        one["manager"]: one["fieldsV1"] for one in applied(live, queue(weight=2), "x")["metadata"]["managedFields"]
    }
    kept: dict[str, Any] = {"f:annotations": {f"f:{LAST_APPLIED}": {}}}
    assert owned["kubectl-client-side-apply"] == {"f:metadata": kept, "f:spec": {"f:weight": {}}}
    assert LAST_APPLIED not in json.dumps(owned["before-first-apply"])
    assert "f:parent" in owned["before-first-apply"]["f:spec"]
