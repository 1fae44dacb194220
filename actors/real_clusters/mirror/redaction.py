# SPDX-License-Identifier: Apache-2.0
"""Objects without the names that people gave: pseudonyms in their place, and besides only what schedulers read.

Equal names stay equal and in order, whatever field they stand in. A value that is not a name and is not read goes.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from pumice.config.errors import ConfigError
from pumice.config.input_file import read_bytes
from pumice.core.objects.hyper_node import NAME_LENGTH
from pumice.core.objects.metadata import Object, is_list, is_mapping, rows, section
from pumice.core.objects.pod import pod_index
from pumice.core.plugins import VOCABULARIES
from pumice.core.pseudonyms import Place, Pseudonyms

# --- The vocabulary of conditions

SEPARATED: Final = re.compile(r"[^\s,;/:()\[\]{}\"'<>=]+")
"""A word."""
AMOUNT: Final = re.compile(r"[+-]?[\d.%]+([munk]|[KMGTPE]i?|ms|s)?|\d+-\d+|[-|&+]+|Ascend\d\w*(-memory)?")
"""No name either; models of chips are in names of resources."""
_WRITTEN: Final = """
    Allocated Binding Bound CPU Completed Containers ContainersNotInitialized ContainersNotReady DeletionByPodGC
    DeletionByTaintManager DynamicResources EvictionByEvictionAPI Failed False HyperNode In Inqueue Insufficient
    Kubelet KubeletHasDiskPressure KubeletHasInsufficientMemory KubeletHasInsufficientPID KubeletHasNoDiskPressure
    KubeletHasSufficientMemory KubeletHasSufficientPID KubeletNotReady KubeletReady No NoRouteCreated Node
    NodeStatusNeverUpdated NodeStatusUnknown NotEnoughPods NotEnoughPodsOfTask NotEnoughResources Origin Pending
    Persistent PersistentVolume PersistentVolume's PersistentVolumeClaim PersistentVolumeClaims Pipelined Pod Pod's
    PodCompleted PodFailed PodGroup PodGroupNotReady Preemption PreemptionByKubeScheduler PreemptionByScheduler
    Queue ReadinessGatesNotReady Releasing Resource RouteCreated Running Schedulable SchedulerError SchedulingGated
    StorageClass Succeeded Task TerminationByKubelet True Undetermined Unknown UnknownContainerStatuses
    Unschedulable VolumeBinding a affinity after all allocate allocated allow alphabetical already amd.com and
    another anti-affinity any are assigned at available be because been being best-effort beyond bind binding bound
    but by can cannot capability check claim claims completed condition conditions constraints container containers
    controller cpu create created current deleted deleting deserved device didn didn't different disk dispatch does
    does't doesn't due empty enough enqueue ephemeral ephemeral-storage error exceeds existing failed find for found
    free from gang gpu group guarantee had has have helpful host hugepages-1Gi hugepages-2Mi hyperNode immediate in
    incoming incomplete info inqueue intel.com is isn isn't its job keys kubelet kubernetes.io label labels limit
    load lost manager match matching max memory minAvailable missing more must name networking no node node's
    node(s) nodes nodeselector non-existent none not numa number nvidia.com of on once one or origin other out
    overused persistent persistentvolume persistentvolumeclaim persistentvolumeclaims plugin pod pod's pods policy
    port ports possibly posting pre-predicates predicated preempted preemption pressure priority process progress
    proportional queue quota ready reason rejected released request requested required resource resources restricted
    revocable role room rules running s satisfied satisfy schedulable scheduled scheduler scheduling selector
    several shard single-numa-node skip skipped spec specified spread started state static status stopped storage
    sufficient t taint tainted task tasks terminated the them time to too topology unavailable unbound unready
    unschedulable untolerated update upper used using victims volcano.sh volume volumes wait waiting was were when
    with within without worker zone
