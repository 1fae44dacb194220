"""CSI volume limits and device claims against the obvious ones, node by node."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.kube.placed import placed_pods
from pumice.core.objects.metadata import Object
from pumice.core.plugins.predicates.dynamic_resources import DynamicResources
from pumice.core.plugins.predicates.volume_limits import VolumeLimits
from tests.core.kube.sessions import opened, put, take, task_named, texts
from tests.core.kube.stores import pod_using
from tests.kit import node

Volume = tuple[str, str]
DRIVERS, HANDLES, NODES = ["d0", "d1"], ["h0", "h1", "h2"], ["n0", "n1", "n2"]
FULL = "node(s) exceed max volume count"

# --- volumes

csi_volumes = st.tuples(st.sampled_from(DRIVERS), st.sampled_from(HANDLES))
uses = st.lists(st.integers(0, 4), max_size=3, unique=True)  # claims of a pod


def volume_objects(volumes: list[Volume]) -> list[Object]:
    """A volume and a bound claim for each: c0, c1, ..."""
    found: list[Object] = []
    for i, (driver, handle) in enumerate(volumes):
        spec = {"csi": {"driver": driver, "volumeHandle": handle}}
        found.append({"kind": "PersistentVolume", "metadata": {"name": f"v{i}"}, "spec": spec})
        meta = {"name": f"c{i}", "namespace": "a"}
        found.append({"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": f"v{i}"}})
    return found


def csi_node(name: str, limits: dict[str, int]) -> Object:
    drivers = [{"name": driver, "allocatable": {"count": most}} for driver, most in limits.items()]
    return {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}


def attachment(number: int, where: str, volume: int, driver: str) -> Object:
    spec = {"attacher": driver, "nodeName": where, "source": {"persistentVolumeName": f"v{volume}"}}
    return {"kind": "VolumeAttachment", "metadata": {"name": f"a{number}"}, "spec": spec}


def plain_limits(wanted: set[Volume], used: set[Volume], attached: set[Volume], limits: dict[str, int]) -> str:
    """CSILimits.Filter for one node: what its pods use, and what is attached to it besides."""
    new = wanted - used
    for driver, most in limits.items():
        coming = sum(volume[0] == driver for volume in new)
        there = sum(volume[0] == driver for volume in used | attached)
        if coming and there + coming > most:
            return FULL
    return ""


@settings(max_examples=200)
@given(
    volumes=st.lists(csi_volumes, min_size=5, max_size=5),
    limits=st.lists(st.dictionaries(st.sampled_from(DRIVERS), st.integers(0, 3)), min_size=3, max_size=3),
    attached=st.lists(st.tuples(st.sampled_from(NODES), st.integers(0, 4)), max_size=4),
    pods=st.lists(uses, min_size=4, max_size=4),
    moves=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=6, unique_by=lambda move: move[0]),
    leaving=st.integers(0, 6),
)
def test_volume_limits_are_the_slow_ones(
    volumes: list[Volume],
    limits: list[dict[str, int]],
    attached: list[tuple[str, int]],
    pods: list[list[int]],
    moves: list[tuple[int, int]],
    leaving: int,
) -> None:
    attachments = [attachment(i, where, v, volumes[v][0]) for i, (where, v) in enumerate(attached)]
    csi_nodes = [csi_node(name, of_node) for name, of_node in zip(NODES, limits, strict=True)]
    users = [pod_using(f"p{i}", [f"c{claim}" for claim in claims]) for i, claims in enumerate(pods)]
    session = opened(*map(node, NODES), *csi_nodes, *volume_objects(volumes), *attachments, *users)
    check = VolumeLimits(placed_pods(session)).prepare(session, task_named(session, "a/p0"))
    there: dict[int, int] = {}

    def agree() -> None:
        expected = [
            plain_limits(
                {volumes[claim] for claim in pods[0]},
                {volumes[claim] for pod, place in there.items() if place == row for claim in pods[pod]},
                {volumes[volume] for where, volume in attached if where == name},
                limits[row],
            )
            for row, name in enumerate(NODES)
        ]
        assert texts(session, check) == expected

    agree()
    for pod, row in moves:
        put(session, task_named(session, f"a/p{pod}"), row)
        there[pod] = row
        agree()
    for pod, row in moves[:leaving]:
        take(session, task_named(session, f"a/p{pod}"), row)
        del there[pod]
        agree()


# --- devices

Device = tuple[int, str, bool]  # (node, 3 stands for all of them; model; whether it is in use)
Request = tuple[str, int, bool]  # (model or "" for any; how many; whether all there are instead)


def device_objects(devices: list[Device]) -> list[Object]:
    """A slice for each device, and a claim that holds those in use."""
    found: list[Object] = []
    for i, (where, model, _) in enumerate(devices):
        place = {"allNodes": True} if where == len(NODES) else {"nodeName": NODES[where]}
        one = {"name": f"x{i}", "attributes": {"model": {"string": model}}}
        pool = {"name": f"pool{i}", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "pool": pool, "devices": [one], **place}
        found.append({"kind": "ResourceSlice", "metadata": {"name": f"s{i}"}, "spec": spec})
    taken = [
        {"request": "r", "driver": "gpu.example.com", "pool": f"pool{i}", "device": f"x{i}"}
        for i, (_, _, in_use) in enumerate(devices)
        if in_use
    ]
    status = {"allocation": {"devices": {"results": taken}}}
    found.append({"kind": "ResourceClaim", "metadata": {"name": "held", "namespace": "a"}, "status": status})
    return found


def claim_object(name: str, requests: list[Request]) -> Object:
    listed: list[Object] = []
    for i, (model, count, everything) in enumerate(requests):
        exactly: Object = {"deviceClassName": "gpu"}
        if model:
            expression = f'device.attributes["gpu.example.com"].model == "{model}"'
            exactly["selectors"] = [{"cel": {"expression": expression}}]
        exactly |= {"allocationMode": "All"} if everything else {"count": count}
        listed.append({"name": f"r{i}", "exactly": exactly})
    meta = {"name": name, "namespace": "a"}
    return {"kind": "ResourceClaim", "metadata": meta, "spec": {"devices": {"requests": listed}}, "status": {}}


def plain_devices(devices: list[Device], row: int, requests: list[Request]) -> bool:
    """Whether some way to hand out the node's free devices serves every request: all ways are tried."""
    here = [i for i, (where, _, _) in enumerate(devices) if where in (row, len(NODES))]
    wanted: list[set[int]] = []  # one entry a device that has to be given
    for model, count, everything in requests:
        fitting = {i for i in here if model in ("", devices[i][1])}
        if everything:
            if not fitting:
                return False
            wanted += [{i} for i in sorted(fitting)]
        else:
            wanted += [fitting] * count
    free = [i for i in here if not devices[i][2]]
    return any(
        all(device in fitting for device, fitting in zip(given_out, wanted, strict=True))
        for given_out in permutations(free, len(wanted))
    )


@settings(max_examples=200)
@given(
    devices=st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.booleans()), max_size=6),
    claims=st.lists(
        st.lists(
            st.tuples(st.sampled_from(["", "a", "b"]), st.integers(1, 2), st.sampled_from([False, False, True])),
            min_size=1,
            max_size=2,
        ),
        min_size=1,
        max_size=2,
    ),
)
def test_devices_are_the_slow_ones(devices: list[Device], claims: list[list[Request]]) -> None:
    names = [f"c{i}" for i in range(len(claims))]
    listed = [{"name": name, "resourceClaimName": name} for name in names]
    spec = {"containers": [{"name": "c"}], "resourceClaims": listed}
    wanting = {"kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "spec": spec, "status": {"phase": "Pending"}}
    device_class: Object = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    asked = [claim_object(name, requests) for name, requests in zip(names, claims, strict=True)]
    session = opened(*map(node, NODES), device_class, *device_objects(devices), *asked, wanting)
    found = texts(session, DynamicResources(session).prepare(session, task_named(session, "a/p")))
    everything = [request for requests in claims for request in requests]
    assert [not text for text in found] == [plain_devices(devices, row, everything) for row in range(len(NODES))]
