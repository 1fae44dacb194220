"""No device goes to two claims, whatever the scheduler knew when it decided."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import pytest

from pumice.actors.effects.pre_bind_worker import CONFLICTS
from pumice.cluster.kernel.pre_bind import Device, has_device
from pumice.core.messages.commands import BindPod, Update
from pumice.core.messages.decisions import Bind, ClaimedDevices
from pumice.core.messages.events import BindRefused, Bound
from pumice.core.objects.metadata import Object
from tests.actors.effects.test_waiting_binds import Api, bind, outcomes
from tests.kit.pods import pod
from tests.kit.storage import claim

GPU = ("r", "gpu.example.com", "n0", "gpu0")
DEVICE: Device = ("gpu.example.com", "n0", "gpu0")


def resource_claim(name: str) -> Object:
    return {"kind": "ResourceClaim", "metadata": {"namespace": "default", "name": name}, "spec": {}}


def with_gpu(name: str, whose: str) -> Bind:
    return bind(name, devices=(ClaimedDevices(f"default/{whose}", (GPU,)),))


class Noting(Api):
    """Notes until when each update may be carried out."""

    def answer(self, request: Any) -> Any:
        if isinstance(request, Update):
            self.__dict__.setdefault("untils", []).append(request.until)
        return super().answer(request)


def api() -> Noting:
    return Noting(pod("p", uid="p"), pod("q", uid="q"), resource_claim("c"), resource_claim("d"))


@pytest.mark.anyio
async def test_a_device_that_another_claim_has_is_not_given_away() -> None:
    """The one before had it though its pod was over, which the scheduler took for its end."""
    cluster = api()
    async with outcomes(cluster, (with_gpu("p", "c"), with_gpu("q", "d"))) as told:
        await told.outcome(1)
    by_name = {each.name: each for each in told.outcomes}
    refused = by_name["q"]
    assert isinstance(by_name["p"], Bound)
    assert isinstance(refused, BindRefused)
    assert refused.message == 'device "gpu.example.com/n0/gpu0" was taken by claim "default/c"'
    assert "status" not in cluster.objects["ResourceClaim", "default", "d"]


class Releasing(Api):
    """Gives the device of claim c back once its pod is bound: the claim is there without one, or `gone`."""

    gone = False

    def answer(self, request: Any) -> Any:
        if isinstance(request, BindPod) and request.name == "p":
            place = ("ResourceClaim", "default", "c")
            self.objects.pop(place, None)
            if not self.gone:
                self.objects[place] = resource_claim("c")
        return super().answer(request)


@pytest.mark.anyio
@pytest.mark.parametrize("gone", [False, True])
async def test_a_device_that_was_given_back_can_be_had(gone: bool) -> None:
    waits = bind("w", provisions=("default/else",))
    cluster = Releasing(*api().objects.values(), pod("w", uid="w"), claim("else"))
    cluster.gone = gone
    async with outcomes(cluster, (waits, with_gpu("p", "c")), (with_gpu("q", "d"),)) as told:
        await told.outcome(1)
    assert {each.name: type(each) for each in told.outcomes} == {"p": Bound, "q": Bound}
    assert has_device(cluster.objects["ResourceClaim", "default", "d"], DEVICE)


@pytest.mark.anyio
async def test_what_is_written_has_its_time_and_what_is_taken_back_has_all_time() -> None:
    cluster = api()
    async with outcomes(cluster, (with_gpu("gone", "c"),)) as told:
        assert isinstance(await told.outcome(0), BindRefused)
    written, taken_back = cluster.__dict__["untils"]
    assert written < float("inf") == taken_back


@pytest.mark.anyio
@pytest.mark.parametrize("conflicts", range(CONFLICTS + 1))
async def test_a_claim_that_somebody_wrote_meanwhile_is_read_and_written_again(conflicts: int) -> None:
    """Until others write it all the time: then the bind is refused, and nobody has the device."""
    cluster = api()
    cluster.refusals = repeat(409, conflicts)
    async with outcomes(cluster, (with_gpu("p", "c"),)) as told:
        outcome = await told.outcome(0)
    written = cluster.objects["ResourceClaim", "default", "c"]
    assert (isinstance(outcome, Bound), has_device(written, DEVICE)) == (conflicts < CONFLICTS,) * 2
    if isinstance(outcome, BindRefused):
        assert outcome.message == "ResourceClaim default c is written by others all the time"


@pytest.mark.anyio
async def test_a_claim_that_may_not_be_written_is_not_tried_again() -> None:
    cluster = api()
    cluster.refusals = iter([403])
    async with outcomes(cluster, (with_gpu("p", "c"),)) as told:
        outcome = await told.outcome(0)
    assert isinstance(outcome, BindRefused)
    assert outcome.message == "planted"
    assert not has_device(cluster.objects["ResourceClaim", "default", "c"], DEVICE)


WITHOUT: list[Object | None] = [None, {}, {"status": None}, {"status": {"allocation": {"devices": {"results": None}}}}]


@pytest.mark.parametrize("found", WITHOUT)
def test_a_claim_without_devices_has_none(found: Object | None) -> None:
    assert not has_device(found, DEVICE)