"""
WORDS: Final = frozenset(_WRITTEN.split()).union(*(each.words.split() for each in VOCABULARIES))


NAMES: Final = frozenset((
    "name", "namespace", "queue", "parent", "nodeName", "nominatedNodeName", "claimName", "volumeName", "pool",
    "image", "storageClassName", "priorityClassName", "persistentVolumeName", "resourceClaimName",
    "resourceClaimTemplateName", "volumeClaimName", "volumeHandle", "nodeID", "namespaces", "names", "values",
    "mountPath",
    "nodesDesired", "nodesInUse", "nodesToAdd", "nodesToRemove",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
))  # fmt: skip
"""Fields that hold names, or lists of them."""
LABELS: Final = frozenset(("labels", "matchLabels", "nodeSelector"))
MEANING: Final = frozenset((
    "kubernetes.io/os", "kubernetes.io/arch", "scheduling.volcano.sh/queue-allocation-gate",
    *(name for each in VOCABULARIES for name in each.meanings),
))  # fmt: skip
"""Labels and annotations whose values rules or configurations know."""
NAMED: Final = (
    "scheduling.k8s.io/group-name", "volume.kubernetes.io/selected-node", "volume.beta.kubernetes.io/storage-class",
    "resource.kubernetes.io/pod-claim-name", "pumice.dev/user",
    *(name for each in VOCABULARIES for name in each.holds_names),
)  # fmt: skip
"""Annotations that hold names, as all of Volcano's do that have no MEANING; some hold several."""
VOLCANO: Final = ("volcano.sh",)
DOMAINS: Final = {
    "volcano.sh": "",
    "pumice.dev": "arrival|devices|duration|exit-code|node-usage|termination|user",
    **{domain: what for each in VOCABULARIES for domain, what in each.domains.items()},
}
READ: Final = tuple(domain for domain, what in DOMAINS.items() if not what)
"""Annotations of these domains are kept, and those that are NAMED, have a MEANING or are VOLUMES'."""
OWN: Final = re.compile("|".join(rf"{re.escape(domain)}/({what})" for domain, what in DOMAINS.items() if what))
"""Of other domains, what is read: in anything else people may have written as they like."""
VOLUMES: Final = tuple(
    f"pv.kubernetes.io/{each}" for each in ("bind-completed", "bound-by-controller", "provisioned-by")
)
KEPT: Final = {name: read for each in VOCABULARIES for name, read in each.kept.items()}
"""Annotations that Pumice reads in part."""
KNOWN: Final = frozenset((*NAMED, *MEANING, *VOLUMES, *KEPT))
DROPPED: Final = frozenset((
    "env", "envFrom", "command", "args", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe",
    "volumeMounts", "workingDir", "securityContext", "imagePullSecrets", "serviceAccountName", "serviceAccount",
    "hostAliases", "hostname", "subdomain", "dnsConfig", "addresses", "nodeInfo", "daemonEndpoints", "providerID",
    "podCIDR", "podCIDRs", "podIP", "podIPs", "hostIP", "hostIPs", "containerStatuses", "initContainerStatuses",
    "ephemeralContainerStatuses", "imageID", "containerID",
    "generateName", "finalizers", "plugins", "taskStatusCount", "controlledResources", "volumesInUse",
    "volumesAttached", "managedFields", "nodePublishSecretRef", "volumeAttributes", "parameters", "mountOptions",
    "description", "config", "path", "message", "externalID",
))  # fmt: skip
VOLUME: Final = frozenset(("name", "persistentVolumeClaim", "ephemeral", "csi"))
"""The fields of a pod's volume that are kept."""
CLAIMED: Final = frozenset(("mountPath", "volumeClaimName", "volumeClaim"))
"""The fields of a Volcano Job's volume that are kept."""
SOURCES: Final = frozenset((
    "hostPath", "nfs", "local", "gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "rbd",
    "iscsi", "fc", "glusterfs", "cinder", "flexVolume", "portworxVolume", "quobyte", "scaleIO", "storageos", "flocker",
    "photonPersistentDisk", "vsphereVolume",
))  # fmt: skip
"""Where a PersistentVolume's data is: that it is of this sort stays, where goes."""
MODELS: Final = {label: re.compile(what) for each in VOCABULARIES for label, what in each.models.items()}
"""Labels with models of devices, and those of their values that are models; any other is a name."""
WHOLE: Final = frozenset(("ConfigMap", "CSIDriver", "DeviceClass"))
"""Kinds in which names are those of configurations, drivers and resources."""
DRIVERS: Final = frozenset(("CSINode", "ResourceClaim", "ResourceSlice"))
"""Kinds in which rules read names of drivers, requests and devices; names of objects are only under OBJECTS."""
OBJECTS: Final = frozenset(("metadata", "pool", "reservedFor", "ownerReferences"))
NUMBER: Final = re.compile(r"[+-]?\d*|true|false|True|False")
"""No names."""
DRAWN: Final = re.compile(r"[0-9a-f-]{32,36}")
"""A uid as servers draw it; others are made of names."""
LISTED: Final = re.compile(r"\^\(?([a-z0-9.-]+(?:\|[a-z0-9.-]+)*)\)?\$")
MATCHES_NOTHING: Final = "^$"
LEVELS: Final = re.compile(r"[^,;/]+")


