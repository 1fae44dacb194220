"""DynamicResources: claims for devices. Source: kube-scheduler `dynamicresources`; core/kube/devices.py lists the parts
that are left out.

A placed pod reserves the devices its claims would get on its node, and gives them back when it is taken off again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pumice.core.kube.cel.reading import ExpressionError
from pumice.core.kube.devices import Allocator, DeviceId, Given, constraints_of, devices_of, requests_of
from pumice.core.kube.node_selector import rows_in_term
from pumice.core.kube.selectors import SelectorError
from pumice.core.messages.decisions import ClaimedDevices
from pumice.core.objects.metadata import key_of, section
from pumice.core.session.points.nodes import Reads, Volatility
from pumice.core.session.points.rules import ColumnRule
from pumice.core.session.reasons import Code, FitFailure, Reason

if TYPE_CHECKING:
    from pumice.core.kube.devices import Device, DeviceConstraint, DeviceRequest
    from pumice.core.kube.rows import BoolArray
    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.nodes import Rows
    from pumice.core.session.points.rules import Check
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session

NAME = "DynamicResources"
SHORT = Reason(NAME, Code.UNRESOLVABLE, "cannot allocate all claims")
ELSEWHERE = Reason(NAME, Code.UNRESOLVABLE, "resourceclaim not available on the node")
MOST_CONSUMERS = 256
BY_NODE: Final = "claims-in-flight-refuse-by-node"
"""The rule of earlier versions."""
Asked = tuple[list[list["DeviceRequest"]], list["DeviceConstraint"]]


def _failed(text: str) -> Reason:
    return Reason(NAME, Code.ERROR, f"plugin {NAME} pre-predicates failed {text}")


def _failure(text: str) -> FitFailure:
    return FitFailure(_failed(text))


def _in_flight(claim: str) -> Reason:
    return _failed(f"resource claim {claim} is in the process of being allocated")


def allocated_devices(claim: Object) -> list[DeviceId]:
    """Return the devices of an allocated claim."""
    results: list[dict[str, Any]] = (
        section(section(section(claim, "status"), "allocation"), "devices").get("results") or []
    )
    return [DeviceId(str(r.get("driver")), str(r.get("pool")), str(r.get("device"))) for r in results]


def _is_for(claim: Object, task: Task) -> bool:
    owners: list[dict[str, Any]] = section(claim, "metadata").get("ownerReferences") or []
    return any(owner.get("controller") and owner.get("uid") == task.uid for owner in owners)


class ClaimsCodes:
    """Checks that allocated claims are within reach, and that the others get their devices.

    Asked again when devices are reserved. `pre_filter` is part of PreFilter: a claim that another pod is about to get
    refuses its task before any node is looked at, so no cache of errors learns of it. Earlier versions took it for an
    answer about each node.
    """

    def __init__(self, owner: DynamicResources, session: Session, within: BoolArray, asked: dict[str, Asked]) -> None:
        self._owner, self._session, self._within, self._asked = owner, session, within, asked

    def version(self) -> int:
        """Return a number that rises with every reservation."""
        return self._owner.version

    def pre_filter(self) -> None:
        """Raise FitFailure while a claim without devices is on its way to another pod."""
        if not self._owner.refuses_by_node:
            for key in self._asked:
                self._owner.check_in_flight(key)

    def __call__(self, rows: Rows, /) -> IntArray:
        """Return the reason number per row, int32 [len(rows)]."""
        reasons = self._session.reasons
        codes: IntArray = np.zeros(self._session.nodes.count, dtype=np.int32)
        promised = next((key for key in self._asked if key in self._owner.reserved), None)
        if promised is not None and self._owner.refuses_by_node:
            codes[:] = reasons.intern(_in_flight(promised))
        elif self._asked:
            # Without devices for it no node can do: the search for devices looks only at nodes that have any.
            codes[:] = reasons.intern(SHORT)
            for row in self._owner.rows_with_devices().tolist():
                try:
                    codes[row] = (
                        0 if self._owner.choose(row, list(self._asked.values())) is not None else reasons.intern(SHORT)
                    )
                except ExpressionError as error:
                    codes[row] = reasons.intern(Reason(NAME, Code.ERROR, str(error)))
        codes[(codes == 0) & ~self._within] = reasons.intern(ELSEWHERE)
        return codes[rows]


def has_claims(template: PodTemplate) -> bool:
    """Return whether the task has claims: tasks without any share an answer."""
    return bool(template.resource_claims)


def has_own_claims(template: PodTemplate) -> bool:
    """Return whether each pod has a claim of its own, made from a template."""
    return any(listed.get("resourceClaimName") is None for listed in template.resource_claims)


class DynamicResources:
    """The filter, and the devices reserved in a session. `version` rises with every reservation."""

    name = NAME
    # claims are found by namespace
    reads = Reads(labels=True, concerns=has_claims, anew=has_own_claims, needs_pre_filter=True)

    def __init__(self, session: Session) -> None:
        self._session = session
        self.refuses_by_node = BY_NODE in session.config.pumice.fix
        self.version = 0
        self.reserved: dict[str, list[Given]] = {}  # claim -> its devices
        self._by_task: dict[str, list[str]] = {}
        # Binds of earlier cycles that are on their way: their devices are not free, although no claim says so yet.
        for pod, (_, before) in session.snapshot.promised.items():
            found = {c.claim: [Given(d[0], DeviceId(*d[1:])) for d in c.devices] for c in before.devices if c.devices}
            self.reserved.update(found)
            self._by_task[pod] = list(found)
        self._devices: list[Device] | None = None
        self._in_use: set[DeviceId] = set()

    def _known_devices(self) -> list[Device]:
        if self._devices is None:
            objects = self._session.objects
            self._devices = devices_of(self._session.nodes, objects.get("ResourceSlice", {}))
            for claim in objects.get("ResourceClaim", {}).values():
                self._in_use.update(allocated_devices(claim))
        return self._devices

    def rows_with_devices(self) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
        """Return the nodes that any device serves."""
        mask = np.zeros(self._session.nodes.count, dtype=np.bool_)
        for device in self._known_devices():
            mask |= device.rows
        return np.flatnonzero(mask)

    def choose(self, row: int, asked: list[Asked]) -> list[list[Given]] | None:
        """Return the devices that claims would get on a node; None where they do not suffice. Raises
        ExpressionError.
        """
        here = [device for device in self._known_devices() if device.rows[row]]
        taken = self._in_use.union(given.device for devices in self.reserved.values() for given in devices)
        return Allocator(here, taken).allocate(asked)

    def _claims(self, task: Task) -> list[tuple[str, Object]]:
        """Return the claims of a pod by "namespace/name"; claims made from a template have the name in the pod's
        status.
        """
        found: list[tuple[str, Object]] = []
        for listed in task.template.resource_claims:
            name, own = listed.get("resourceClaimName"), dict(task.claim_names)
            if name is None:
                if listed.get("name") not in own:
                    raise _failure(f"pod {task.key}: ResourceClaim not created yet")
                name = own[str(listed["name"])]
                if name is None:
                    continue  # the maker of the pod's claims found that it needs none
            claim = self._session.objects.get("ResourceClaim", {}).get(key_of(task.namespace, str(name)))
            if claim is None:
                raise _failure(f'resourceclaim.resource.k8s.io "{name}" not found')
            if section(claim, "metadata").get("deletionTimestamp"):
                raise _failure(f'resourceclaim "{name}" is being deleted')
            if listed.get("resourceClaimName") is None and not _is_for(claim, task):
                whose = f"ResourceClaim {task.namespace}/{name} was not created for pod {task.key}"
                raise _failure(f"{whose} (pod is not owner)")
            found.append((key_of(task.namespace, str(name)), claim))
        return found

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the answers; None for a pod without claims. Raises FitFailure where no node can help."""
        if not task.template.resource_claims:
            return None
        within = np.ones(session.nodes.count, dtype=np.bool_)
        asked: dict[str, Asked] = {}
        for key, claim in self._claims(task):
            allocation = section(claim, "status").get("allocation")
            if allocation is not None:
                self._check_consumers(claim, task)
                within &= self._rows_within(allocation)
            else:
                if not self.refuses_by_node:
                    self.check_in_flight(
                        key
                    )  # in the order of the claims: the first trouble is the one that is reported
                asked[key] = self._asked(claim)
        codes = ClaimsCodes(self, session, within, asked)
        return ColumnRule(codes, Volatility.GLOBAL, follow=codes.version, pre_filter=codes.pre_filter)

    def check_in_flight(self, claim: str) -> None:
        """Raise FitFailure while the claim is on its way to another pod."""
        if claim in self.reserved:
            raise FitFailure(_in_flight(claim))

    def _asked(self, claim: Object) -> Asked:
        try:
            return requests_of(claim, self._session.objects.get("DeviceClass", {})), constraints_of(claim)
        except ExpressionError as error:
            raise _failure(str(error)) from error

    @staticmethod
    def _check_consumers(claim: Object, task: Task) -> None:
        consumers: list[dict[str, Any]] = section(claim, "status").get("reservedFor") or []
        # Kubernetes limits `status.reservedFor` to 256 entries; a pod that is listed already needs no new one.
        if len(consumers) >= MOST_CONSUMERS and all(one.get("uid") != task.uid for one in consumers):
            raise _failure("resourceclaim in use")

    def _rows_within(self, allocation: dict[str, Any]) -> BoolArray:
        terms: list[dict[str, Any]] | None = section(allocation, "nodeSelector").get("nodeSelectorTerms")
        mask = np.full(self._session.nodes.count, terms is None, dtype=np.bool_)
        for term in terms or []:
            try:
                mask |= rows_in_term(self._session.nodes, term)
            except SelectorError as error:
                raise _failure(str(error)) from error
        return mask

    def reserve(self, task: Task, node: int) -> str | None:
        """Reserve the devices of a placed pod's claims; a negative node has none. A returned text says why they are not
        available.
        """
        if not task.template.resource_claims:
            return None
        try:
            waiting = [(k, c) for k, c in self._claims(task) if section(c, "status").get("allocation") is None]
            nowhere = bool(waiting) and node < 0
            chosen = None if nowhere else self.choose(node, [self._asked(claim) for _, claim in waiting])
        except (FitFailure, ExpressionError) as error:
            return str(error)
        if chosen is None:
            return "claim allocation not found for node"
        for (key, _), devices in zip(waiting, chosen, strict=True):
            self.reserved[key] = devices
        self._by_task[task.key] = [key for key, _ in waiting]
        self.version += 1
        return None

    def pre_bind(self, task: Task, node: str) -> tuple[ClaimedDevices, ...]:
        """Return the allocations of a placed pod's claims; claims with devices of their own gain one more pod."""
        if not task.template.resource_claims:
            return ()
        new = self._by_task.get(task.key, ())
        found: list[ClaimedDevices] = []
        for key, _ in self._claims(task):
            devices = self.reserved[key] if key in new else []
            # Devices that every node reaches do not tie the claim to a node.
            place = "" if all(given.everywhere for given in devices) else node
            results = tuple((one.request, one.device.driver, one.device.pool, one.device.name) for one in devices)
            found.append(ClaimedDevices(key, results, place))
        return tuple(found)

    def unreserve(self, task: Task) -> None:
        """Release the reservations of a pod; a pod without any is left alone."""
        for key in self._by_task.pop(task.key, ()):
            self.reserved.pop(key, None)
            self.version += 1
