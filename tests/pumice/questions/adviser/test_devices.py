"""What jobs wait for that ask for shares of cards."""

from __future__ import annotations

import pytest

from pumice.core.session.reasons import Code, Reason
from pumice.questions.adviser.reasons import WaitCode
from pumice.questions.adviser.waiting_jobs import waiting_jobs_of
from tests.core.devices.cards import vgpu_node
from tests.core.devices.test_hami import npu_node
from tests.core.plugins.test_deviceshare import asks
from tests.kit.jobs import gang
from tests.pumice.questions.adviser.test_reasons import LOCKS, job_of, runs, scene


@pytest.mark.parametrize(
    ("asked", "reason"),
    [(70, WaitCode.FREE_IN_PIECES), (100, WaitCode.FREE_IN_PIECES), (101, WaitCode.LARGER_THAN_ANY_NODE)],
)
def test_a_pod_that_no_card_could_hold_waits_for_other_nodes_and_not_for_pods_to_move(
    asked: int, reason: WaitCode
) -> None:
    """80 MiB are left of two cards of 100, 40 of each."""
    there = vgpu_node("n0", [(9, 100, "NVIDIA-A100")] * 2)
    held = [asks(runs(f"r{card}", "n0"), vgpu_number=1, vgpu_memory=60) for card in range(2)]
    for card, objects in enumerate(held):
        objects[1]["metadata"]["annotations"]["volcano.sh/vgpu-ids-new"] = f"n0-{card},NVIDIA,60,0:"
    waits = asks(gang("g", pods=1, phase="Inqueue"), vgpu_number=1, vgpu_memory=asked)
    found = job_of(waiting_jobs_of(scene(there, *held[0], *held[1], *waits, config=LOCKS)))
    assert found is not None
    assert found.wait.code is reason


@pytest.mark.parametrize(("chips", "reason"), [(1, WaitCode.FREE_IN_PIECES), (2, WaitCode.NO_NODE_ALLOWED)])
def test_chips_that_others_have_are_no_matter_of_what_a_node_is(chips: int, reason: WaitCode) -> None:
    """HAMi says an error, whether a node has too few chips or others have them."""
    held, waits = runs("r", "n0"), gang("g", pods=1, phase="Inqueue")
    held[1]["metadata"]["annotations"]["hami.io/Ascend310P-devices-allocated"] = "n0-0,Ascend310P,21527,0:;"
    for each, number in ((held[1], 1), (waits[1], chips)):
        wanted = {"huawei.com/Ascend310P": str(number)}
        each["spec"]["containers"][0]["resources"] = {"limits": wanted, "requests": wanted}
    there = npu_node("n0", {"devmem": 21527}, word="Ascend310P")
    found = job_of(waiting_jobs_of(scene(there, *held, *waits, config=LOCKS.replace("VGPU", "AscendHAMiVNPU"))))
    assert found is not None
    assert found.wait.code is reason


def test_who_refuses_without_a_word_is_named() -> None:
    assert Reason("deviceshare", Code.ERROR, "").words == "deviceshare gives no reason"
    assert Reason("deviceshare", Code.ERROR, "no chip").words == "no chip"
