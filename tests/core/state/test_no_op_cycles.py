"""A cycle is a no-op when all changes are the writes of the one before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pumice.core.messages.commands import CycleSaid
from pumice.core.messages.decisions import PodGroupStatus, QueueStatus
from pumice.core.objects.metadata import Object
from pumice.core.state.view import View
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue

if TYPE_CHECKING:
    from collections.abc import Sequence

RUNNING = pod_group("g", phase="Running")
ENDED = {**RUNNING, "status": {**RUNNING["status"], "phase": "Completed", "succeeded": 1}}
OTHER = pod_group("other", phase="Running")
FULL = {**queue("q"), "status": {**queue("q")["status"], "allocated": {"cpu": "1"}}}
SAID = CycleSaid((PodGroupStatus("default", "g", "Completed", succeeded=1),), (QueueStatus("q", {"cpu": "1"}),), True)


def seen(view: View, *objects: Object, event: str = "MODIFIED") -> View:
    for obj in objects:
        view.apply(event, obj)
    return view


def quiet() -> View:
    """A view of which all is known: two jobs that run, and a pod that waits for nobody."""
    view = seen(View(), node("n"), queue("q"), queue("default"), RUNNING, OTHER, event="ADDED")
    seen(view, pod("p", group="g", node="n", phase="Running"), event="ADDED")
    view.next_is_no_op(CycleSaid())
    return view


def test_nothing_but_what_was_said() -> None:
    view = seen(quiet(), ENDED, FULL)
    assert view.next_is_no_op(SAID)
    assert view.next_is_no_op(CycleSaid(alone=True)), "what was heard is over"


def test_a_new_view_does_not_know_what_has_come_before_it_though_it_be_empty() -> None:
    """It takes the place of one that was lost, and all may have gone meanwhile."""
    view = View()
    assert not view.next_is_no_op(CycleSaid(alone=True))
    assert view.next_is_no_op(CycleSaid(alone=True))


def test_what_a_queue_counts_is_nothing() -> None:
    counted = {**queue("q"), "status": {**queue("q")["status"], "running": 3}}
    assert seen(quiet(), counted).next_is_no_op(CycleSaid(alone=True))


def relabelled(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "labels": {"x": "y"}}}


@pytest.mark.parametrize(
    ("what", "news"),
    [
        ("only a part has come back", [ENDED]),
        ("only another part has", [FULL]),
        ("it was said otherwise", [{**ENDED, "status": {**ENDED["status"], "failed": 1}}, FULL]),
        ("somebody else wrote as well", [relabelled(ENDED), FULL]),
        ("a queue is closed", [ENDED, {**FULL, "status": {**FULL["status"], "state": "Closed"}}]),
        ("a queue is heavier", [ENDED, {**FULL, "spec": {**FULL["spec"], "weight": 7}}]),
        ("a pod", [ENDED, FULL, pod("p", group="g", node="n", phase="Succeeded")]),
        ("a node", [ENDED, FULL, node("n", cpu="7")]),
        ("another job", [ENDED, FULL, *gang("h", pods=1, nodes=["n"], phase="Running")]),
        ("a status that nobody said", [ENDED, FULL, {**OTHER, "status": {**OTHER["status"], "running": 1}}]),
        ("a job that nobody knew", [ENDED, FULL, {**RUNNING, "metadata": {**RUNNING["metadata"], "name": "h"}}]),
    ],
)
def test_what_else_there_may_be(what: str, news: Sequence[Object]) -> None:
    assert not seen(quiet(), *news).next_is_no_op(SAID), what


def test_a_job_that_goes() -> None:
    view = seen(quiet(), ENDED, FULL)
    assert not seen(view, ENDED, event="DELETED").next_is_no_op(SAID)


def test_what_is_in_flight() -> None:
    view = seen(quiet(), ENDED, FULL)
    view.evicting("default", "p")
    assert not view.next_is_no_op(SAID)


def test_a_cycle_that_did_something_is_followed_by_another() -> None:
    assert not seen(quiet(), ENDED, FULL).next_is_no_op(CycleSaid(SAID.pod_groups, SAID.queues))


@pytest.mark.parametrize("waits", [gang("w", pods=1), [pod_group("w", phase="Pending")], [pod("alone")]])
def test_who_waits(waits: list[Object]) -> None:
    view = seen(quiet(), *waits, event="ADDED")
    view.next_is_no_op(CycleSaid())
    assert not seen(view, ENDED, FULL).next_is_no_op(SAID)


@pytest.mark.parametrize("waits", [gang("w", pods=1), [pod_group("w", phase="Pending")]])
def test_words_about_queues_alone_though_jobs_wait(waits: list[Object]) -> None:
    view = seen(quiet(), *waits, event="ADDED")
    view.next_is_no_op(CycleSaid())
    assert seen(view, FULL).next_is_no_op(CycleSaid((), SAID.queues, alone=True))


def test_who_waited_and_went() -> None:
    view = seen(quiet(), pod("alone"), event="ADDED")
    seen(view, pod("alone"), event="DELETED").next_is_no_op(CycleSaid())
    assert seen(view, ENDED, FULL).next_is_no_op(SAID)
