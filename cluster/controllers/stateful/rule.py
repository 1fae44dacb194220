"""What the controller of StatefulSets wants: pods with numbers, in order, each with its own claims.

Source: Kubernetes' statefulset controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.controllers.adoption import Belongs, by_selector
from pumice.cluster.controllers.pods_of import available_at, is_leaving
from pumice.cluster.controllers.revisions import KIND, POD_HASH, outdated, revisions_of
from pumice.cluster.controllers.rule import Agenda, ChildWords, OwnerRule, OwnFamily
from pumice.cluster.controllers.stateful.plan import SetPlan, SetPlanner
from pumice.cluster.controllers.stateful.pods import (
    claims_of,
    first_ordinal,
    is_running_and_ready,
    missing_claims,
    ordinal_of,
    pod_of_set,
)
from pumice.cluster.kube.events import event
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.core.messages.commands import Create, Delete, Patch, UpdateStatus
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.objects.parts import POD_OF_NOBODY, POD_OF_WORKLOAD
from pumice.storage.codec import pack

CLAIM: Final = "PersistentVolumeClaim"


class StatefulSetRule(OwnerRule):
    """What StatefulSets want."""

    owner = "StatefulSet"
    owner_type = ("apps/v1", "StatefulSet")
    children = (POD_OF_WORKLOAD, POD_OF_NOBODY, KIND)
    others = (CLAIM,)
    reporter = "statefulset-controller"
    user = "workload-controller"

    def belongs(self, owner: Object) -> Belongs | None:
        """Which of those that it `adopts` are the owner's, by what they are like; None: those that it has made."""
        selects = by_selector(owner["spec"].get("selector"))
        return lambda pod: ordinal_of(owner, pod) is not None and selects(pod)

    def words(self, owner: Object, child: Object) -> ChildWords:
        """What is said about a child: of pods what most of Kubernetes' controllers say, of anything else nothing."""
        if child["kind"] != "Pod":
            return ChildWords()
        who = f"Pod {child['metadata'].get('name', '')} in StatefulSet {owner['metadata']['name']}"
        return ChildWords(f"create {who} successful", f"create {who} failed error: ", f"delete {who} successful")

    def work(self, family: OwnFamily, now: float) -> Agenda:
        """What to ask of the api for an owner that is not being deleted."""
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
        """A claim whose only owner is its pod goes when the pod has gone."""
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
    """Whether a pod that comes again is as it was: below the partition."""
    strategy = section(owner["spec"], "updateStrategy")
    if strategy.get("type") == "OnDelete":
        return False
    return ordinal < first_ordinal(owner) + (section(strategy, "rollingUpdate").get("partition") or 0)


def set_status(owner: Object, pods: Sequence[Object], current: Object, update: Object, now: float) -> Object:
    """The status as it is to be: its pods counted, by the revision they are of."""
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
    if rolling and updated == len(pods) == len(ready):
        present = newest
    numbers = {
        "readyReplicas": len(ready),
        "currentReplicas": names.count(present),
        "updatedReplicas": updated,
    }
    status |= {name: number for name, number in numbers.items() if number}
    return {**status, "currentRevision": present, "updateRevision": newest}
