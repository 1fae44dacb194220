# SPDX-License-Identifier: Apache-2.0
"""The controller of Deployments: a ReplicaSet for each of its templates, with pods moved to the newest.

Source: Kubernetes' deployment controller. A paused Deployment is scaled, but not rolled out. A template that was there
before is its ReplicaSet again, under a new number.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from pumice.cluster.controllers.family import Agenda, ChildWords, OwnerRule, OwnFamily
from pumice.cluster.controllers.pods_of import Belongs, by_selector, reference
from pumice.cluster.kube.budgets import scaled_value
from pumice.cluster.kube.events import event
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.cluster.kube.statuses import timestamp
from pumice.core.go_numbers import parse_int
from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch, UpdateStatus
from pumice.core.objects.metadata import Object, labels_of, parse_time, rows, section, text_map
from pumice.core.objects.pod import TEMPLATE_HASH
from pumice.storage.codec import pack

# --- Rollouts: how many pods each ReplicaSet is to have

MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
"""On a ReplicaSet: how many pods all of them together might have when it was last scaled."""


def replicas_of(replica_set: Object) -> int:
    """Return the requested number of replicas."""
    return int(section(replica_set, "spec").get("replicas", 1))


def has(replica_set: Object, what: str) -> int:
    """Return a number of its status: `replicas`, `readyReplicas`, `availableReplicas`."""
    return int(section(replica_set, "status").get(what) or 0)


def bounds(deployment: Object) -> tuple[int, int]:
    """Return the number of pods allowed beyond the wanted ones, and the number that may be missing."""
    spec = deployment["spec"]
    wanted, strategy = int(spec.get("replicas", 1)), section(spec, "strategy")
    if strategy.get("type") == "Recreate":
        return 0, 0
    rolling = section(strategy, "rollingUpdate")
    # one is rounded up and the other down, as in Kubernetes' `ResolveFenceposts`: both keep more pods running
    surge = scaled_value(rolling.get("maxSurge", "25%"), wanted, up=True)
    missing = scaled_value(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    # with both at 0 nothing could move: Kubernetes' `ResolveFenceposts` lets one be missing then
    return surge, min(missing, wanted) if surge or missing else min(1, wanted)


def most_pods(deployment: Object) -> int:
    """Return the largest number of pods at a time."""
    wanted = int(deployment["spec"]["replicas"])
    return wanted + bounds(deployment)[0] if wanted else 0


def recreated(deployment: Object, new: Object | None, old: Sequence[Object]) -> dict[str, int]:
    """Delete all old pods, then create the new ones."""
    wanted = {each["metadata"]["name"]: 0 for each in old}
    if new is not None:
        # the status, too: a ReplicaSet that was scaled to 0 still has the pods that are ending
        gone = not any(replicas_of(each) or has(each, "replicas") for each in old)
        wanted[new["metadata"]["name"]] = int(deployment["spec"]["replicas"]) if gone else replicas_of(new)
    return wanted


def rolled(deployment: Object, new: Object, old: Sequence[Object]) -> dict[str, int]:
    """Return one step: the new set grows as far as there may be more pods; otherwise old ones shrink as far as enough
    are left.
    """
    wanted, (surge, missing) = int(deployment["spec"]["replicas"]), bounds(deployment)
    asked = {each["metadata"]["name"]: replicas_of(each) for each in (*old, new)}
    name, total = new["metadata"]["name"], sum(asked.values())
    # too many of the new one go before anything else (`reconcileNewReplicaSet` in rolling.go)
    if asked[name] > wanted:
        return {**asked, name: wanted}
    room = min(wanted + surge - total, wanted - asked[name])
    if room > 0:
        return {**asked, name: asked[name] + room}
    # new pods that are not available count against what old ones may lose (`reconcileOldReplicaSets`)
    lost = max(asked[name] - has(new, "availableReplicas"), 0)
    spare = total - (wanted - missing) - lost
    for each in old:  # those that are not available first
        idle = max(asked[each["metadata"]["name"]] - has(each, "availableReplicas"), 0)
        taken = max(min(idle, spare), 0)
        asked[each["metadata"]["name"]] -= taken
        spare -= taken
    available = sum(has(each, "availableReplicas") for each in (*old, new))
    surplus = min(available - (wanted - missing), spare)
    for each in old:
        taken = max(min(asked[each["metadata"]["name"]], surplus), 0)
        asked[each["metadata"]["name"]] -= taken
        surplus -= taken
    return asked


def scaled(deployment: Object, new: Object | None, old: Sequence[Object]) -> dict[str, int]:
    """Scale after a change of the number of pods: each ReplicaSet gets its share, the largest one the rest."""
    wanted = int(deployment["spec"]["replicas"])
    active = [each for each in (*old, *([new] if new is not None else ())) if replicas_of(each)]
    # with one ReplicaSet at work there is nothing to share out (`FindActiveOrLatest`)
    only = active[0] if len(active) == 1 else new if not active else None
    if only is not None:
        return {only["metadata"]["name"]: wanted}
    # the new one is complete: old ones are not needed any more (`IsSaturated`)
    if new is not None and replicas_of(new) == has(new, "availableReplicas") == wanted:
        return {each["metadata"]["name"]: 0 for each in old}
    if section(deployment["spec"], "strategy").get("type") == "Recreate":
        return {}
    total = sum(map(replicas_of, active))
    left = most_pods(deployment) - total
    active.sort(key=replicas_of, reverse=True)
    asked: dict[str, int] = {}
    for each in active:
        share = _proportion(deployment, each)
        share = max(min(share, left), 0) if left > 0 else min(max(share, left), 0)
        asked[each["metadata"]["name"]] = max(replicas_of(each) + share, 0)
        left -= share
    if active:
        first = active[0]["metadata"]["name"]
        asked[first] = max(asked[first] + left, 0)
    return asked


def _proportion(deployment: Object, replica_set: Object) -> int:
    """Return the change in pods that is this ReplicaSet's share of the new number."""
    before = parse_int(text_map(replica_set["metadata"].get("annotations")).get(MAX_REPLICAS, ""), 32) or 0
    if not deployment["spec"]["replicas"]:
        return -replicas_of(replica_set)
    # rounded half up, as `getReplicaSetFraction` rounds
    now = int(replicas_of(replica_set) * most_pods(deployment) / (before or replicas_of(replica_set)) + 0.5)
    return now - replicas_of(replica_set)


