# SPDX-License-Identifier: Apache-2.0
"""Quotas of devices: `deviceclass/<class>` counts devices, `<dimension>.deviceclass/<class>` sums a capacity of them.

Source: Volcano capacity's DRA quota (`draQuotaAttr`), `GetMinDRAResources`. A claim that several pods of a queue share
is charged once. Capacities are in milli-units.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pumice.core.cached import cached
from pumice.core.kube.devices import COUNT, Devices, DevicesByClaim
from pumice.core.life.task import IS_ALLOCATED
from pumice.core.objects.metadata import annotations_of, key_of, owners_of, section
from pumice.core.quantity import quantity_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.plugins.capacity.limits import CapacityAttributes
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

COUNT_PREFIX: Final = "deviceclass/"
CAPACITY_MARK: Final = ".deviceclass/"
POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
BY_OWNER: Final = "claims-found-by-owner"
"""The rule of earlier versions."""
ZERO_IS_FREE: Final = "zero-capacities-are-free"
"""The rule before version 6."""


@dataclass(slots=True)
class ClaimQuota:
    """One queue's limits and use of devices. `held`: pods of the queue that hold each claim."""

    capability: Devices
    allocated: Devices = field(default_factory=Devices)
    inqueue: Devices = field(default_factory=Devices)
    held: Counter[str] = field(default_factory=Counter[str])

    def allows(self, wanted: Devices, *, capacities: bool, admitted: bool, zero_is_free: bool = False) -> bool:
        """Return whether `wanted` fits beside the allocated devices (with `admitted`, beside the admitted ones too);
        unlimited classes always fit. `zero_is_free`: the rule before version 6.
        """
        limited = {device for device, _ in self.capability}
        for (device, dimension), amount in wanted.items():
            key = (device, dimension)
            # A class that the capability does not name is free; its capacities count only with DRAConsumableCapacity.
            if device not in limited or (dimension != COUNT and not capacities):
                continue
            # A capacity that the capability does not name is refused, also one of 0 (checkDRAAllocatable).
            if not zero_is_free and dimension != COUNT and key not in self.capability:
                return False
            limit = self.capability[key]
            # A count of 0 does not limit, a capacity of 0 does (checkDRAAllocatable).
            if dimension == COUNT and limit <= 0:
                continue
            if self.allocated[key] + (self.inqueue[key] if admitted else 0) + amount > limit:
                return False
        return True

    def copy(self) -> ClaimQuota:
        """Return an independent copy for a trial."""
        return ClaimQuota(self.capability, Devices(self.allocated), Devices(self.inqueue), Counter(self.held))


def parse_devices(quantities: Mapping[str, Any] | None) -> Devices:
    """Return a resource list's amounts of device classes; other names are left out."""
    found = Devices()
    for name, value in (quantities or {}).items():
        dimension, mark, device = name.partition(CAPACITY_MARK)
        if mark and dimension and device:
            found[device, dimension] = quantity_of(value).milli_value()
        # A name with a dimension and without a class counts nothing, rather than as a count (parseDRAResourceList).
        elif not (mark and dimension) and name.startswith(COUNT_PREFIX) and len(name) > len(COUNT_PREFIX):
            found[name.removeprefix(COUNT_PREFIX), COUNT] = quantity_of(value).value()
    return found


def quota_of(queue: Queue) -> ClaimQuota | None:
    """Return the queue's quota, None when its spec names no device class."""
    spec = section(queue.queue, "spec")
    capability = parse_devices(spec.get("capability"))
    others = (spec.get("deserved"), section(spec, "guarantee").get("resource"))
    # Also where only deserved or guarantee name a class: Volcano then counts, without a limit (newDRAQuotaAttr).
    return ClaimQuota(capability) if capability or any(parse_devices(other) for other in others) else None


class ClaimsByOwner(DevicesByClaim):
    """Finds claims as the rules before version 4 do: generated ones by their owner, each independently of the others.

    A capacity counts once for all devices of a request.
    """

    of_each_device = False

    @cached
    def _of_pod(self) -> dict[tuple[str, str], str]:
        return {pair: key for key, claim in self.claims.items() for pair in _pod_claims(claim)}

    def of(self, task: Task) -> dict[str, Devices]:
        """Return what each claim asks for."""
        names = {self._key(task, listed) for listed in task.template.resource_claims}
        return {key: asked for key in sorted(names) if (asked := self.asked(key))}

    def _key(self, task: Task, listed: Mapping[str, Any]) -> str:
        if listed.get("resourceClaimName"):
            return key_of(task.namespace, str(listed["resourceClaimName"]))
        return self._of_pod.get((task.uid, listed.get("name") or ""), "")


