"""What the status of a queue says is allocated: what its own jobs hold, and what those below it do."""

from __future__ import annotations

import pytest
from msgspec import structs

from pumice.core.cycle import close_session
from pumice.core.session.closing.queue_status import NO_ZEROS
from tests.core.devices.cards import vgpu_node
from tests.core.plugins.capacity.test_capacity_claims import claim, claiming
from tests.core.plugins.test_deviceshare import asks
from tests.core.plugins.world import configuration, open_world
from tests.kit import gang, node, queue


def test_what_is_held_in_a_queue_counts_in_all_above_it_up_to_the_root() -> None:
    tree = [queue("root"), queue("a", parent="root"), queue("b", parent="a"), queue("c", parent="b"), queue("other")]
    jobs = [
        *gang("deep", queue="c", pods=2, nodes=["n0", "n0"], phase="Running"),
        *gang("high", queue="a", pods=1, nodes=["n0"], phase="Running"),
    ]
    session = open_world(configuration(["gang"]), node("n0"), tree, jobs)
    held = {status.name: status.allocated.get("cpu", "0") for status in close_session(session).queues}
    assert held == {"root": "3", "a": "3", "b": "2", "c": "2", "other": "0"}


def test_resources_of_all_kinds_are_written_by_their_names_and_pods_by_their_number() -> None:
    jobs = gang("j", queue="q", pods=2, nodes=["n0", "n0"], phase="Running", gpus=3, extra={"vendor/fpga": "1"})
    session = open_world(configuration(["gang"]), node("n0", gpus=8), queue("q"), jobs)
    (status,) = close_session(session).queues
    assert status.allocated == {
        "cpu": "2", "memory": "2Gi", "pods": "2", "nvidia.com/gpu": "6", "vendor/fpga": "2",
    }  # fmt: skip


@pytest.mark.parametrize(("fix", "named"), [((), {"root", "q"}), ((NO_ZEROS,), set[str]())])
def test_resource_that_is_asked_for_with_nothing_is_named(fix: tuple[str, ...], named: set[str]) -> None:
    """Also in the queues above, but not where the pods wait."""
    jobs = gang("j", queue="q", pods=2, nodes=["n0", "n0"], phase="Running", extra={"vendor/fpga": "0"})
    waits = gang("w", queue="other", pods=1, extra={"vendor/fpga": "0"})
    queues = [queue("root"), queue("q"), queue("other")]
    session = open_world(configuration(["gang"], fix=fix), node("n0"), queues, jobs, waits)
    held = {status.name: status.allocated.get("vendor/fpga") for status in close_session(session).queues}
    assert {name: text for name, text in held.items() if text is not None} == dict.fromkeys(named, "0")


def test_what_the_devices_of_a_pod_amount_to_counts_in_place_of_what_it_asked_for() -> None:
    holder = asks(gang("j", queue="q", pods=1, nodes=["n0"], phase="Running"), vgpu_number=1, vgpu_memory=80)
    holder[1]["metadata"]["annotations"]["volcano.sh/vgpu-ids-new"] = "n0-0,NVIDIA,60,25:"
    config = configuration(["gang", {"name": "deviceshare", "arguments": {"deviceshare.VGPUEnable": True}}])
    session = open_world(config, vgpu_node("n0", [(9, 100, "NVIDIA-A100")]), queue("root"), queue("q"), holder)
    names = ("number", "memory", "cores")
    held = {
        each.name: [each.allocated[f"volcano.sh/vgpu-{name}"] for name in names]
        for each in close_session(session).queues
    }
    assert held == {"root": ["1", "60", "25"], "q": ["1", "60", "25"]}


GPU, NIC = "deviceclass/gpu.example.com", "deviceclass/nic.example.com"


def devices_of_queues(*, fix: tuple[str, ...] = ()) -> dict[str, dict[str, str]]:
    """Two queues below one, with two running gangs that share a claim, and a pod that waits for one of its own."""
    tree = [queue("root"), queue("a", parent="root"), queue("b", parent="a"), queue("c", parent="a")]
    claims = [claim("shared", count=3), claim("own", "nic.example.com", 2), claim("later"), claim("all", "fpga", 1)]
    claims[3]["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] = "All"
    jobs = [
        *claiming(gang("one", queue="b", pods=2, nodes=["n0", "n0"], phase="Running"), "shared", "own"),
        *claiming(gang("two", queue="c", pods=1, nodes=["n0"], phase="Running"), "shared", "all"),
        *claiming(gang("waiting", queue="c", pods=1), "later"),
    ]
    config = configuration(["gang"])
    config = structs.replace(config, pumice=structs.replace(config.pumice, fix=fix))
    session = open_world(config, node("n0"), tree, claims, jobs)
    return {
        status.name: {name: text for name, text in status.allocated.items() if name.startswith("deviceclass/")}
        for status in close_session(session).queues
    }


def test_devices_of_claims_count_once_a_queue_and_ancestor() -> None:
    all_there_is = {GPU: "3", NIC: "2"}
    assert devices_of_queues() == {"root": all_there_is, "a": all_there_is, "b": all_there_is, "c": {GPU: "3"}}


def test_devices_of_claims_under_earlier_rules_are_not_named() -> None:
    assert not any(devices_of_queues(fix=("queues-name-no-device-classes",)).values())


def test_generated_claim_counts_in_the_queue_by_the_pods_status() -> None:
    pods = gang("j", queue="q", pods=1, nodes=["n0"], phase="Running")
    pods[1]["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    pods[1]["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "j-0-gpu"}]
    session = open_world(configuration(["gang"]), node("n0"), queue("q"), claim("j-0-gpu", count=2), pods)
    (status,) = close_session(session).queues
    assert status.allocated[GPU] == "2"
