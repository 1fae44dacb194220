# SPDX-License-Identifier: Apache-2.0
"""Requests of a bind worker before it binds a pod with claims, and the states that it waits for, on objects, without
sending.

Source: Volcano `capabilities/volumebinding/binder.go` (bindAPIUpdate, checkBindings), kube-scheduler
`dynamicresources` (bindClaim).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pumice.core.devices.locks import lock_is_held
from pumice.core.kube.storage import SELECTED_NODE, is_fully_bound, name_of, volume_name
from pumice.core.kube.volume_writes import (
    BY_CONTROLLER,
    claimed_by,
    freed_volume,
    is_promised,
    promised_volume,
    with_node,
)
from pumice.core.objects.metadata import Object, annotations_of, key_of, parse_time, section, text_map

if TYPE_CHECKING:
    from pumice.core.messages.decisions import Bind, ClaimedDevices

USER: Final = "pre-bind-worker"
"""User of the writes."""
WRITTEN_S: Final = 1.0
"""Moments are written in whole seconds: a lock was set up to so long after its moment."""
Place = tuple[str, str, str]
"""Kind, namespace ("" for a volume) and name."""
Device = tuple[str, str, str]
"""Driver, pool and name."""


class PreBindError(Exception):
    """Reason why the pod cannot be bound, as a text for people."""


class Write(NamedTuple):
    """A change of one object, which may depend on another one; `do` and `undo` return None when the object has that
    state already.

    Both raise PreBindError where it cannot be so.
    """

    place: Place
    beside: Place | None
    do: Callable[[Object, Object], Object | None]
    undo: Callable[[Object, Object], Object | None]

    @property
    def places(self) -> tuple[Place, ...]:
        """Return the objects that the write reads."""
        return (self.place,) if self.beside is None else (self.place, self.beside)

    def after(self, objects: Mapping[Place, Object | None], *, undo: bool) -> Object | None:
        """Return the object as it is to be, None where it is so already. Raises PreBindError."""
        obj, beside = objects[self.place], objects[self.beside or self.place]
        if obj is None or beside is None:
            missing = self.place if obj is None else self.beside or self.place
            raise PreBindError(f"{' '.join(part for part in missing if part)} is gone")
        return (self.undo if undo else self.do)(obj, beside)


def claim_place(key: str, kind: str = "PersistentVolumeClaim") -> Place:
    """Return the place of the claim "namespace/name"."""
    namespace, _, name = key.partition("/")
    return kind, namespace, name


def writes_of(bind: Bind) -> Iterator[Write]:
    """Return the writes in their order: volumes, nodes for new volumes, locks of the node, devices."""
    needs = bind.pre_bind
    if needs is None:
        return
    for volume, claim in needs.volumes:
        yield Write(("PersistentVolume", "", volume), claim_place(claim), promise_volume, free_volume)
    for claim in needs.provisions:
        yield Write(claim_place(claim), None, *_node_writes(bind.node))
    for name, moment in needs.locks:
        yield Write(("Node", "", bind.node), None, *_lock_writes(name, moment))
    for devices in needs.devices:
        yield Write(claim_place(devices.claim, "ResourceClaim"), None, *_device_writes(bind, devices))


def taken_back(bind: Bind, others: Iterable[Bind]) -> Iterator[Write]:
    """Yield the requests that undo a failed bind, except what other waiting binds have written as well."""
    # pods may share claims: what another bind waits for must stay
    shared = {place for other in others for place in awaited_places(other)}
    for write in writes_of(bind):
        if (write.beside or write.place) not in shared:
            yield write


def promise_volume(volume: Object, claim: Object) -> Object | None:
    """Reserve the volume for the claim."""
    if is_promised(volume, claim):
        return None
    owner, key = claimed_by(volume), key_of(section(claim, "metadata")["namespace"], name_of(claim))
    # another claim was faster: what was decided does not hold any more
    if owner and owner != key:
        raise PreBindError(f'volume "{name_of(volume)}" was taken by claim "{owner}"')
    if volume_name(claim) not in ("", name_of(volume)):
        raise PreBindError(f'claim "{key}" was bound to volume "{volume_name(claim)}"')
    return promised_volume(volume, claim)


def free_volume(volume: Object, claim: Object) -> Object | None:
    """Release the volume, unless the claim has it by now, or another client reserved it for the claim."""
    ours = BY_CONTROLLER in annotations_of(volume)
    if not ours or section(volume, "status").get("phase") == "Bound":
        return None
    return freed_volume(volume) if is_promised(volume, claim) and not volume_name(claim) else None


def _node_writes(
    node: str,
) -> tuple[Callable[[Object, Object], Object | None], Callable[[Object, Object], Object | None]]:
    def choose(claim: Object, _: Object) -> Object | None:
        chosen = selected_node(claim)
        # a second try, or a provisioner that has answered, finds nothing left to write
        if chosen == node or is_fully_bound(claim):
            return None
        if chosen:
            raise PreBindError(f'claim "{name_of(claim)}" gets its volume on node "{chosen}"')
        return with_node(claim, node)

    def leave(claim: Object, _: Object) -> Object | None:
        # a volume that was made meanwhile belongs to the claim, wherever its pod goes
        return with_node(claim, None) if selected_node(claim) == node and not volume_name(claim) else None

    return choose, leave


def _lock_writes(
    name: str, moment: str
) -> tuple[Callable[[Object, Object], Object | None], Callable[[Object, Object], Object | None]]:
    def lock(node: Object, _: Object) -> Object | None:
        metadata = section(node, "metadata")
        annotations = text_map(metadata.get("annotations"))
        said = annotations.get(name)
        # locked by an earlier try of this very bind
        if said == moment:
            return None
        try:
            held = lock_is_held(said, parse_time(moment) + WRITTEN_S)
        except ValueError as error:
            raise PreBindError(f'node "{name_of(node)}" is locked by {name}: {said!r} is not a valid time') from error
        if held:
            raise PreBindError(f'node "{name_of(node)}" has been locked by {name} since {said}')
        return {**node, "metadata": {**metadata, "annotations": {**annotations, name: moment}}}

    def leave(_node: Object, _: Object) -> Object | None:
        """Leave the lock until it expires, as Volcano does."""
        return None

    return lock, leave


def selected_node(claim: Object) -> str:
    """Return the node on which a claim's volume is to be made, "" for none yet."""
    return annotations_of(claim).get(SELECTED_NODE, "")


