# SPDX-License-Identifier: Apache-2.0
"""The controller of StatefulSets: numbered pods, in order, each with its own claims.

Source: Kubernetes' statefulset controller.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from pumice.cluster.controllers.family import Agenda, ChildWords, OwnerRule, OwnFamily
from pumice.cluster.controllers.pods_of import (
    Belongs,
    available_at,
    by_selector,
    is_leaving,
    phase,
    pod_from,
    reference,
)
from pumice.cluster.controllers.revisions import KIND, POD_HASH, outdated, revisions_of, template_of
from pumice.cluster.kube.budgets import is_ready
from pumice.cluster.kube.events import event
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.commands import Create, Delete, Patch, UpdateStatus
from pumice.core.objects.metadata import Object, rows, section, text_map
from pumice.core.objects.parts import ORPHAN_POD, POD_OF_WORKLOAD
from pumice.core.texts import whole_number
from pumice.storage.codec import pack

# --- Pods and claims with ordinals

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"


def first_ordinal(owner: Object) -> int:
    """Return the number of its first pod."""
    return section(section(owner, "spec"), "ordinals").get("start") or 0


def ordinal_of(owner: Object, pod: Object) -> int | None:
    """Return a pod's number; None for a name that is not of this set."""
    prefix = f"{owner['metadata']['name']}-"
    name: str = pod["metadata"]["name"]
    return whole_number(name.removeprefix(prefix)) if name.startswith(prefix) else None


def pod_of_set(owner: Object, revision: Object, ordinal: int) -> Object:
    """Return the pod of a number, of the template of a revision."""
    name = f"{owner['metadata']['name']}-{ordinal}"
    pod = pod_from(template_of(revision), owner, name)
    labels, spec = pod["metadata"]["labels"], pod["spec"]
    labels |= {POD_NAME: name, POD_INDEX: str(ordinal), POD_HASH: revision["metadata"]["name"]}
    spec["hostname"] = name
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    claimed = {each["metadata"]["name"]: claim_name(owner, each, ordinal) for each in _templates(owner)}
    others = [volume for volume in spec.get("volumes") or () if volume.get("name") not in claimed]
    own = [
        {"name": volume, "persistentVolumeClaim": {"claimName": claim, "readOnly": False}}
        for volume, claim in claimed.items()
    ]
    # a claim's volume replaces one of the same name (`updateStorage` in stateful_set_utils.go)
    if claimed:
        spec["volumes"] = [*own, *others]
    return pod


def claim_name(owner: Object, template: Object, ordinal: int) -> str:
    """Return the name of a pod's claim."""
    return f"{template['metadata']['name']}-{owner['metadata']['name']}-{ordinal}"


def claims_of(owner: Object, ordinal: int) -> list[Object]:
    """Return the claims that a pod needs; they outlive the set unless its retention policy says otherwise."""
    found: list[Object] = []
    kept = section(owner["spec"], "persistentVolumeClaimRetentionPolicy").get("whenDeleted") != "Delete"
    labels = text_map(section(owner["spec"], "selector").get("matchLabels"))
    for template in _templates(owner):
        meta = template["metadata"]
        made: Object = {
            "name": claim_name(owner, template, ordinal),
            "namespace": owner["metadata"]["namespace"],
            "labels": {**text_map(meta.get("labels")), **labels},
            "annotations": dict(text_map(meta.get("annotations"))),
        }
        if not kept:
            made["ownerReferences"] = [reference(owner)]
        spec = section(template, "spec")
        found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": made, "spec": spec})
    return found


def missing_claims(owner: Object, ordinal: int, there: Container[tuple[str, str]]) -> list[Object]:
    """Return the claims that do not exist yet."""
    wanted = claims_of(owner, ordinal)
    return [each for each in wanted if (each["metadata"]["namespace"], each["metadata"]["name"]) not in there]


def is_running_and_ready(pod: Object) -> bool:
    """Return whether the pod runs, is ready and is not being deleted."""
    return section(pod, "status").get("phase") == "Running" and is_ready(pod) and not is_leaving(pod)


def _templates(owner: Object) -> list[Object]:
    return rows(owner["spec"], "volumeClaimTemplates")


# --- The next step
# Source: Kubernetes' `stateful_set_control`, `updateStatefulSet`.


@dataclass(slots=True)
class SetPlan:
    """The next pods of a set. `new`: numbers of pods to be made; `failed`: pods that have ended and are made again;
    `condemned`: those of `remove` whose number is beyond the last; `wait_until`: a ready pod counts from then on.
    """

    new: list[int] = field(default_factory=list[int])
    remove: list[Object] = field(default_factory=list[Object])
    failed: list[Object] = field(default_factory=list[Object])
    condemned: list[Object] = field(default_factory=list[Object])
    wait_until: float | None = None