# --- The status
# Source: Kubernetes' `deployment/progress.go`.

Words = tuple[str, str, str]
"""Status, reason and message of a condition."""

_COUNTED: Final = ("replicas", "readyReplicas", "availableReplicas")
_DONE: Final = "NewReplicaSetAvailable"
_PAUSED: Final = "DeploymentPaused"
_LATE: Final = "ProgressDeadlineExceeded"


def deployment_status(deployment: Object, newest: Object | None, sets: Sequence[Object], now: float) -> Object:
    """Return the Deployment's new status; `newest` is the ReplicaSet of its template, one of its `sets`."""
    numbers = {name: sum(has(each, name) for each in sets) for name in _COUNTED}
    numbers["updatedReplicas"] = has(newest, "replicas") if newest is not None else 0
    numbers["unavailableReplicas"] = max(sum(map(replicas_of, sets)) - numbers["availableReplicas"], 0)
    status: Object = {
        "observedGeneration": deployment["metadata"].get("generation", 1),
        **{name: number for name, number in numbers.items() if number},
    }
    before = {one.get("type"): one for one in section(deployment, "status").get("conditions") or ()}
    given = {
        "Available": _available(deployment, numbers["availableReplicas"]),
        "Progressing": _progressing(deployment, newest, numbers, before.get("Progressing"), now),
    }
    stamp, moved = timestamp(now), _moved(section(deployment, "status"), numbers)
    return {
        **status,
        "conditions": [
            _condition(before.get(name), name, values, stamp, again=moved and name == "Progressing")
            for name, values in given.items()
        ],
    }


def timed_out_at(deployment: Object, newest: Object | None) -> float | None:
    """Return when the roll-out exceeds its progress deadline; None when it is complete, or has no deadline."""
    spec = deployment["spec"]
    found = [one for one in rows(section(deployment, "status"), "conditions") if one.get("type") == "Progressing"]
    progress = found[0] if found else Object()
    if spec.get("paused") or newest is None or progress.get("reason") in (None, _DONE, _LATE, _PAUSED):
        return None
    return parse_time(progress.get("lastUpdateTime")) + int(spec.get("progressDeadlineSeconds") or 600)


