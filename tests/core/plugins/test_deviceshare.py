"""deviceshare in whole cycles: refusals and their words, what binds carry, what comes back, dry runs."""

from __future__ import annotations

from typing import Any

import pytest

from config.errors import ConflictError, NotBuiltError
from config.load import parse_scheduler_config
from core.cycle import close_session, run_action
from core.session.session import Session
from tests.core.devices.cards import gpu_node, vgpu_node
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import gang, node, queue

A100 = "NVIDIA-A100"
Object = dict[str, Any]


def asks(objects: list[Object], **limits: int) -> list[Object]:
    """The gang with these limits, whose requests they are, too."""
    named = {f"volcano.sh/{name.replace('_', '-')}": str(value) for name, value in limits.items()}
    for pod in objects[1:]:
        (container,) = pod["spec"]["containers"]
        requests = {**container.get("resources", {}).get("requests", {}), **named}
        container["resources"] = {"requests": requests, "limits": named}
    return objects


def share(*parts: Any, beside: tuple[str, ...] = ("predicates",), action: str = "allocate", **switches: Any) -> Session:
    arguments = {f"deviceshare.{name}": value for name, value in switches.items()}
    tier: list[Any] = ["priority", "gang", *beside, {"name": "deviceshare", "arguments": arguments}]
    session = open_world(configuration(tier), queue("q"), *parts)
    run_action(session, action)
    return session


def told(session: Session) -> dict[str, dict[str, str]]:
    return {bind.name: bind.annotations for bind in session.binds}


def test_a_gang_shares_cards_and_its_binds_say_which() -> None:
    pods = asks(gang("j", queue="q", pods=3, phase="Inqueue"), gpu_memory=6)
    session = share(gpu_node("n0", cards=2, memory=24), pods, GPUSharingEnable=True)
    assert sorted(each["volcano.sh/gpu-index"] for each in told(session).values()) == ["0", "0", "1"]
    report = close_session(session).report
    assert set(report.pod_annotations) == {"default/j-0", "default/j-1", "default/j-2"}


def test_without_predicates_nobody_is_assigned_anything() -> None:
    pods = asks(gang("j", queue="q", pods=1, phase="Inqueue"), gpu_memory=6)
    session = share(gpu_node("n0", cards=2, memory=24), pods, beside=(), GPUSharingEnable=True)
    assert told(session) == {"j-0": {}}


def test_what_is_switched_off_does_not_count() -> None:
    pods = asks(gang("j", queue="q", pods=1, phase="Inqueue"), gpu_memory=13)
    cards = gpu_node("n0", cards=2, memory=24)
    assert told(share(cards, pods)) == {"j-0": {}}
    assert told(share(cards, pods, GPUSharingEnable=True)) == {}


def test_a_gang_that_does_not_fit_gives_its_cards_back() -> None:
    """The other one may have them, and nothing is written on the pods that lost theirs."""
    first = asks(gang("a", queue="q", pods=3, phase="Inqueue", created="2026-01-01T00:00:00Z"), vgpu_number=1)
    second = asks(gang("b", queue="q", pods=2, phase="Inqueue", created="2026-01-01T01:00:00Z"), vgpu_number=1)
    session = share(vgpu_node("n0", [(9, 100, A100)] * 2), first, second, VGPUEnable=True)
    assert set(told(session)) == {"b-0", "b-1"}
    report = close_session(session).report
    assert {pod: bool(said) for pod, said in report.pod_annotations.items() if pod[8] == "a"} in (
        {"default/a-0": False, "default/a-1": False},
        {},
    )
    assert report.pending["default/a-2"].message == "0/1 nodes are unavailable: 1 hami-vgpuDeviceSharing error."