def _device_writes(
    bind: Bind, wanted: ClaimedDevices
) -> tuple[Callable[[Object, Object], Object | None], Callable[[Object, Object], Object | None]]:
    user = {"resource": "pods", "name": bind.name, "uid": bind.uid}

    def reserve(claim: Object, _: Object) -> Object | None:
        status = section(claim, "status")
        users: list[Object] = status.get("reservedFor") or []
        allocation, ours = status.get("allocation"), allocation_of(wanted)
        if allocation is None and not wanted.devices:
            raise PreBindError(f'resource claim "{wanted.claim}" has lost its devices')
        if allocation is not None and wanted.devices and allocation != ours:
            raise PreBindError(f'resource claim "{wanted.claim}" was given other devices')
        # reserved by an earlier try of this very bind
        if user in users and allocation is not None:
            return None
        # a claim that another pod uses already keeps its devices
        return {**claim, "status": {**status, "allocation": allocation or ours, "reservedFor": [*users, user]}}

    def leave(claim: Object, _: Object) -> Object | None:
        status = section(claim, "status")
        users: list[Object] = status.get("reservedFor") or []
        kept = [each for each in users if each.get("uid") != bind.uid]
        if len(kept) == len(users):
            return None
        after = {key: value for key, value in status.items() if key not in ("reservedFor", "allocation")}
        if kept:  # the last one to leave gives the devices back, even if another pod got them
            after.update(reservedFor=kept, allocation=status.get("allocation"))
        return {**claim, "status": after}

    return reserve, leave


def has_device(claim: Object | None, device: Device) -> bool:
    """Return whether an existing claim was given the device."""
    given: Any = section(section(section(claim or {}, "status"), "allocation"), "devices").get("results")
    return any((each["driver"], each["pool"], each["device"]) == device for each in given or ())


def allocation_of(wanted: ClaimedDevices) -> Object:
    """Return the status.allocation of a claim that gets these devices."""
    results = [
        {"request": request, "driver": driver, "pool": pool, "device": device}
        for request, driver, pool, device in wanted.devices
    ]
    allocation: Object = {"devices": {"results": results}}
    if wanted.node:
        field = {"key": "metadata.name", "operator": "In", "values": [wanted.node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return allocation


def awaited_places(bind: Bind) -> list[Place]:
    """Return the pod, and the claims that must be bound before it is."""
    pod = ("Pod", bind.namespace, bind.name)
    if bind.pre_bind is None:
        return [pod]
    claims = [claim for _, claim in bind.pre_bind.volumes] + list(bind.pre_bind.provisions)
    return [pod, *map(claim_place, dict.fromkeys(claims))]


def is_ready(bind: Bind, objects: dict[Place, Object | None]) -> bool:
    """Return whether all the pod's claims are bound. Raises PreBindError when they never will be: an object is gone or
    changed.
    """
    ready = True
    provisions, volumes = (bind.pre_bind.provisions, bind.pre_bind.volumes) if bind.pre_bind is not None else ((), ())
    provisioned, promised = set(map(claim_place, provisions)), {claim_place(claim): name for name, claim in volumes}
    for place in awaited_places(bind):
        obj = objects.get(place)
        if obj is None or section(obj, "metadata").get("deletionTimestamp"):
            raise PreBindError(f"{place[0]} {place[1]}/{place[2]} is gone")
        if place[0] == "Pod":
            if section(obj, "metadata").get("uid") != bind.uid:
                raise PreBindError(f"pod {bind.namespace}/{bind.name} is another one by now")
        elif volume_name(obj) not in ("", promised.get(place, volume_name(obj))):
            raise PreBindError(f'claim "{place[2]}" was bound to volume "{volume_name(obj)}"')
        elif not is_fully_bound(obj):
            ready = False
            if place in provisioned and selected_node(obj) != bind.node:
                raise PreBindError(f'no volume could be made for claim "{place[2]}" on node "{bind.node}"')
    return ready
