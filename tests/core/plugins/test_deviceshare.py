"""deviceshare in whole cycles: refusals and their words, what binds carry, what comes back, dry runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pumice.config.errors import ConflictError
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import close_session, run_action
from pumice.core.devices.family import Around, DeviceError, Family
from pumice.core.objects.metadata import Object, parse_time
from pumice.core.plugins import FAMILIES
from pumice.core.plugins.device_plugin import DeviceCodes, DeviceScores
from pumice.core.resources import Resource
from pumice.core.session.session import Session
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules
from tests.core.devices.cards import asking, chip_node, gpu_node, vgpu_node, virtual
from tests.core.devices.test_hami import npu_node
from tests.core.devices.test_mindcluster import report
from tests.core.plugins.world import configuration, job_of, open_world, task_of
from tests.kit import gang, node, queue

if TYPE_CHECKING:
    from collections.abc import Sequence

A100 = "NVIDIA-A100"


def asks(objects: list[Object], **limits: int) -> list[Object]:
    """The gang with these limits, whose requests they are, too."""
    named = {f"volcano.sh/{name.replace('_', '-')}": str(value) for name, value in limits.items()}
    for pod in objects[1:]:
        (container,) = pod["spec"]["containers"]
        requests = {**container.get("resources", {}).get("requests", {}), **named}
        container["resources"] = {"requests": requests, "limits": named}
    return objects


def share(
    *parts: Any,
    beside: tuple[str, ...] = ("predicates",),
    action: str = "allocate",
    configurations: Sequence[Object] = (),
    fix: Sequence[str] = (),
    **switches: Any,
) -> Session:
    arguments = {f"deviceshare.{name}": value for name, value in switches.items()}
    tier: list[Any] = ["priority", "gang", *beside, {"name": "deviceshare", "arguments": arguments}]
    config = configuration(tier, configurations=configurations, fix=fix)
    session = open_world(config, queue("q"), *parts)
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


@pytest.mark.parametrize("fix", [[], ["terminating-pods-keep-cards"]])
def test_the_card_of_a_pod_that_is_being_deleted_is_given_away_unless_mended(fix: list[str]) -> None:
    going = asks(gang("a", queue="q", pods=1, nodes=["n0"], phase="Running"), vgpu_number=1, vgpu_memory=80)
    going[1]["metadata"]["annotations"]["volcano.sh/vgpu-ids-new"] = "n0-0,NVIDIA,80,0:"
    going[1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    coming = asks(gang("b", queue="q", pods=1, phase="Inqueue"), vgpu_number=1, vgpu_memory=50)
    session = share(vgpu_node("n0", [(9, 100, A100)]), going, coming, fix=fix, VGPUEnable=True)
    assert list(told(session)) == ([] if fix else ["b-0"])


def test_the_scores_count_by_their_weight() -> None:
    pods = asks(gang("j", queue="q", pods=1, phase="Inqueue"), vgpu_number=1, vgpu_memory=25)
    arguments: Object = {"VGPUEnable": True, "SchedulePolicy": "binpack", "ScheduleWeight": 3}
    nodes = [vgpu_node("n0", [(9, 100, A100)]), vgpu_node("n1", [(9, 50, A100)]), node("n2")]
    session = share(*nodes, pods, action="backfill", **arguments)
    search = session.search_for(task_of(session, "j-0"))
    assert search.scoring.totals(session.nodes.arrival[:2]).tolist() == [75.0, 150.0]


def test_a_node_alone_scores_as_among_others_and_an_extender_is_told() -> None:
    """`shows_devices`: a process outside is asked, too."""
    cards = [vgpu_node("n0", [(9, 100, A100)]), vgpu_node("n1", [(9, 50, A100)])]
    family, task = virtual(*cards, policy="binpack"), asking("a", {"vgpu_number": 1, "vgpu_memory": 25})
    score = DeviceScores([family], task, 3)
    assert [score.one(0), score.one(1)] == score(slice(None)).tolist() == [75.0, 150.0]
    session = share(*cards)
    session.points.shows_devices = True
    assert DeviceCodes("deviceshare", session, [family], task).one(1) == 0
    idle: dict[int, dict[str, float]] = {0: {}, 1: {}}
    told = [family.encoded(row, Around(str, idle.__getitem__)) for row in idle]
    assert [each and each["Score"] for each in told] == [0.0, 50.0]


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


def npu_gang(name: str, limits: dict[str, str], *, pods: int = 1, labels: dict[str, str] | None = None) -> list[Object]:
    objects = gang(name, queue="q", pods=pods, phase="Inqueue")
    for pod in objects[1:]:
        pod["metadata"].setdefault("labels", {}).update(labels or {})
        pod["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": limits}
    return objects


def test_the_memory_of_npus_is_no_resource_of_nodes() -> None:
    """Nodes do not name it, pods ask for it, and HAMi alone knows how much of it there is."""
    limits = {"huawei.com/Ascend310P": "1", "huawei.com/Ascend310P-memory": "12288"}
    two, three = npu_gang("j", limits, pods=2), npu_gang("j", limits, pods=3)
    two[0]["spec"]["minResources"] = {"huawei.com/Ascend310P-memory": "36864"}
    chips = npu_node("n0", {"devmem": 21527}, {"devmem": 21527}, word="Ascend310P")
    both: Object = {"AscendHAMiVNPUEnable": True, "SchedulePolicy": "binpack"}
    session = share(chips, two, **both)
    assert task_of(session, "j-0").template.request.scalars == {"huawei.com/Ascend310P": 1000.0, "pods": 1.0}
    assert job_of(session, "j").pod_group.min_resources == Resource()
    said = {name: notes["hami.io/Ascend310P-devices-allocated"] for name, notes in told(session).items()}
    assert said == {"j-0": "n0-0,Ascend310P,12288,0:;", "j-1": "n0-1,Ascend310P,12288,0:;"}
    third = share(chips, three, **both)
    assert told(third) == {}
    why = close_session(third).report.pending["default/j-2"].message
    assert why == "0/1 nodes are unavailable: 1 no ascend device available."
    assert told(share(chips, two)) == {}  # without HAMi it counts like any other


def test_the_memory_of_npus_that_come_later_is_no_resource_either() -> None:
    view = View()
    config = configuration([{"name": "deviceshare", "arguments": {"deviceshare.AscendHAMiVNPUEnable": True}}])
    view.snapshot(volume_rules(config))
    limits = {"huawei.com/Ascend310P": "1", "huawei.com/Ascend310P-memory": "12288"}
    for obj in (*npu_gang("j", limits), npu_node("n0", {}, {}, word="Ascend310P")):
        view.apply("ADDED", obj)
    scalars = view.tasks.by_key["default/j-0"].template.request.scalars
    assert scalars == {"huawei.com/Ascend310P": 1000.0, "pods": 1.0}


@pytest.mark.parametrize(
    ("said", "by_nodes"), [(None, False), (True, False), ("true", False), (False, True), ("false", True), ("no", True)]
)
def test_npus_are_read_from_the_nodes_own_reports_where_clusterd_is_said_not_to_gather_them(
    said: object, by_nodes: bool
) -> None:
    reports = [each | {"kind": "ConfigMap", "apiVersion": "v1"} for each in report("n0").values()]
    labels = {"ring-controller.atlas": "ascend-310P", "vnpu-level": "high"}
    pods = npu_gang("j", {"huawei.com/npu-core": "4"}, labels=labels)
    where = {"name": "init-params", "arguments": {} if said is None else {"useClusterInfoManager": said}}
    on: Object = {"AscendMindClusterVNPUEnable": True}
    session = share(chip_node("n0"), *reports, pods, configurations=[where], **on)
    assert bool(told(session)) is by_nodes


def test_cores_of_mindcluster_are_had_and_every_pod_is_scored() -> None:
    labels = {"ring-controller.atlas": "ascend-310P", "vnpu-level": "high"}
    on: Object = {"AscendMindClusterVNPUEnable": True, "ScheduleWeight": 2}
    nodes = [chip_node("n0", chips=4), chip_node("n1"), node("n2")]
    reports = [each for name, chips in (("n0", 4), ("n1", 2)) for each in report(name, chips).values()]
    for each in reports:
        each |= {"kind": "ConfigMap", "apiVersion": "v1"}
    pods = npu_gang("j", {"huawei.com/npu-core": "4"}, labels=labels)
    by_nodes = {"name": "init-params", "arguments": {"useClusterInfoManager": "false"}}
    session = share(*nodes, *reports, pods, configurations=[by_nodes], **on)
    assert {name: notes["huawei.com/npu-core"] for name, notes in told(session).items()} == {"j-0": "0-vir04"}
    assert [bind.node for bind in session.binds] == ["n1"]
    search = session.search_for(task_of(session, "j-0"))
    assert search.scoring.totals(np.arange(3)).tolist() == [0.0, 16.0, 0.0]
    other = share(*nodes, *reports, npu_gang("k", {"cpu": "1"}), action="backfill", configurations=[by_nodes], **on)
    assert other.search_for(task_of(other, "k-0")).scoring.totals(np.arange(3)).tolist() == [0.0, 16.0, 0.0]


def read(*lines: str) -> object:
    listed = "".join(f"      deviceshare.{line}\n" for line in lines)
    text = f"actions: allocate\ntiers:\n- plugins:\n  - name: deviceshare\n    arguments:\n{listed}"
    return parse_scheduler_config(text, source="conf")


def test_what_volcano_does_not_start_with_is_refused_by_name() -> None:
    read("GPUSharingEnable: true", "VGPUEnable: false")
    with pytest.raises(ConflictError, match=r"arguments: .*GPUSharingEnable and deviceshare.VGPUEnable: leave one"):
        read("GPUSharingEnable: true", "VGPUEnable: true")


def locked(session: Session) -> dict[str, tuple[tuple[str, str], ...]]:
    return {bind.name: bind.pre_bind.locks for bind in session.binds if bind.pre_bind is not None}


@pytest.mark.parametrize(
    ("switch", "lock", "limits", "words"),
    [
        ("VGPUEnable", "hamivgpu", {"vgpu_number": 1, "vgpu_memory": 5}, "locked for j-1 hamivgpu lockname"),
        ("GPUSharingEnable", "gpu", {"gpu_memory": 5}, "locked for lockname gpushare"),
    ],
)
def test_a_pod_with_devices_locks_its_node_for_five_minutes(
    switch: str, lock: str, limits: dict[str, int], words: str
) -> None:
    cards = vgpu_node("n0", [(9, 100, A100)])
    for part in ("allocatable", "capacity"):
        cards["status"][part] |= {"volcano.sh/gpu-memory": "100", "volcano.sh/gpu-number": "1"}
    pods = asks(gang("j", queue="q", pods=2, min_member=1, phase="Inqueue"), **limits)
    on: Object = {switch: True, "NodeLockEnable": True}
    session = share(cards, pods, **on)
    assert locked(session) == {"j-0": ((lock, "2026-01-01T12:00:00Z"),)}
    assert close_session(session).wake_at is None  # the next session finds that lock
    held = node("n0", annotations={lock: "2026-01-01T11:55:01Z"})["metadata"]["annotations"]
    cards["metadata"]["annotations"] |= held
    waiting = share(cards, pods, **on)
    assert locked(waiting) == {}
    assert close_session(waiting).wake_at == parse_time("2026-01-01T12:00:01Z")
    other = share(cards, pods, action="backfill", **on)
    with pytest.raises(DeviceError, match=f"node n0 {words} node n0 has been locked within 5 minutes"):
        other.devices[0].assign(0, task_of(other, "j-1"), {}, 0.0)
    cards["metadata"]["annotations"] |= {lock: "2026-01-01T11:54:59Z"}
    assert list(locked(share(cards, pods, **on))) == ["j-0"]
    cards["metadata"]["annotations"] |= {lock: "yesterday"}
    assert locked(share(cards, pods, **on)) == {}


def test_a_gang_that_one_node_cannot_have_wakes_nobody() -> None:
    """Its own lock is in its way whenever it is tried, and gone when it is given up."""
    pods = asks(gang("j", queue="q", pods=2, min_member=2, phase="Inqueue"), vgpu_number=1, vgpu_memory=5)
    session = share(vgpu_node("n0", [(9, 100, A100)]), pods, VGPUEnable=True, NodeLockEnable=True)
    assert locked(session) == {}
    assert close_session(session).wake_at is None


def test_locks_of_hami_are_set_and_taken_away_in_one_breath() -> None:
    on: Object = {"AscendHAMiVNPUEnable": True, "NodeLockEnable": True}
    pods = npu_gang("j", {"huawei.com/Ascend310P": "1"}, pods=2)
    chips = npu_node("n0", {"devmem": 21527}, {"devmem": 21527}, word="Ascend310P")
    assert locked(share(chips, pods, **on)) == {"j-0": (), "j-1": ()}
    chips["metadata"]["annotations"]["Ascend310P"] = "2026-01-01T11:59:00Z"
    assert locked(share(chips, pods, **on)) == {}


def test_hami_lock_key_fix_locks_until_the_device_plugin_unlocks() -> None:
    on: Object = {"AscendHAMiVNPUEnable": True, "NodeLockEnable": True, "fix": ["hami-lock-key"]}
    pods = npu_gang("j", {"huawei.com/Ascend310P": "1"}, pods=2)
    pods[0]["spec"]["minMember"] = 1
    chips = npu_node("n0", {"devmem": 21527}, {"devmem": 21527}, word="Ascend310P")
    assert locked(share(chips, pods, **on)) == {"j-0": (("hami.io/mutex.lock", "2026-01-01T12:00:00Z"),)}
    chips["metadata"]["annotations"]["hami.io/mutex.lock"] = "2026-01-01T11:59:00Z"
    assert locked(share(chips, pods, **on)) == {}


@pytest.mark.parametrize("family", FAMILIES)
def test_family_with_devices_of_its_pods_says_so(family: type[Family]) -> None:
    assert family.owns is (family.owned is not Family.owned)
