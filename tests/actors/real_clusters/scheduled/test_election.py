"""Who schedules where there are several: whoever holds the Lease, and never two."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest

from pumice.actors.errors import LeaseLostError, RemoteError
from pumice.actors.real_clusters.scheduled.election import LeaseElection
from pumice.actors.runtime.clock import RealClock
from pumice.storage.memory import MemoryJournal
from tests.actors.gateway.rig import Web
from tests.actors.real_clusters.mirror.rig import decided
from tests.actors.real_clusters.scheduled.rig import (
    QUICK,
    KilledError,
    ends_with,
    is_bound,
    scheduler,
    unscheduled,
    until,
    way_to,
)
from tests.kit.pods import pod

if TYPE_CHECKING:
    from pumice.actors.real_clusters.scheduled.client import ClusterClient

pytestmark = pytest.mark.anyio
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/volcano"


async def holder(web: Web) -> str:
    spec: dict[str, Any] = (await web.get(LEASE))["spec"]
    return str(spec["holderIdentity"])


@pytest.mark.slow
async def test_one_of_two_binds_and_the_other_takes_over_when_it_is_gone() -> None:
    first, second = MemoryJournal(), MemoryJournal()
    one, two = (replace(QUICK, identity=name) for name in ("one", "two"))
    async with unscheduled() as web, way_to(web) as way, way_to(web) as other:
        with ends_with(KilledError):
            async with scheduler(way, first, election=one):
                await web.system.submit([pod("a")])
                await until(web, "Pod", "a", is_bound)
                async with scheduler(other, second, election=two):
                    await web.system.submit([pod("b")])
                    await until(web, "Pod", "b", is_bound)
                    await anyio.sleep(0.3)
                    assert await holder(web) == "one"
                    assert await decided(second) == []
                raise KilledError
        async with scheduler(other, second, election=two):
            await web.system.submit([pod("c")])
            await until(web, "Pod", "c", is_bound)
            assert await holder(web) == "two"
            assert (await web.get(LEASE))["spec"]["leaseTransitions"] == 1
    assert [each.name for each in await decided(first)] == ["a", "b"]
    assert [each.name for each in await decided(second)] == ["c"]


@pytest.mark.slow
async def test_who_cannot_renew_it_ends() -> None:
    async with unscheduled() as web, way_to(web) as way:
        with ends_with(LeaseLostError):
            async with scheduler(way, election=QUICK):
                await web.system.submit([pod("a")])
                await until(web, "Pod", "a", is_bound)
                way.cut = True
                await anyio.sleep(5.0)


async def test_who_finds_another_one_holding_it_ends_immediately_and_binds_nothing_more() -> None:
    async with unscheduled() as web, way_to(web) as way:
        with ends_with(LeaseLostError):
            async with scheduler(way, election=QUICK):
                await web.system.submit([pod("a")])
                await until(web, "Pod", "a", is_bound)
                stolen = {"spec": {"holderIdentity": "thief"}}
                await web.send("PATCH", LEASE, stolen, 200, **{"content-type": "application/merge-patch+json"})
                await anyio.sleep(5.0)
        assert await holder(web) == "thief"


async def test_who_stops_in_order_gives_it_back() -> None:
    async with unscheduled() as web, way_to(web) as way:
        async with scheduler(way, election=QUICK):
            await web.system.submit([pod("a")])
            await until(web, "Pod", "a", is_bound)
        assert await holder(web) == ""


class SlowLeases:
    """One Lease, in place of a client's server: a write takes its place immediately and is answered `slow_s` later."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] = {}
        self.slow_s = 0.0

    async def get(self, path: str) -> dict[str, Any]:
        if not self.lease:
            raise RemoteError(f"{path} is not there", 404)
        return self.lease

    async def create(self, path: str, lease: dict[str, Any], until: float) -> dict[str, Any]:
        return self._written(lease, 1)

    async def replace(self, path: str, lease: dict[str, Any], until: float) -> dict[str, Any]:
        version = int(self.lease["metadata"]["resourceVersion"])
        if lease["metadata"]["resourceVersion"] != str(version):
            raise RemoteError("the object has been modified", 409)
        written = self._written(lease, version + 1)
        await anyio.sleep(self.slow_s)
        return written

    def _written(self, lease: dict[str, Any], version: int) -> dict[str, Any]:
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(version)}}
        return self.lease


@asynccontextmanager
async def renewing(slow_s: float) -> AsyncGenerator[tuple[SlowLeases, LeaseElection]]:
    """A Lease that is held, and a renewal of it under way that is answered so late."""
    server = SlowLeases()
    election = LeaseElection(cast("ClusterClient", server), replace(QUICK, retry_period_s=0.02), RealClock())
    await election.acquire()
    server.slow_s = slow_s
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(election.hold)
        await anyio.sleep(0.1)
        yield server, election
        tasks.cancel_scope.cancel()


async def test_it_is_given_back_after_the_renewal_under_way_and_not_taken_again() -> None:
    async with renewing(slow_s=0.2) as (server, election):
        await election.release()
        assert server.lease["spec"]["holderIdentity"] == ""
        await anyio.sleep(0.1)
        assert server.lease["spec"]["holderIdentity"] == ""


async def test_a_renewal_that_does_not_end_keeps_nobody_from_stopping() -> None:
    async with renewing(slow_s=60.0) as (_, election):
        with pytest.raises(RemoteError, match="does not end"), anyio.fail_after(5.0):
            await election.release()
