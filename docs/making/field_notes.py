"""Short sentences for `kubectl explain`: what the main fields of Volcano's kinds and of pods are for.

Keys are `message#field`, or a message alone for what the kind is.
"""

from typing import Final

_SCHEDULING: Final = "volcano.scheduling.v1beta1"
_BATCH: Final = "volcano.batch.v1alpha1"
_TOPOLOGY: Final = "volcano.topology.v1alpha1"


def _of(message: str, sentences: dict[str, str]) -> dict[str, str]:
    return {f"{message}#{field}": sentence for field, sentence in sentences.items()}


NOTES: Final[dict[str, str]] = {
    f"{_SCHEDULING}.Queue": "A share of the cluster that jobs draw on; queues form a tree under `root`.",
    **_of(
        f"{_SCHEDULING}.QueueSpec",
        {
            "weight": "The queue's share among its siblings, in proportion to theirs.",
            "capability": "The most that the queue's jobs may hold together.",
            "deserved": "What the queue can count on; more is lent to it and can be reclaimed.",
            "guarantee": "What is kept free for the queue, whoever else is short.",
            "reclaimable": "Whether others may take back what the queue holds above its share; true unless set.",
            "parent": "The queue above this one in the tree; `root` unless set.",
            "priority": "Queues of higher priority are served first and give back last.",
            "dequeueStrategy": "fifo: the first job waits and holds up the rest; traverse: others may pass it.",
            "affinity": "Groups of nodes that the queue's pods must, should or must not run on.",
            "type": "A free word by which tools tell queues apart.",
            "extendClusters": "Other clusters that may run this queue's jobs.",
        },
    ),
    f"{_SCHEDULING}.QueueSpecGuarantee#resource": "Amounts by resource name.",
    **_of(
        f"{_SCHEDULING}.QueueStatus",
        {
            "state": "Open takes jobs; Closed takes none; Closing still has some; Unknown: something is wrong.",
            "allocated": "What the queue's jobs hold now.",
            "inqueue": "Pod groups that are let in and wait for nodes.",
            "pending": "Pod groups that are not let in yet.",
            "running": "Pod groups that run.",
            "completed": "Pod groups that are done.",
            "unknown": "Pod groups with some, not all, of their pods running.",
            "reservation": "What is held back for this queue.",
        },
    ),
    f"{_SCHEDULING}.PodGroup": "Pods that start together or not at all.",
    **_of(
        f"{_SCHEDULING}.PodGroupSpec",
        {
            "minMember": "How many pods must find a node before any is bound.",
            "minTaskMember": "The same by the name of the task, for groups of unlike pods.",
            "minResources": "What the group needs at least to be let into its queue.",
            "priorityClassName": "The PriorityClass that orders this group among others.",
            "queue": "The queue that the group draws on; `default` unless set.",
            "networkTopology": "How close together in the network the pods must be.",
            "subGroupPolicy": "Parts of the group that are each placed as a gang of their own.",
        },
    ),
    **_of(
        f"{_SCHEDULING}.PodGroupStatus",
        {
            "phase": "Pending: not let in; Inqueue: let in; Running; Unknown: only some run; Completed.",
            "conditions": "What the last scheduling cycles came to, and why the group waits.",
            "running": "Pods that run.",
            "succeeded": "Pods that ended well.",
            "failed": "Pods that failed.",
        },
    ),
    **_of(
        f"{_SCHEDULING}.PodGroupSpecNetworkTopology",
        {
            "mode": "hard: only within the tier; soft: preferably.",
            "highestTierAllowed": "The highest tier of hypernode that the pods may be spread over.",
            "highestTierName": "The same tier, by its name.",
        },
    ),
    f"{_BATCH}.Job": "Tasks of like pods that are scheduled as one gang, with policies for what goes wrong.",
    **_of(
        f"{_BATCH}.JobSpec",
        {
            "minAvailable": "How many of the job's pods must be able to run together.",
            "minSuccess": "How many pods must succeed for the job to be complete.",
            "tasks": "The job's parts; each is a number of pods of one template.",
            "queue": "The queue that the job draws on; `default` unless set.",
            "priorityClassName": "The PriorityClass that orders this job among others.",
            "schedulerName": "The scheduler that places the pods; `volcano` unless set.",
            "policies": "What to do on an event, for all tasks that say nothing else.",
            "plugins": "What is done for the pods beside: svc, ssh, env, pytorch and others, with their arguments.",
            "maxRetry": "How often the job is restarted before it has failed; 3 unless set.",
            "ttlSecondsAfterFinished": "Seconds after its end until the job is deleted; never unless set.",
            "volumes": "Volumes that every pod of the job mounts.",
            "runningEstimate": "How long the job is expected to run, for schedulers that plan with it.",
            "networkTopology": "How close together in the network the pods must be.",
        },
    ),
    **_of(
        f"{_BATCH}.JobSpecTasks",
        {
            "name": "The task's name; `default` and its number unless set. Pods are called job-task-number.",
            "replicas": "How many pods the task has.",
            "minAvailable": "How many of them must be able to run together; all unless set.",
            "template": "What the pods look like.",
            "policies": "What to do on an event in this task.",
            "maxRetry": "How often a failed pod is made again.",
            "topologyPolicy": "How strictly the pods are kept to single NUMA nodes.",
            "dependsOn": "Tasks that must have started before this one's pods are made.",
            "partitionPolicy": "Parts of the task that are each placed as a gang of their own.",
        },
    ),
    **_of(
        f"{_BATCH}.JobSpecPolicies",
        {
            "action": "AbortJob, RestartJob, RestartTask, RestartPod, TerminateJob, CompleteJob or others.",
            "event": "What sets it off: PodFailed, PodEvicted, TaskCompleted and others; * for any.",
            "events": "Several such events.",
            "exitCode": "Sets it off when a container ends with this code instead of an event; not 0.",
            "timeout": "How long the event must last before the action, as 10s or 5m.",
        },
    ),
    **_of(
        f"{_BATCH}.JobStatus",
        {
            "state": "The job's phase, since when and why.",
            "pending": "Pods that wait.",
            "running": "Pods that run.",
            "succeeded": "Pods that ended well.",
            "failed": "Pods that failed.",
            "terminating": "Pods that are being ended.",
            "retryCount": "How often the job was restarted.",
            "minAvailable": "How many pods must be able to run together.",
            "version": "Counts the job's restarts and changes; pods of older versions are passed over.",
            "taskStatusCount": "Pods by phase, task by task.",
        },
    ),
    f"{_BATCH}.JobStatusState#phase": "Pending, Running, Restarting, Completed, Aborted, Failed or others.",
    f"{_BATCH}.CronJob": "Makes a Job at the times of a schedule.",
    **_of(
        f"{_BATCH}.CronJobSpec",
        {
            "schedule": "When, as cron writes it: minute hour day month weekday.",
            "timeZone": "The time zone of the schedule; the controller's own unless set.",
            "jobTemplate": "The Job to make.",
            "concurrencyPolicy": "Allow, Forbid or Replace a run while the last one goes on.",
            "suspend": "Whether no runs are started for now.",
            "startingDeadlineSeconds": "A run that is later than this is left out.",
            "successfulJobsHistoryLimit": "How many complete Jobs are kept.",
            "failedJobsHistoryLimit": "How many failed Jobs are kept.",
        },
    ),
    "volcano.bus.v1alpha1.Command": "An order to a job or queue, carried out once and then deleted.",
    **_of(
        "volcano.bus.v1alpha1.Command",
        {
            "action": "AbortJob, ResumeJob, OpenQueue, CloseQueue and others.",
            "target": "The object that the order is for.",
            "reason": "Why, in one word.",
            "message": "Why, for people.",
        },
    ),
    "volcano.flow.v1alpha1.JobFlow": "Jobs made from templates in an order of their own.",
    "volcano.flow.v1alpha1.JobFlowSpec#flows": "The jobs, each by its template's name and what it waits for.",
    "volcano.flow.v1alpha1.JobFlowSpec#jobRetainPolicy": "retain or delete the jobs when all are done.",
    "volcano.flow.v1alpha1.JobTemplate": "A Job's specification, for flows to make jobs of.",
    f"{_TOPOLOGY}.HyperNode": "Nodes, or smaller hypernodes, that are close together in the network.",
    **_of(
        f"{_TOPOLOGY}.HyperNodeSpec",
        {
            "tier": "The level in the tree: 1 holds nodes; traffic within a lower tier is faster.",
            "tierName": "The level's name.",
            "members": "The nodes or hypernodes below.",
        },
    ),
    f"{_TOPOLOGY}.HyperNodeSpecMembers#type": "Node or HyperNode.",
    f"{_TOPOLOGY}.HyperNodeSpecMembers#selector": "Which ones: by name, by pattern or by label.",
    f"{_TOPOLOGY}.HyperNodeStatus#nodeCount": "How many nodes are below it.",
    "volcano.nodeinfo.v1alpha1.Numatopology": "The NUMA nodes of one node, as its agent reports them.",
    "volcano.shard.v1alpha1.NodeShard": "The nodes that one of several schedulers takes care of.",
    "volcano.config.v1alpha1.ColocationConfiguration": "How batch pods share nodes with others.",
    "core.v1.Pod": "Containers that run together on one node.",
    "core.v1.Pod#spec": "What is to run, and where it may.",
    "core.v1.Pod#status": "What became of it; written by the node and the scheduler.",
    **_of(
        "core.v1.PodSpec",
        {
            "containers": "The containers; at least one.",
            "initContainers": "Containers that run one after another before the others start.",
            "volumes": "What the containers can mount.",
            "nodeName": "The node that the pod is bound to; set by the scheduler.",
            "nodeSelector": "Labels that the node must have.",
            "affinity": "Nodes and neighbours that the pod needs, likes or avoids.",
            "tolerations": "Taints of nodes that the pod puts up with.",
            "topologySpreadConstraints": "How evenly like pods are spread over zones, hosts and so on.",
            "schedulerName": "Which scheduler binds the pod.",
            "priorityClassName": "The PriorityClass that gives the pod its priority.",
            "priority": "The priority itself; higher goes first and may preempt lower.",
            "preemptionPolicy": "Never, or PreemptLowerPriority.",
            "schedulingGates": "As long as there are any, the pod is not scheduled.",
            "restartPolicy": "Always, OnFailure or Never.",
            "terminationGracePeriodSeconds": "How long the containers have for their end when the pod is deleted.",
            "overhead": "What the pod costs beyond its containers.",
            "resourceClaims": "Devices that the pod needs, by ResourceClaim.",
        },
    ),
    **_of(
        "core.v1.Container",
        {
            "name": "Unique in the pod.",
            "image": "What to run.",
            "command": "The program, in place of the image's.",
            "args": "Its arguments, in place of the image's.",
            "env": "Environment variables.",
            "ports": "Ports that the container listens on.",
            "resources": "What the container needs and may use.",
            "volumeMounts": "Where in the container which volume appears.",
        },
    ),
    **_of(
        "core.v1.ResourceRequirements",
        {
            "requests": "What a node must have free for it; the limits unless set.",
            "limits": "The most that it may use.",
        },
    ),
    "core.v1.Node": "A machine that pods run on.",
    **_of(
        "core.v1.NodeSpec",
        {
            "unschedulable": "Whether new pods keep off, as after `kubectl cordon`.",
            "taints": "Keep off all pods that do not tolerate them.",
        },
    ),
    **_of(
        "core.v1.NodeStatus",
        {
            "capacity": "What the machine has.",
            "allocatable": "What of it pods may have.",
            "conditions": "Whether it is ready, short of memory, and so on.",
        },
    ),
    "scheduling.v1.PriorityClass": "A priority by name.",
    "scheduling.v1.PriorityClass#value": "Higher goes first and may preempt lower.",
    "scheduling.v1.PriorityClass#preemptionPolicy": "Never, or PreemptLowerPriority.",
    **_of(
        "meta.v1.ObjectMeta",
        {
            "name": "Unique among objects of the kind in the namespace.",
            "generateName": "The beginning of a name that the server completes.",
            "namespace": "Where the object lives; empty for cluster-wide kinds.",
            "labels": "Words to select objects by.",
            "annotations": "Words that nobody selects by.",
            "uid": "Unique for ever; set by the server.",
            "resourceVersion": "Changes with every write; set by the server.",
            "generation": "Counts changes of the specification; set by the server.",
            "finalizers": "As long as there are any, a deleted object stays.",
            "ownerReferences": "Objects that this one goes away with.",
            "creationTimestamp": "CreationTimestamp is a timestamp of when the server made it.",
            "deletionTimestamp": "When it is to go, once deleted; set by the server.",
            "managedFields": "Who owns which fields, since the first server-side apply.",
        },
    ),
}