class SetPlanner:
    """Plans one set at one time. `update`: the name of the revision that its pods are to have."""

    def __init__(self, owner: Object, pods: Sequence[Object], update: str, now: float) -> None:
        self._owner, self._update, self._now = owner, update, now
        spec = owner["spec"]
        self._first, self._last = first_ordinal(owner), first_ordinal(owner) + spec["replicas"] - 1
        numbered = {number: pod for pod in pods if (number := ordinal_of(owner, pod)) is not None}
        self._kept = {number: pod for number, pod in numbered.items() if self._first <= number <= self._last}
        surplus = sorted((number for number in numbered if number not in self._kept), reverse=True)
        self._condemned = [numbered[number] for number in surplus]
        self._one_by_one = spec.get("podManagementPolicy") != "Parallel"
        self._plan = SetPlan()

    def plan(self) -> SetPlan:
        """Return one step; the next follows after the api's answers."""
        if self._fill() and self._shrink():
            self._roll()
        return self._plan

    def _fill(self) -> bool:
        """Plan the missing pods, and return whether none is missing. One by one, each waits for the one before to
        work.
        """
        for number in range(self._first, self._last + 1):
            pod = self._kept.get(number)
            if pod is None:
                self._plan.new.append(number)
            elif phase(pod) in ENDED_PHASES:
                if not is_leaving(pod):
                    self._plan.failed.append(pod)
            elif not self._one_by_one or self._works(pod):
                continue
            if self._one_by_one:
                return False
        return True

    def _shrink(self) -> bool:
        """Remove the pods beyond the last number, the highest first, and only while all others work."""
        well = all(map(self._works, self._kept.values()))
        for pod in self._condemned:
            if is_leaving(pod):
                if self._one_by_one:
                    return False
                continue
            if self._one_by_one and not well and self._works(pod):
                return False
            self._plan.remove.append(pod)
            self._plan.condemned.append(pod)
            if self._one_by_one:
                return False
        return True

    def _roll(self) -> None:
        """Replace pods by those of the newest template, from the highest number down to the partition, one by one."""
        strategy = section(self._owner["spec"], "updateStrategy")
        if strategy.get("type") == "OnDelete":
            return
        partition = section(strategy, "rollingUpdate").get("partition") or 0
        for number in range(self._last, self._first + partition - 1, -1):
            pod = self._kept.get(number)
            if pod is None:
                return
            if text_map(pod["metadata"].get("labels")).get(POD_HASH) != self._update and not is_leaving(pod):
                self._plan.remove.append(pod)
                return
            if not self._works(pod):
                return

    def _works(self, pod: Object) -> bool:
        """Return whether the pod has been ready for long enough."""
        if not is_running_and_ready(pod):
            return False
        at = available_at(pod, self._owner["spec"].get("minReadySeconds") or 0)
        if at is not None and at > self._now:
            soonest = self._plan.wait_until
            self._plan.wait_until = at if soonest is None else min(soonest, at)
            return False
        return True


CLAIM: Final = "PersistentVolumeClaim"