def test_running_pods_hold_their_cards() -> None:
    running = asks(gang("r", queue="q", pods=1, nodes=["n0"], phase="Running"), vgpu_number=1, vgpu_memory=80)
    running[1]["metadata"]["annotations"]["volcano.sh/vgpu-ids-new"] = "n0-0,NVIDIA,80,0:"
    pods = asks(gang("j", queue="q", pods=1, phase="Inqueue"), vgpu_number=1, vgpu_memory=50)
    cards = vgpu_node("n0", [(9, 100, A100)])
    assert told(share(cards, pods, VGPUEnable=True))
    session = share(cards, running, pods, VGPUEnable=True)
    assert told(session) == {}
    (status,) = [each for each in close_session(session).queues if each.name == "q"]
    assert status.allocated["volcano.sh/vgpu-memory"] == "80"
    assert status.allocated["volcano.sh/vgpu-cores"] == "0"  # named by what the pod has


def test_the_scores_count_by_their_weight() -> None:
    pods = asks(gang("j", queue="q", pods=1, phase="Inqueue"), vgpu_number=1, vgpu_memory=25)
    arguments: Object = {"VGPUEnable": True, "SchedulePolicy": "binpack", "ScheduleWeight": 3}
    nodes = [vgpu_node("n0", [(9, 100, A100)]), vgpu_node("n1", [(9, 50, A100)]), node("n2")]
    session = share(*nodes, pods, action="backfill", **arguments)
    search = session.search_for(task_of(session, "j-0"))
    assert search.scoring.totals(session.nodes.arrival[:2]).tolist() == [75.0, 150.0]


def test_a_dry_run_counts_on_the_cards_of_its_victims() -> None:
    low = asks(gang("low", queue="q", pods=2, nodes=["n0", "n0"], phase="Running"), vgpu_number=1, vgpu_memory=60)
    for number, pod in enumerate(low[1:]):
        pod["metadata"]["annotations"] |= {
            "volcano.sh/vgpu-ids-new": f"n0-{number},NVIDIA,60,0:",
            "volcano.sh/bind-phase": "success",
        }
    pods = asks(gang("j", queue="q", pods=1, phase="Inqueue"), vgpu_number=1, vgpu_memory=90)
    session = share(vgpu_node("n0", [(9, 100, A100)] * 2), low, pods, action="backfill", VGPUEnable=True)
    preemptor, first, second = task_of(session, "j-0"), task_of(session, "low-0"), task_of(session, "low-1")
    points, state = session.points, dict[str, Any]()
    refusal = "device hamivgpu cannot fit task default/j-0 on node n0: hami-vgpuDeviceSharing error"
    assert points.simulate_predicate(state, preemptor, 0) == refusal
    for victim in (first, second):
        assert points.simulate_remove_task(state, preemptor, victim, 0) is None
        assert points.simulate_predicate(state, preemptor, 0) is None
    assert points.simulate_add_task(state, preemptor, first, 0) is None
    assert points.simulate_predicate(state, preemptor, 0) is None
    assert points.simulate_add_task(state, preemptor, second, 0) is None
    assert points.simulate_predicate(state, preemptor, 0) == refusal
    assert points.simulate_predicate({}, preemptor, 0) == refusal  # the session itself is as it was


def read(*lines: str) -> object:
    listed = "".join(f"      deviceshare.{line}\n" for line in lines)
    text = f"actions: allocate\ntiers:\n- plugins:\n  - name: deviceshare\n    arguments:\n{listed}"
    return parse_scheduler_config(text, source="conf")


def test_what_volcano_does_not_start_with_is_refused_by_name() -> None:
    read("GPUSharingEnable: true", "VGPUEnable: false")
    with pytest.raises(ConflictError, match=r"arguments: .*GPUSharingEnable and deviceshare.VGPUEnable: leave one"):
        read("GPUSharingEnable: true", "VGPUEnable: true")


def test_what_is_not_built_is_refused_by_name() -> None:
    read("AscendHAMiVNPUEnable: false")
    with pytest.raises(NotBuiltError, match=r"'deviceshare\.AscendHAMiVNPUEnable' is Volcano's but not supported yet"):
        read("AscendHAMiVNPUEnable: true")
