"""pdb: budgets are not overdrawn."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.config.arguments import PluginArguments
from pumice.core.objects.metadata import Object
from pumice.core.objects.pod import Task
from pumice.core.plugins.pdb import Budget, Pdb
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, evictable, names, open_world, task_of
from tests.kit import gang, node, queue


def budget(
    name: str, allowed: int, selector: Any, *, namespace: str = "default", disrupted: tuple[str, ...] = ()
) -> Object:
    status: Object = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")}
    metadata = {"name": name, "namespace": namespace}
    spec = {"selector": selector}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


APP = {"matchLabels": {"app": "x"}}


def world(*budgets: Object, labels: dict[str, str] | None = None, fix: tuple[str, ...] = ()) -> Session:
    marks = {"app": "x"} if labels is None else labels
    members = gang("old", queue="q", pods=3, nodes=["n"] * 3, phase="Running", labels=marks)
    return open_world(
        configuration(["pdb"], fix=fix), node("n"), queue("q"), members, gang("new", queue="q", pods=1), *budgets
    )


def left(session: Session, point: str = "Preemptable") -> list[str]:
    return evictable(session, point, task_of(session, "new-0"), "old-0", "old-1", "old-2")


@pytest.mark.parametrize("point", ["Preemptable", "Reclaimable"])
@pytest.mark.parametrize("allowed", [0, 1, 2, 3])
def test_as_many_as_the_budget_allows_in_the_order_given(point: str, allowed: int) -> None:
    assert left(world(budget("b", allowed, APP)), point) == ["old-0", "old-1", "old-2"][:allowed]


def test_every_question_starts_with_the_whole_budget() -> None:
    session = world(budget("b", 1, APP))
    assert left(session) == left(session) == ["old-0"]


def test_all_budgets_of_a_pod_count() -> None:
    has_app = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    assert left(world(budget("wide", 3, APP), budget("tight", 1, has_app))) == ["old-0"]


@pytest.mark.parametrize(
    "selector", [None, {}, {"matchLabels": {}}, {"matchLabels": {"app": "y"}}, {"matchLabels": {"app": "/"}}]
)
def test_a_budget_that_selects_nobody_protects_nobody(selector: Any) -> None:
    assert left(world(budget("b", 0, selector))) == ["old-0", "old-1", "old-2"]


def test_a_budget_of_another_namespace_does_not_count() -> None:
    assert left(world(budget("b", 0, APP, namespace="other"))) == ["old-0", "old-1", "old-2"]


def test_a_pod_that_the_api_counts_as_disrupted_already_draws_on_nothing() -> None:
    assert left(world(budget("b", 1, APP, disrupted=("old-0",)))) == ["old-0", "old-1"]


def test_pods_without_labels_are_never_victims() -> None:
    assert left(world(labels={})) == []


def test_shuffle_is_told_of_all_that_the_budgets_leave() -> None:
    session = world(budget("b", 2, APP))
    tasks = [task_of(session, f"old-{i}") for i in range(3)]
    assert names(session.points.victim_tasks(tasks)) == ["old-0", "old-1"]


@pytest.mark.parametrize(("fix", "names"), [((), []), (("pdb-unlabelled-pods",), ["old-0", "old-1", "old-2"])])
def test_pods_without_labels(fix: tuple[str, ...], names: list[str]) -> None:
    assert left(world(budget("b", 0, APP), labels={}, fix=fix)) == names


@pytest.mark.parametrize(("fix", "names"), [((), ["old-0"]), (("pdb-leaves-shuffle-alone",), [])])
def test_what_shuffle_hears(fix: tuple[str, ...], names: list[str]) -> None:
    session = world(budget("b", 1, APP), fix=fix)
    tasks = [task_of(session, f"old-{i}") for i in range(3)]
    found = [victim.name for ask in session.points.victim_tasks.rules for each in ask for victim in each(tasks)]
    assert found == names
    assert left(session) == ["old-0"]


def test_a_session_that_goes_on_matches_pods_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    session, plugin = world(budget("b", 1, APP)), Pdb(PluginArguments())
    plugin.on_session_open(session)
    tasks = [task_of(session, "old-0"), task_of(session, "old-1")]
    assert plugin.within_budget(tasks) == tasks[:1]

    def matches_none(_self: Budget, _task: Task) -> bool:
        return False

    monkeypatch.setattr(Budget, "is_drawn_on", matches_none)  # as if other pods had these rows
    assert plugin.within_budget(tasks) == tasks[:1]
    assert plugin.can_go_on(session)
    plugin.on_session_renew(session)
    assert plugin.within_budget(tasks) == tasks