class DeviceQuotas:
    """Device quotas of a session. `active` is False when they are switched off or no pod has a claim; then nothing is
    ever counted.
    """

    def __init__(self, session: Session, *, enabled: bool, capacities: bool) -> None:
        self._session = session
        self._capacities = capacities
        claims = session.objects.get("ResourceClaim") or {}
        self.active = enabled and bool(claims)
        self._zero_is_free = ZERO_IS_FREE in session.config.pumice.fix
        reader = ClaimsByOwner if BY_OWNER in session.config.pumice.fix else DevicesByClaim
        self._asked = reader(claims, capacities=capacities)

    # --- what a task asks for
    # -------------------------------------------------------------------------------------------------

    def requests(self, task: Task) -> dict[str, Devices]:
        """Return claim -> requested devices, by claim name; claims that are counted nowhere are left out."""
        return self._asked.of(task)

    def minimum(self, job: Job) -> Devices:
        """Return what the job's minimum needs: the first tasks by name, or each role's minimum times its first task."""
        tasks = [(task, _total(self.requests(task).values())) for task in job.in_uid_order()]
        asking = [(task, wanted) for task, wanted in tasks if wanted]
        roles = job.pod_group.min_task_member
        if not roles:
            asking.sort(key=lambda pair: (pair[0].namespace, pair[0].name, pair[0].uid))
            return _total(wanted for _, wanted in asking[: max(job.pod_group.min_member, 0)])
        # Backwards, so that the first task of each role stays.
        first = {task.role: wanted for task, wanted in reversed(asking)}
        total = Devices()
        for role, times in roles.items():
            # Roles that need none are passed over (GetMinDRAResources).
            if times > 0 or self._zero_is_free:
                for key, amount in first.get(role, Devices()).items():
                    total[key] += amount * max(times, 0)
        return total

    # --- what a queue allows
    # -----------------------------------------------------------------------------------------------------

    def open(
        self, attributes: CapacityAttributes, jobs: Iterable[Job], ancestors: Iterable[CapacityAttributes]
    ) -> None:
        """Charge the devices that the jobs of a queue hold; ancestors are charged for the classes that they limit, and
        have no claims yet.
        """
        if attributes.claims is None:
            return
        before = Devices(attributes.claims.allocated)
        for job in jobs:
            for task in job.in_uid_order():
                if IS_ALLOCATED[self._session.jobs.status[task.row]]:
                    self.take(attributes.claims, task)
        gained = attributes.claims.allocated - before
        for ancestor in ancestors:
            if ancestor.claims is not None:
                limited = {device for device, _ in ancestor.claims.capability}
                ancestor.claims.allocated.update({key: n for key, n in gained.items() if key[0] in limited})

    def counts(self, attributes: CapacityAttributes, job: Job) -> bool:
        """Return whether a job without minResources must be checked all the same."""
        return self.active and attributes.claims is not None and bool(self.minimum(job))

    def admit(self, attributes: CapacityAttributes, job: Job) -> bool:
        """Return whether the job's minimum fits beside the allocated and admitted devices."""
        if not self.active or attributes.claims is None:
            return True
        return self._allows(attributes.claims, self.minimum(job), admitted=True)

    def charge(self, line: list[CapacityAttributes], job: Job) -> None:
        """Count an admitted job's minimum, from its queue up; at a queue without a quota the count stops."""
        if not self.active or line[0].claims is None:
            return
        wanted = self.minimum(job)
        for attributes in line:
            if attributes.claims is not None:
                attributes.claims.inqueue.update(wanted)

    def fit(self, quota: ClaimQuota | None, task: Task) -> bool:
        """Return whether the task's claims fit; claims that the queue already holds cost nothing."""
        if not self.active or quota is None:
            return True
        wanted = _total(devices for name, devices in self.requests(task).items() if not quota.held[name])
        return self._allows(quota, wanted, admitted=False)

    def _allows(self, quota: ClaimQuota, wanted: Devices, *, admitted: bool) -> bool:
        return quota.allows(wanted, capacities=self._capacities, admitted=admitted, zero_is_free=self._zero_is_free)

    def take(self, quota: ClaimQuota | None, task: Task) -> None:
        """Count the claims that the task takes."""
        if not self.active or quota is None:
            return
        for name, devices in self.requests(task).items():
            # The devices of a claim exist once, so only the first pod that holds it pays (resourceClaimRefs).
            if not quota.held[name]:
                quota.allocated.update(devices)
            quota.held[name] += 1

    def give_back(self, quota: ClaimQuota | None, task: Task) -> None:
        """Count the claims that the task releases; the last holder of a claim frees its devices."""
        if not self.active or quota is None:
            return
        for name, devices in self.requests(task).items():
            # Also a claim that was never counted is taken off, as in Volcano (removeTaskDRAAllocated).
            if quota.held[name] <= 1:
                quota.allocated.subtract(devices)
                del quota.held[name]
            else:
                quota.held[name] -= 1


def _total(parts: Iterable[Devices]) -> Devices:
    total = Devices()
    for part in parts:
        total.update(part)
    return total


def _pod_claims(claim: Object) -> list[tuple[str, str]]:
    """Return (pod uid, name within the pod) of the pods that a claim was generated for."""
    name = annotations_of(claim).get(POD_CLAIM) or ""
    return [(owner.get("uid") or "", name) for owner in owners_of(claim) if owner.get("kind") == "Pod"]
