"""Words of which schedulers and kubelets make the conditions that they write: what is none of them may be a name."""

from __future__ import annotations

import re
from typing import Final

SEPARATED: Final = re.compile(r"[^\s,;/:()\[\]{}\"'<>=]+")
"""A word."""
AMOUNT: Final = re.compile(r"[+-]?[\d.%]+([munk]|[KMGTPE]i?|ms|s)?|\d+-\d+|[-|&+]+|Ascend\d\w*(-memory)?")
"""No name either; models of chips are in names of resources."""
_WRITTEN: Final = """
    Allocated Binding Bound CPU Completed Containers ContainersNotInitialized ContainersNotReady DeletionByPodGC
    DeletionByTaintManager DynamicResources EvictionByEvictionAPI Failed False GpuNumber GpuShare HyperNode In
    Inqueue Insufficient Kubelet KubeletHasDiskPressure KubeletHasInsufficientMemory KubeletHasInsufficientPID
    KubeletHasNoDiskPressure KubeletHasSufficientMemory KubeletHasSufficientPID KubeletNotReady KubeletReady No
    NoRouteCreated Node NodeStatusNeverUpdated NodeStatusUnknown NotEnoughPods NotEnoughPodsOfTask
    NotEnoughResources Origin Pending Persistent PersistentVolume PersistentVolume's PersistentVolumeClaim
    PersistentVolumeClaims Pipelined Pod Pod's PodCompleted PodFailed PodGroup PodGroupNotReady Preemption
    PreemptionByKubeScheduler PreemptionByScheduler Queue ReadinessGatesNotReady Releasing Resource RouteCreated
    Running Schedulable SchedulerError SchedulingGated StorageClass Succeeded Task TerminationByKubelet True
    Undetermined Unknown UnknownContainerStatuses Unschedulable VolumeBinding a affinity after all allocate
    allocated allow alphabetical already amd.com and another anti-affinity any are ascend assigned at available be
    because been being best-effort beyond bind binding bound but by can cannot capability check claim claims
    completed condition conditions constraints container containers controller cpu create created current deleted
    deleting deserved device didn didn't different disk dispatch does does't doesn't due empty enough enqueue
    ephemeral ephemeral-storage error exceeds existing failed find for found free from gang gpu gpu-memory
    gpu-number group guarantee had hami-vgpuDeviceSharing has have helpful host huawei.com hugepages-1Gi
    hugepages-2Mi hyperNode immediate in incoming incomplete info inqueue intel.com is isn isn't its job keys
    kubelet kubernetes.io label labels limit load lost manager match matching max memory minAvailable missing more
    must name networking no node node's node(s) nodes nodeselector non-existent none not npu-core numa number
    nvidia.com of on once one or origin other out overused persistent persistentvolume persistentvolumeclaim
    persistentvolumeclaims plugin pod pod's pods policy port ports possibly posting pre-predicates predicated
    preempted preemption pressure priority process progress proportional queue quota ready reason rejected released
    request requested required resource resources restricted revocable role room rules running s satisfied satisfy
    schedulable scheduled scheduler scheduling selector several shard single-numa-node skip skipped spec specified
    spread started state static status stopped storage sufficient t taint tainted task tasks terminated the them
    time to too topology unavailable unbound unready unschedulable untolerated update upper used using vgpu-cores
    vgpu-memory vgpu-memory-percentage vgpu-number victims volcano.sh volume volumes wait waiting was were when with
    within without worker zone
"""
WORDS: Final = frozenset(_WRITTEN.split())
