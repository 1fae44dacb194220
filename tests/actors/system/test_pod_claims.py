"""Pods with ephemeral volumes and with claims from templates, from their creation to their end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pumice.core.objects.metadata import Object
from tests.actors.rig import idle, placed, started, stored, three_nodes
from tests.kit import gang
from tests.kit.storage import claim_template, device_class, device_slice, storage_class, with_ephemeral, with_templates

pytestmark = pytest.mark.anyio


def each_with(objects: list[Object], change: Callable[[Object], Object]) -> list[Object]:
    return [change(obj) if obj["kind"] == "Pod" else obj for obj in objects]


async def test_ephemeral_volumes_are_claimed_bound_and_gone_with_the_pod() -> None:
    async with started() as system:
        await system.submit([*three_nodes(), storage_class("fast")])
        pods = gang("g", pods=2, duration="0")
        await system.submit(each_with(pods, lambda pod: with_ephemeral(pod, "scratch", cls="fast")))
        await idle(system)
        assert set(placed(system)) == {"g-0", "g-1"}
        claims = {claim["metadata"]["name"]: claim for claim in stored(system, "PersistentVolumeClaim")}
        assert set(claims) == {"g-0-scratch", "g-1-scratch"}
        assert {claim["status"]["phase"] for claim in claims.values()} == {"Bound"}


async def test_every_pod_gets_devices_of_its_own_and_gives_them_back() -> None:
    async with started() as system:
        await system.submit(
            [*three_nodes(), device_class(), device_slice("n0"), device_slice("n1"), claim_template("t")]
        )
        pods = gang("g", pods=2, duration="1ms")
        await system.submit(each_with(pods, lambda pod: with_templates(pod, "t")))
        await idle(system)
        assert set(placed(system).values()) == {"n0", "n1"}
        assert stored(system, "ResourceClaim") == [], "they went when the pods had ended"
        later = gang("h", pods=3, duration="0", min_member=1)
        await system.submit(each_with(later, lambda pod: with_templates(pod, "t")))
        await idle(system)
        names = [name for name in placed(system) if name.startswith("h-")]
        assert len(names) == 2, "there are two devices"
        used = [claim for claim in stored(system, "ResourceClaim") if claim.get("status", {}).get("allocation")]
        assert sorted(user["name"] for claim in used for user in claim["status"]["reservedFor"]) == sorted(names)
