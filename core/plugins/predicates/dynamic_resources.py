# SPDX-License-Identifier: Apache-2.0
"""DynamicResources: claims for devices. Source: kube-scheduler `dynamicresources`; core/kube/devices.py lists the parts
that are left out.

A placed pod reserves the devices its claims would get on its node, and gives them back when it is taken off again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from pumice.core.kube.cel.reading import ExpressionError
from pumice.core.kube.devices import Allocator, DeviceId, Given, constraints_of, devices_of, requests_of
from pumice.core.kube.node_selector import rows_in_term
from pumice.core.kube.selectors import SelectorError
from pumice.core.messages.decisions import ClaimedDevices
from pumice.core.objects.metadata import controlling_owner, key_of, section
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
    results: list[Object] = section(section(section(claim, "status"), "allocation"), "devices").get("results") or []
    return [DeviceId(str(r.get("driver")), str(r.get("pool")), str(r.get("device"))) for r in results]


def _is_for(claim: Object, task: Task) -> bool:
    owner = controlling_owner(claim)
    return owner is not None and owner.get("uid") == task.uid


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
            codes = self._owner.codes_of(list(self._asked.values()))
        codes[(codes == 0) & ~self._within] = reasons.intern(ELSEWHERE)
        return codes[rows]


def has_claims(template: PodTemplate) -> bool:
    """Return whether the task has claims: tasks without any share an answer."""
    return bool(template.resource_claims)


def has_own_claims(template: PodTemplate) -> bool:
    """Return whether each pod has a claim of its own, made from a template."""
    return any(listed.get("resourceClaimName") is None for listed in template.resource_claims)


@dataclass(slots=True)
class DeviceAnswers:
    """Reason numbers of all nodes for claims that ask alike, as of so many touched nodes."""

    codes: IntArray
    seen: int = 0


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
        self._reserved_ids: set[DeviceId] = set()
        self._read: dict[bytes, Asked] = {}
        self._answers: dict[tuple[int, ...], DeviceAnswers] = {}
        self._touched: list[int] = []
        """Nodes whose free devices changed, in order: answers learn of those that came after them."""
        self._by_task: dict[str, list[str]] = {}
        # Binds of earlier cycles that are on their way: their devices are not free, although no claim says so yet.
        for pod, (_, before) in session.snapshot.promised.items():
            found = {c.claim: [Given(d[0], DeviceId(*d[1:])) for d in c.devices] for c in before.devices if c.devices}
            self._by_task[pod] = list(found)
            for claim, devices in found.items():
                self._hold(claim, devices)

    @cached_property
    def _devices(self) -> dict[int, list[Device]]:
        """Return the devices that serve each node that has any, by row, in their order."""
        found: dict[int, list[Device]] = {}
        for device in devices_of(self._session.nodes, self._session.objects.get("ResourceSlice", {})):
            for row in np.flatnonzero(device.rows).tolist():
                found.setdefault(row, []).append(device)
        return found

    @cached_property
    def _rows_of(self) -> dict[DeviceId, list[int]]:
        """Return the nodes of each device."""
        found: dict[DeviceId, list[int]] = {}
        for row, devices in self._devices.items():
            for device in devices:
                found.setdefault(device.id, []).append(row)
        return found

    @cached_property
    def _in_use(self) -> set[DeviceId]:
        """Return the devices of allocated claims."""
        claims = self._session.objects.get("ResourceClaim", {}).values()
        return {device for claim in claims for device in allocated_devices(claim)}

    def choose(self, row: int, asked: list[Asked]) -> list[list[Given]] | None:
        """Return the devices that claims would get on a node; None where they do not suffice. Raises
        ExpressionError.
        """
        here = self._devices.get(row, [])
        taken = {each.id for each in here if each.id in self._in_use or each.id in self._reserved_ids}
        return Allocator(here, taken).allocate(asked)

    def codes_of(self, asked: list[Asked]) -> IntArray:
        """Return a reason number for each node. Claims that ask alike share the answers: only nodes whose devices were
        taken or given back since are asked again.
        """
        short = self._session.reasons.intern(SHORT)
        answers = self._answers.get(tuple(map(id, asked)))
        if answers is None:
            # Without devices for it no node can do: the search for devices looks only at nodes that have any.
            codes = np.full(self._session.nodes.count, short, dtype=np.int32)
            answers = self._answers[tuple(map(id, asked))] = DeviceAnswers(codes)
            rows = sorted(self._devices)
        else:
            rows = sorted({*self._touched[answers.seen :]})
        for row in rows:
            answers.codes[row] = self._code(row, asked, short)
        answers.seen = len(self._touched)
        return answers.codes.copy()

    def _code(self, row: int, asked: list[Asked], short: int) -> int:
        try:
            return 0 if self.choose(row, asked) is not None else short
        except ExpressionError as error:
            return self._session.reasons.intern(Reason(NAME, Code.ERROR, str(error)))

    def _hold(self, claim: str, devices: list[Given]) -> None:
        self.reserved[claim] = devices
        for each in devices:
            self._reserved_ids.add(each.device)
            self._touch(each.device)

    def _release(self, claim: str) -> None:
        for each in self.reserved.pop(claim, ()):
            self._reserved_ids.discard(each.device)
            self._touch(each.device)

    def _touch(self, device: DeviceId) -> None:
        """Note that a device was taken or given back. Before the first question there is nothing to forget."""
        if self._answers:
            self._touched += self._rows_of.get(device, ())

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
        """Return what a claim asks for, one object for all that ask alike."""
        spec = msgspec.msgpack.encode(section(section(claim, "spec"), "devices"))
        found = self._read.get(spec)
        if found is None:
            try:
                requests = requests_of(claim, self._session.objects.get("DeviceClass", {}))
            except ExpressionError as error:
                raise _failure(str(error)) from error
            found = self._read[spec] = requests, constraints_of(claim)
        return found

    @staticmethod
    def _check_consumers(claim: Object, task: Task) -> None:
        consumers: list[Object] = section(claim, "status").get("reservedFor") or []
        # Kubernetes limits `status.reservedFor` to 256 entries; a pod that is listed already needs no new one.
        if len(consumers) >= MOST_CONSUMERS and all(one.get("uid") != task.uid for one in consumers):
            raise _failure("resourceclaim in use")

    def _rows_within(self, allocation: Object) -> BoolArray:
        terms: list[Object] | None = section(allocation, "nodeSelector").get("nodeSelectorTerms")
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
            self._hold(key, devices)
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
            self._release(key)
            self.version += 1