class Redaction:
    """Replaces names. `name` returns the pseudonym of a name, `known` that of a name met before, otherwise None."""

    def __init__(self, name: Callable[[str], str], known: Callable[[str], str | None]) -> None:
        self.name, self._known = name, known

    def redacted(self, kind: str, obj: Object) -> Object:
        """Return a redacted copy of the object."""
        if kind in WHOLE:
            return self._configuration(obj) if kind == "ConfigMap" else obj
        meta = section(obj, "metadata")
        # `_own_name` replaces the name: by the rule for fields the number at the end of a pod's name would be lost.
        nameless = {key: value for key, value in meta.items() if key != "name"}
        found: Object = self._mapping("", {**obj, "metadata": nameless}, drivers=kind in DRIVERS)
        found["metadata"]["name"] = self._own_name(kind, meta)
        # Rules order HyperNodes by the length of their names first (`core.state.hypernodes`); a pseudonym has another
        # one.
        if kind == "HyperNode":
            length = {NAME_LENGTH: str(len(meta["name"]))}
            found["metadata"]["annotations"] = section(found["metadata"], "annotations") | length
        return found

    def _configuration(self, obj: Object) -> Object:
        shown = (each.renamed(obj, self.name) for each in VOCABULARIES if each.renamed is not None)
        return next((each for each in shown if each is not None), obj)

    def _own_name(self, kind: str, meta: Object) -> str:
        name = str(meta["name"])
        if kind == "Pod":
            return self.pod(name)
        for each in rows(meta, "ownerReferences"):  # a pod's own volumes are found by its name
            if kind == "PersistentVolumeClaim" and each.get("kind") == "Pod" and name.startswith(f"{each['name']}-"):
                return f"{self.pod(each['name'])}-{self.name(name.removeprefix(each['name'] + '-'))}"
        return self.name(name)

    def pod(self, name: str) -> str:
        """Return the pseudonym of a pod: pods of one task are ordered by the number at the end of their names, so it
        stays.
        """
        if pod_index(name) is None:
            return self.name(name)
        before, _, number = name.rpartition("-")
        return f"{self.name(before)}-0-{number}"

    # --- by field

    def _any(self, key: str, value: object, *, drivers: bool) -> Any:
        if is_mapping(value):
            return self._mapping(key, value, drivers=drivers)
        if is_list(value):
            return [self._any(key, each, drivers=drivers) for each in value]
        if not isinstance(value, str):
            return value
        if key == "pattern":
            return self._pattern(value)
        return self.name(value) if key in NAMES or (key == "uid" and not DRAWN.fullmatch(value)) else value

    def _mapping(self, key: str, fields: Object, *, drivers: bool) -> Object:
        if key in LABELS:
            return {label: self._label(label, value) for label, value in fields.items()}
        if key == "annotations":
            return {
                each: self._annotation(each, value)
                for each, value in fields.items()
                if each in KNOWN or _is_of(each, READ) or OWN.fullmatch(each)
            }
        if key == "volumes":
            # Pods and Volcano Jobs both have `volumes`, of different types; only a Job's (`VolumeSpec`) has a
            # `mountPath`.
            kept = CLAIMED if "mountPath" in fields else VOLUME
            fields = {each: value for each, value in fields.items() if each in kept}
        found: Object = {}
        for each, value in fields.items():
            if each in SOURCES:
                found[each] = {}
            elif each == "name" and drivers and key not in OBJECTS:
                found[each] = value
            elif each not in DROPPED:
                found[each] = self._any(each, value, drivers=drivers)
        # After the fields: how a value is redacted follows from the label in `key` beside it.
        self._terms(fields, found)
        # Everywhere else a `message` is DROPPED: only in conditions it is a scheduler's.
        if key == "conditions":
            found |= {each: self.words(str(fields[each])) for each in ("reason", "message") if fields.get(each)}
        if key == "minTaskMember":
            return {self.name(task): least for task, least in fields.items()}
        return found

    def _terms(self, fields: Object, found: Object) -> None:
        """Redact requirements on labels, taints and tolerations."""
        if "key" in fields:
            label = str(fields["key"])
            if isinstance(fields.get("value"), str):
                found["value"] = self._label(label, fields["value"])
            if isinstance(fields.get("values"), list):
                found["values"] = [self._label(label, each) for each in fields["values"]]

    def _label(self, label: str, value: object) -> Any:
        # The operators Gt and Lt compare numbers, so they stay.
        if not isinstance(value, str) or NUMBER.fullmatch(value):
            return value
        model = MODELS.get(label)
        return value if label in MEANING or (model and model.fullmatch(value)) else self.name(value)

    def _annotation(self, name: str, value: object) -> Any:
        if name in KEPT:
            return KEPT[name](value)
        named = name in NAMED or (_is_of(name, VOLCANO) and name not in MEANING)
        if not isinstance(value, str) or not named or NUMBER.fullmatch(value):
            return value
        return LEVELS.sub(lambda found: self.name(found[0]), value)

    def _pattern(self, pattern: str) -> str:
        """Redact a pattern of names: a list of them stays a list; any other is replaced by one that matches none."""
        found = LISTED.fullmatch(pattern)
        return MATCHES_NOTHING if found is None else f"^({'|'.join(map(self.name, found[1].split('|')))})$"

    def words(self, text: str) -> str:
        """Return a scheduler's message with its names replaced. A word is a name when it is known as one, or is not a
        scheduler's word, even if it occurs here first.
        """
        return SEPARATED.sub(lambda found: self._word(found[0]), text)

    def _word(self, written: str) -> str:
        word = written.strip(".")
        shown = self._known(word)
        # A node may be called `free`: known names come before the words of schedulers.
        if shown is None:
            shown = word if word in WORDS or AMOUNT.fullmatch(word) else self.pod(word)
        return written.replace(word, shown, 1) if word else written