def _available(deployment: Object, available: int) -> Words:
    if available >= int(deployment["spec"].get("replicas", 1)) - bounds(deployment)[1]:
        return "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
    return "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."


def _progressing(
    deployment: Object, newest: Object | None, numbers: dict[str, int], before: Object | None, now: float
) -> Words:
    wanted, reason = int(deployment["spec"].get("replicas", 1)), (before or {}).get("reason")
    name = newest["metadata"]["name"] if newest is not None else ""
    which = f'ReplicaSet "{name}"' if name else f'Deployment "{deployment["metadata"]["name"]}"'
    if deployment["spec"].get("paused"):
        return "Unknown", _PAUSED, "Deployment is paused"
    done = newest is not None and all(
        numbers[what] == wanted for what in ("updatedReplicas", "replicas", "availableReplicas")
    )
    if done:
        return "True", _DONE, f"{which} has successfully progressed."
    due = timed_out_at(deployment, newest)
    moved = _moved(section(deployment, "status"), numbers)
    if not moved and (reason == _LATE or (due is not None and now >= due)):
        return "False", _LATE, f"{which} has timed out progressing."
    if reason == _DONE and newest is not None and has(newest, "replicas") == numbers["replicas"] and not moved:
        return "True", _DONE, (before or {}).get("message", "")  # a pod that is missing now does not begin a roll-out
    return "True", "ReplicaSetUpdated", f"{which} is progressing."


def _moved(status: Object, numbers: dict[str, int]) -> bool:
    """Return whether there are more new, fewer old, or more ready pods than before."""

    def before(name: str) -> int:
        return int(status.get(name) or 0)

    old = before("replicas") - before("updatedReplicas")
    return (
        numbers["updatedReplicas"] > before("updatedReplicas")
        or numbers["replicas"] - numbers["updatedReplicas"] < old
        or numbers["readyReplicas"] > before("readyReplicas")
        or numbers["availableReplicas"] > before("availableReplicas")
    )


def _condition(before: Object | None, name: str, values: Words, stamp: str, *, again: bool) -> Object:
    """Return the condition with its old times, as far as nothing changed; `again`: there was progress."""
    status, reason, message = values
    made = {"type": name, "status": status, "reason": reason, "message": message}
    known = before or {}
    same = made.items() <= known.items() and not (again and reason != _DONE)
    updated = known.get("lastUpdateTime", stamp) if same else stamp
    turned = known.get("lastTransitionTime", stamp) if known.get("status") == status else stamp
    return {**made, "lastUpdateTime": updated, "lastTransitionTime": turned}


USER: Final = "workload-controller"
REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
SCALING: Final = "ScalingReplicaSet"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_OWN: Final = (LAST_APPLIED, REVISION, HISTORY, DESIRED, MAX_REPLICAS, "deprecated.deployment.rollback.to")
"""Annotations that a ReplicaSet does not have from its Deployment."""