class StatefulSetRule(OwnerRule):
    """Rule of StatefulSets."""

    summary = (
        "in order or Parallel, volumeClaimTemplates and what becomes of the claims, ordinals, partition, OnDelete, "
        "revisions"
    )
    owner = "StatefulSet"
    owner_type = ("apps/v1", "StatefulSet")
    children = (POD_OF_WORKLOAD, ORPHAN_POD, KIND)
    others = (CLAIM,)
    reporter = "statefulset-controller"
    user = "workload-controller"

    def belongs(self, owner: Object) -> Belongs | None:
        """Return a test that picks the owner's children among those that it `adopts`; None: those that the owner
        made.
        """
        selects = by_selector(owner["spec"].get("selector"))
        return Belongs(lambda pod: ordinal_of(owner, pod) is not None and selects(pod), selects.label)

    def words(self, owner: Object, child: Object) -> ChildWords:
        """Return the events about a child: for pods those of most of Kubernetes' controllers, for other kinds none."""
        if child["kind"] != "Pod":
            return ChildWords()
        who = f"Pod {child['metadata'].get('name', '')} in StatefulSet {owner['metadata']['name']}"
        return ChildWords(f"create {who} successful", f"create {who} failed error: ", f"delete {who} successful")

    def made_later(self, owner: Object, exists: Callable[[str, str], bool]) -> Iterator[str]:
        """Yield the pods that come one after the other, unless they may come together."""
        spec, name = section(owner, "spec"), owner["metadata"]["name"]
        if spec.get("podManagementPolicy") == "Parallel":
            return
        first = first_ordinal(owner)
        number = next(each for each in count(first) if not exists("Pod", f"{name}-{each}"))
        after = first + int(spec.get("replicas") or 0) - number - 1
        if number > first and after >= 0:
            more = f", and {after} more one after the other" if after else ""
            before, pod = f"{name}-{number - 1}", f"{name}-{number}"
            yield f"pod {pod} is made when {before} runs and is ready{more} (podManagementPolicy OrderedReady)"

    def work(self, family: OwnFamily, now: float) -> Agenda:
        """Return the requests for an owner that is not being deleted."""
        owner, pods, known = family.owner, family.of("Pod"), family.of(KIND)
        agenda = Agenda()
        found = revisions_of(owner, known, self.user)
        agenda.requests += found.requests
        if found.new is not None:
            agenda.new.append(found.new)
            return agenda  # the pods follow when it is there
        update = found.update
        name = section(owner, "status").get("currentRevision")
        current = next((each for each in known if each["metadata"]["name"] == name), update)
        plan = SetPlanner(owner, pods, update["metadata"]["name"], now).plan()
        agenda.due = plan.wait_until
        self._make(agenda, family, plan, current, update, now)
        self._take_away(agenda, family, plan, now)
        status = set_status(owner, pods, current, update, now)
        meta = owner["metadata"]
        if patch := diff_patch(section(owner, "status"), status):
            agenda.requests.append(
                UpdateStatus("StatefulSet", meta["namespace"], meta["name"], pack(patch), user=self.user)
            )
        used = {text_map(pod["metadata"].get("labels")).get(POD_HASH) for pod in pods}
        # a revision that a pod or the status names is needed to make that pod again
        names = {str(each) for each in used} | {status["currentRevision"], status["updateRevision"]}
        agenda.requests += outdated(owner, known, names, self.user)
        return agenda

    def _make(
        self, agenda: Agenda, family: OwnFamily, plan: SetPlan, current: Object, update: Object, now: float
    ) -> None:
        owner, there = family.owner, family.world[CLAIM]
        name = owner["metadata"]["name"]
        for ordinal in plan.new:
            revision = current if _keeps_revision(owner, ordinal) else update
            pod = pod_of_set(owner, revision, ordinal)
            for claim in missing_claims(owner, ordinal, there):
                agenda.requests.append(Create(pack(claim), user=self.user))
                what = f"create Claim {claim['metadata']['name']} Pod {pod['metadata']['name']}"
                text = f"{what} in StatefulSet {name} success"
                said = event(owner, "SuccessfulCreate", text, now, source=self.reporter)
                agenda.requests.append(Create(pack(said), user=self.user))
            agenda.new.append(pod)

    def _take_away(self, agenda: Agenda, family: OwnFamily, plan: SetPlan, now: float) -> None:
        owner = family.owner
        meta = owner["metadata"]
        for pod in plan.failed:
            who = f"{meta['namespace']}/{meta['name']} is recreating failed Pod {pod['metadata']['name']}"
            said = event(owner, "RecreatingFailedPod", f"StatefulSet {who}", now, source=self.reporter, warning=True)
            agenda.requests.append(Create(pack(said), user=self.user))
        policy = section(owner["spec"], "persistentVolumeClaimRetentionPolicy")
        for pod in plan.condemned if policy.get("whenScaled") == "Delete" else ():
            agenda.requests += self._claims_go_with(family, pod)
        for pod in (*plan.failed, *plan.remove):
            goes = pod["metadata"]
            agenda.requests.append(Delete("Pod", goes["namespace"], goes["name"], uid=goes["uid"], user=self.user))

    def _claims_go_with(self, family: OwnFamily, pod: Object) -> list[Patch]:
        """Return whether a claim's only owner is its pod, so that it goes with the pod."""
        meta, ordinal = pod["metadata"], ordinal_of(family.owner, pod)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        there, found = family.world[CLAIM], list[Patch]()
        for claim in claims_of(family.owner, ordinal or 0):
            key = (claim["metadata"]["namespace"], claim["metadata"]["name"])
            if key in there:
                patch = {"metadata": {"ownerReferences": [owner]}}
                found.append(Patch(CLAIM, *key, pack(patch), user=self.user))
        return found


def _keeps_revision(owner: Object, ordinal: int) -> bool:
    """Return whether a recreated pod keeps its old revision: it does below the partition."""
    strategy = section(owner["spec"], "updateStrategy")
    if strategy.get("type") == "OnDelete":
        return False
    return ordinal < first_ordinal(owner) + (section(strategy, "rollingUpdate").get("partition") or 0)


def set_status(owner: Object, pods: Sequence[Object], current: Object, update: Object, now: float) -> Object:
    """Return the new status: the set's pods counted by their revision."""
    least = owner["spec"].get("minReadySeconds") or 0
    names = [text_map(pod["metadata"].get("labels")).get(POD_HASH) for pod in pods if not is_leaving(pod)]
    ready = [pod for pod in pods if is_running_and_ready(pod)]
    available = sum((at := available_at(pod, least)) is not None and at <= now for pod in ready)
    present, newest = current["metadata"]["name"], update["metadata"]["name"]
    status: Object = {
        "observedGeneration": owner["metadata"].get("generation", 1),
        "replicas": len(pods),
        "availableReplicas": available,
        "collisionCount": 0,
    }
    updated = names.count(newest)
    rolling = section(owner["spec"], "updateStrategy").get("type") != "OnDelete"
    # the roll-out is complete (`completeRollingUpdate` in stateful_set_utils.go)
    if rolling and updated == len(pods) == len(ready):
        present = newest
    numbers = {
        "readyReplicas": len(ready),
        "currentReplicas": names.count(present),
        "updatedReplicas": updated,
    }
    # zeros are left out, as Go's `omitempty` leaves them out
    status |= {name: number for name, number in numbers.items() if number}
    return {**status, "currentRevision": present, "updateRevision": newest}