def _is_of(label: str, domains: Sequence[str]) -> bool:
    domain = label.partition("/")[0]
    return any(domain == each or domain.endswith(f".{each}") for each in domains)


# --- The file of pseudonyms

STEP: Final = 1_000
"""Neighbours lie up to so far apart, by chance: the number of names between them cannot be inferred."""

_Line = tuple[str, Place]


class PseudonymFile:
    """Pseudonyms in a file, one line a name: a JSON list of the name and its place. Only its owner may read it. Raises
    ConfigError.
    """

    def __init__(self, path: Path) -> None:
        # Not seeded: with a known seed the distances could be computed, and the names between two others counted.
        chance = random.SystemRandom()
        self._path = path
        self._new: list[_Line] = []
        self._names = Pseudonyms(lambda: chance.randint(1, STEP), self._given)
        self._restore()
        self.redaction = Redaction(self._names.of, self._names.known)

    def save(self) -> None:
        """Save all new pseudonyms to disk, before any object is stored that contains them."""
        if not self._new:
            return
        lines = b"".join(msgspec.json.encode(each) + b"\n" for each in self._new)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, lines)
            os.fsync(file)
        finally:
            os.close(file)
        self._new.clear()

    def _given(self, name: str, place: Place) -> None:
        self._new.append((name, place))

    def _restore(self) -> None:
        try:
            content = read_bytes(self._path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", source=str(self._path)) from error
        whole, _, torn = content.rpartition(b"\n")
        for number, line in enumerate(whole.split(b"\n") if whole else (), 1):
            try:
                name, place = msgspec.json.decode(line, type=_Line)
            except msgspec.MsgspecError as error:
                problem = f"line {number}: expected a name and its place, was {line[:60]!r}"
                raise ConfigError(problem, source=str(self._path)) from error
            self._names.restore(name, place)
        if torn:  # nothing was stored in which it stood
            with self._path.open("r+b") as file:
                file.truncate(len(content) - len(torn))
