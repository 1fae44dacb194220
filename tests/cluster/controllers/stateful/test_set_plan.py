"""The next step of a StatefulSet, whatever its pods are like."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.controllers.stateful import SetPlanner
from pumice.core.objects.metadata import Object
from tests.cluster.controllers.stateful.set_kit import stateful_set

STATES = ("absent", "waiting", "ready", "leaving", "failed")


def pod(number: int, state: str, revision: str) -> Object:
    meta: Object = {"name": f"w-{number}", "uid": str(number), "labels": {"controller-revision-hash": revision}}
    if state == "leaving":
        meta["deletionTimestamp"] = "2023-11-14T22:13:20Z"
    status: Object = {"phase": {"waiting": "Pending", "failed": "Failed"}.get(state, "Running")}
    if state == "ready":
        status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": "2023-11-14T22:13:20Z"}]
    return {"metadata": meta, "spec": {}, "status": status}


sets = st.lists(st.tuples(st.sampled_from(STATES), st.sampled_from(("old", "new"))), max_size=7)


def planned(pods: list[tuple[str, str]], replicas: int, management: str) -> tuple[SetPlanner, list[Object]]:
    owner = stateful_set(replicas, podManagementPolicy=management, updateStrategy={"type": "RollingUpdate"})
    made = [pod(number, *each) for number, each in enumerate(pods) if each[0] != "absent"]
    return SetPlanner(owner, made, "new", 1_800_000_000.0), made


@given(sets, st.integers(0, 6))
def test_in_order_one_thing_is_done_at_a_time(pods: list[tuple[str, str]], replicas: int) -> None:
    planner, made = planned(pods, replicas, "OrderedReady")
    plan = planner.plan()
    assert len(plan.new) + len(plan.remove) + len(plan.failed) <= 1
    there = {each["metadata"]["name"]: each for each in made}
    for number in plan.new:
        assert f"w-{number}" not in there
        assert all(pods[before][0] == "ready" for before in range(number)), "those before it are ready"


@given(sets, st.integers(0, 6), st.sampled_from(("OrderedReady", "Parallel")))
def test_nothing_is_left_to_do_only_where_all_is_as_wanted(
    pods: list[tuple[str, str]], replicas: int, management: str
) -> None:
    planner, made = planned(pods, replicas, management)
    plan = planner.plan()
    settled = not any(state in ("waiting", "leaving") for state, _ in pods)
    if settled and not (plan.new or plan.remove or plan.failed):
        assert [each["metadata"]["name"] for each in made] == [f"w-{number}" for number in range(replicas)]
        assert all(each["metadata"]["labels"]["controller-revision-hash"] == "new" for each in made)
    assert not [each for each in (*plan.remove, *plan.failed) if "deletionTimestamp" in each["metadata"]]