class DeploymentRule(OwnerRule):
    """Rule of Deployments."""

    summary = (
        "a ReplicaSet for each template; RollingUpdate (maxSurge, maxUnavailable) and Recreate, pause, history and "
        "rollback, proportional scaling, progress deadline"
    )
    owner = "Deployment"
    owner_type = ("apps/v1", "Deployment")
    children = ("ReplicaSet",)
    adopts = "ReplicaSet"
    reporter = "deployment-controller"
    user = USER

    def belongs(self, owner: Object) -> Belongs:
        """Return a test that picks the owner's children among those that it `adopts`; None: those that the owner
        made.
        """
        return by_selector(owner["spec"].get("selector"))

    def words(self, owner: Object, child: Object) -> ChildWords:
        """Return the events about a child: for pods those of most of Kubernetes' controllers, for other kinds none."""
        name = child["metadata"].get("name", "")
        made = f"Scaled up replica set {name} from 0 to {replicas_of(child)}"
        failed = f'Failed to create new replica set "{name}": '
        return ChildWords(
            made if replicas_of(child) else "", failed, made_as=SCALING, refused_as="ReplicaSetCreateError"
        )

    def work(self, family: OwnFamily, now: float) -> Agenda:
        """Return the requests for an owner that is not being deleted."""
        owner, agenda = family.owner, Agenda()
        sets = sorted(family.of("ReplicaSet"), key=_age)
        # the oldest of several with the template, as Kubernetes' `FindNewReplicaSet` chooses
        new = next((each for each in sets if template_of(each) == owner["spec"]["template"]), None)
        old = [each for each in sets if each is not new]
        if not owner["spec"].get("paused"):
            if new is None:
                agenda.new.append(self._made(owner, old))
            else:
                agenda.requests += _numbered(owner, new, old)
        agenda.requests += self._moved(owner, new, old, now)
        agenda.requests += _cleaned(owner, new, old)
        agenda.requests += _status(owner, new, sets, now)
        agenda.later = timed_out_at(owner, new)
        return agenda

    def _made(self, owner: Object, old: Sequence[Object]) -> Object:
        made = replica_set_of(owner, _newest(old) + 1)
        spec = made["spec"]
        wanted, (surge, _) = owner["spec"]["replicas"], bounds(owner)
        total = sum(map(replicas_of, old))
        spec["replicas"] = max(min(wanted, wanted + surge - total), 0)
        if section(owner["spec"], "strategy").get("type") == "Recreate" and any(
            replicas_of(each) or has(each, "replicas") for each in old
        ):
            spec["replicas"] = 0
        return made

    def _moved(self, owner: Object, new: Object | None, old: Sequence[Object], now: float) -> list[ApiRequest]:
        """Set the number of pods of every ReplicaSet."""
        sets = [*old, *([new] if new is not None else ())]
        recreate = section(owner["spec"], "strategy").get("type") == "Recreate"
        if owner["spec"].get("paused") or _rescaled(owner, sets):
            wanted = scaled(owner, new, old)
        elif recreate:
            wanted = recreated(owner, new, old)
        elif new is not None:
            wanted = rolled(owner, new, old)
        else:
            wanted = {}
        requests: list[ApiRequest] = []
        for each in sets:
            meta = each["metadata"]
            number = wanted.get(meta["name"], replicas_of(each))
            marks = _marks(owner) if number else {}
            patch: Object = {"spec": {"replicas": number}} if number != replicas_of(each) else {}
            if marks and not marks.items() <= text_map(meta.get("annotations")).items():
                patch["metadata"] = {"annotations": marks}
            if patch:
                requests.append(Patch("ReplicaSet", meta["namespace"], meta["name"], pack(patch), user=USER))
            if "spec" in patch:
                said = event(owner, SCALING, _scaled(each, number), now, source=self.reporter)
                requests.append(Create(pack(said), user=USER))
        return requests


def _scaled(replica_set: Object, number: int) -> str:
    before = replicas_of(replica_set)
    way = "up" if number > before else "down"
    return f"Scaled {way} replica set {replica_set['metadata']['name']} from {before} to {number}"


def _age(replica_set: Object) -> tuple[str, int, str]:
    """Return the sort key that puts the oldest first."""
    meta = replica_set["metadata"]
    return meta.get("creationTimestamp") or "", _revision(replica_set), meta["name"]


def _revision(obj: Object) -> int:
    return parse_int(text_map(obj["metadata"].get("annotations")).get(REVISION, "")) or 0


def _newest(sets: Sequence[Object]) -> int:
    return max(map(_revision, sets), default=0)


def _marks(owner: Object) -> dict[str, str]:
    """Return the annotations that record the wanted number of pods when a ReplicaSet is scaled."""
    return {DESIRED: str(owner["spec"]["replicas"]), MAX_REPLICAS: str(most_pods(owner))}


def _rescaled(owner: Object, sets: Sequence[Object]) -> bool:
    """Return whether the wanted number of pods has changed since its ReplicaSets were last scaled."""
    said = (text_map(each["metadata"].get("annotations")).get(DESIRED) for each in sets if replicas_of(each))
    return any(number is not None and number != str(owner["spec"]["replicas"]) for number in said)


