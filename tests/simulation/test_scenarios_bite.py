"""Each scenario fails when the defect it is about is put in: else it would prove nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pumice.core.kube.storage import Storage, UnreadableVolumesError
from pumice.core.objects.metadata import section
from pumice.core.state.view import View
from tests.simulation import test_scenarios as scenarios
from tests.simulation.planted import BUGS
from tests.simulation.planting import Plant


def _bug(name: str) -> Plant:
    return BUGS[name].plant


def _forgets_with_an_update(patch: pytest.MonkeyPatch) -> None:
    """An update of a pod makes the view forget that its bind is on its way."""
    apply = View.apply

    def patched(self: View, event: str, obj: dict[str, Any]) -> None:
        if obj.get("kind") == "Pod":
            meta = section(obj, "metadata")
            self.forget(meta.get("namespace", ""), meta.get("name", ""))
        apply(self, event, obj)

    patch.setattr(View, "apply", patched)


def _keeps_the_old_group(patch: pytest.MonkeyPatch) -> None:
    """The view goes by the minMember that a PodGroup was created with."""
    apply = View.apply
    first: dict[str, int] = {}

    def patched(self: View, event: str, obj: dict[str, Any]) -> None:
        if obj.get("kind") == "PodGroup" and event != "DELETED":
            spec, uid = section(obj, "spec"), section(obj, "metadata").get("uid", "")
            obj = {**obj, "spec": {**spec, "minMember": first.setdefault(uid, spec.get("minMember", 1))}}
        apply(self, event, obj)

    patch.setattr(View, "apply", patched)


def _chokes_on_claims(patch: pytest.MonkeyPatch) -> None:
    """A claim nobody can use ends the action instead of the pod's own chances."""
    claim = Storage.claim

    def patched(self: Storage, namespace: str, name: str) -> Any:
        try:
            return claim(self, namespace, name)
        except UnreadableVolumesError as error:
            raise RuntimeError("no such claim") from error

    patch.setattr(Storage, "claim", patched)


NEVER_AGAIN = _bug("a failed bind is never looked at again")
CASES: list[tuple[Callable[[], None], Plant]] = [
    (scenarios.test_a_gang_that_grows_is_not_started_in_part, _keeps_the_old_group),
    (scenarios.test_a_failed_bind_is_tried_again_though_the_group_runs, NEVER_AGAIN),
    (
        scenarios.test_a_group_does_not_say_running_while_a_pod_of_it_is_pending,
        _bug("a group says Running while pods of it are pending"),
    ),
    (
        scenarios.test_one_failed_bind_does_not_lose_what_became_of_the_others,
        _bug("one failed bind loses the outcomes of others"),
    ),
    (scenarios.test_an_update_of_a_pod_on_its_way_keeps_its_room_taken, _forgets_with_an_update),
    (scenarios.test_one_bad_volume_blocks_nobody_else, _chokes_on_claims),
    (scenarios.test_a_pod_whose_bind_failed_is_scheduled_again, NEVER_AGAIN),
    (scenarios.test_a_pod_whose_bind_failed_goes_to_another_node_when_the_first_will_not_have_it, NEVER_AGAIN),
    (scenarios.test_a_pod_whose_node_vanished_under_its_bind_is_made_anew_and_goes_to_another_one, NEVER_AGAIN),
]


@pytest.mark.parametrize(("scenario", "plant"), CASES, ids=[case[0].__name__ for case in CASES])
def test_a_scenario_finds_its_defect(
    scenario: Callable[[], None], plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        scenario()


def test_no_scenario_is_left_out() -> None:
    there = {name for name in vars(scenarios) if name.startswith("test_")}
    assert there == {case[0].__name__ for case in CASES}
