"""Words of which schedulers and kubelets make the conditions that they write: what is none of them may be a name."""

from __future__ import annotations

import re
from typing import Final

SEPARATED: Final = re.compile(r"[^\s,;/:()\[\]{}\"'<>=]+")
"""A word."""
AMOUNT: Final = re.compile(r"[+-]?[\d.%]+([munk]|[KMGTPE]i?|ms|s)?|\d+-\d+|[-|&+]+")
"""No name either."""
_WRITTEN: Final = """
    Allocated Binding Bound CPU Completed Containers ContainersNotInitialized ContainersNotReady DeletionByPodGC
    DeletionByTaintManager EvictionByEvictionAPI Failed False HyperNode Inqueue Insufficient Kubelet
    KubeletHasDiskPressure KubeletHasInsufficientMemory KubeletHasInsufficientPID KubeletHasNoDiskPressure
    KubeletHasSufficientMemory KubeletHasSufficientPID KubeletNotReady KubeletReady No NoRouteCreated Node
    NodeStatusNeverUpdated NodeStatusUnknown NotEnoughPods NotEnoughPodsOfTask NotEnoughResources Origin Pending
    Persistent PersistentVolume PersistentVolume's PersistentVolumeClaim PersistentVolumeClaims Pipelined Pod
    Pod's PodCompleted PodFailed PodGroup PodGroupNotReady Preemption PreemptionByKubeScheduler
    PreemptionByScheduler Queue ReadinessGatesNotReady Releasing Resource RouteCreated Running Schedulable
    SchedulerError SchedulingGated StorageClass Succeeded Task TerminationByKubelet True Undetermined Unknown
    UnknownContainerStatuses Unschedulable VolumeBinding a affinity after all allocated allow alphabetical
    already amd.com and another anti-affinity any are assigned at available be because been being beyond bind
    binding bound but by can cannot capability claim claims completed condition conditions constraints container
    containers controller cpu create created current deleted deleting deserved didn didn't disk does does't
    doesn't due enough enqueue ephemeral ephemeral-storage exceeds existing failed find for found free from gang
    gpu gpu-memory gpu-number group guarantee had has have helpful host huawei.com hugepages-1Gi hugepages-2Mi
    hyperNode immediate in incoming incomplete inqueue intel.com is its job keys kubelet kubernetes.io label
    labels limit load lost match matching max memory minAvailable missing more must name networking no node
    node's node(s) nodes nodeselector non-existent not nvidia.com of on once one or origin other out overused
    persistent persistentvolume persistentvolumeclaim persistentvolumeclaims plugin pod pod's pods policy port
    ports possibly posting predicated preempted preemption pressure priority progress queue quota ready reason
    rejected released request requested required resource resources revocable role room rules running s
    satisfied satisfy schedulable scheduled scheduler scheduling selector several skip skipped spec specified
    spread started state status stopped storage sufficient t taint tainted task tasks terminated the them time
    to too topology unavailable unbound unready unschedulable untolerated update upper used using vgpu-cores
    vgpu-memory vgpu-number victims volcano.sh volume volumes wait waiting was were when with within without
    worker zone
"""
WORDS: Final = frozenset(_WRITTEN.split())