def _numbered(owner: Object, new: Object, old: Sequence[Object]) -> list[ApiRequest]:
    """Give the newest template the highest number, and its Deployment the same; other annotations are handed on."""
    meta, known = new["metadata"], text_map(new["metadata"].get("annotations"))
    # a template that comes back in a rollback gets the highest number anew; its old number goes into the history
    number = max(_newest(old) + 1, _revision(new))
    wanted = {**_handed_on(owner), REVISION: str(number)}
    if 0 < _revision(new) < number:
        wanted[HISTORY] = ",".join(filter(None, (known.get(HISTORY, ""), str(_revision(new)))))
    patch: Object = {}
    if not wanted.items() <= known.items():
        patch["metadata"] = {"annotations": wanted}
    if new["spec"].get("minReadySeconds", 0) != owner["spec"].get("minReadySeconds", 0):
        patch["spec"] = {"minReadySeconds": owner["spec"].get("minReadySeconds", 0)}
    requests: list[ApiRequest] = []
    if patch:
        requests.append(Patch("ReplicaSet", meta["namespace"], meta["name"], pack(patch), user=USER))
    if _revision(owner) != number:
        its, said = owner["metadata"], {"metadata": {"annotations": {REVISION: str(number)}}}
        requests.append(Patch("Deployment", its["namespace"], its["name"], pack(said), user=USER))
    return requests


def _cleaned(owner: Object, new: Object | None, old: Sequence[Object]) -> list[ApiRequest]:
    """Delete the oldest ReplicaSets beyond the number to keep, once all pods are of the newest template."""
    limit = owner["spec"].get("revisionHistoryLimit", 10)
    if new is None or has(new, "availableReplicas") < owner["spec"]["replicas"]:
        return []
    # spec and status: a ReplicaSet whose pods are still ending must stay until they have
    empty = [each for each in old if not replicas_of(each) and not has(each, "replicas")]
    empty.sort(key=lambda each: (_revision(each), each["metadata"]["name"]))
    gone = [each["metadata"] for each in empty[: max(len(empty) - limit, 0)]]
    return [Delete("ReplicaSet", meta["namespace"], meta["name"], uid=meta["uid"], user=USER) for meta in gone]


def _status(owner: Object, new: Object | None, sets: Sequence[Object], now: float) -> list[ApiRequest]:
    meta = owner["metadata"]
    patch = diff_patch(section(owner, "status"), deployment_status(owner, new, sets, now))
    return [UpdateStatus("Deployment", meta["namespace"], meta["name"], pack(patch), user=USER)] if patch else []


def _handed_on(owner: Object) -> dict[str, str]:
    """Return a Deployment's annotations without those about itself: with the last-applied one, `kubectl apply --prune`
    would delete its ReplicaSets.
    """
    annotations = text_map(owner["metadata"].get("annotations"))
    return {name: value for name, value in annotations.items() if name not in _OWN}


def replica_set_of(deployment: Object, revision: int) -> Object:
    """Return the ReplicaSet of a Deployment's present template, which its name identifies."""
    meta, spec = deployment["metadata"], deployment["spec"]
    mark = blake2b(pack(spec["template"]), digest_size=5).hexdigest()
    selector = dict(spec["selector"])
    selector["matchLabels"] = {**text_map(selector.get("matchLabels")), TEMPLATE_HASH: mark}
    template = dict(spec["template"])
    labels = {**labels_of(template), TEMPLATE_HASH: mark}
    template["metadata"] = {**section(template, "metadata"), "labels": labels}
    made: Object = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-{mark}",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": {**_handed_on(deployment), REVISION: str(revision), **_marks(deployment)},
            "ownerReferences": [reference(deployment)],
        },
        "spec": {"replicas": spec["replicas"], "selector": selector, "template": template},
    }
    if spec.get("minReadySeconds"):
        made["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    return made


def template_of(replica_set: Object) -> Object:
    """Return the template that its Deployment has, without the mark (Kubernetes' `EqualIgnoreHash`)."""
    template: Object = replica_set["spec"]["template"]
    meta = section(template, "metadata")
    labels = {name: value for name, value in text_map(meta.get("labels")).items() if name != TEMPLATE_HASH}
    return {**template, "metadata": {**meta, "labels": labels}}
