# SPDX-License-Identifier: Apache-2.0
"""Volcano's labels and annotations that tie pods and PodGroups to their Job (`batch/v1alpha1/labels.go`)."""

from __future__ import annotations

from typing import Final

POD_GROUP_API_VERSION: Final = "scheduling.volcano.sh/v1beta1"

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
TASK_SPEC: Final = "volcano.sh/task-spec"
TASK_INDEX: Final = "volcano.sh/task-index"
JOB_NAME: Final = "volcano.sh/job-name"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
QUEUE_NAME: Final = "volcano.sh/queue-name"
JOB_VERSION: Final = "volcano.sh/job-version"
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
TEMPLATE_UID: Final = "volcano.sh/template-uid"
PARTITION_ID: Final = "volcano.sh/partition-id"
OUT_OF_SYNC_POD: Final = "volcano.sh/controller-out-of-sync"
NUMA_POLICY: Final = "volcano.sh/numa-topology-policy"

PREEMPTABLE: Final = "volcano.sh/preemptable"
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"
BUDGET_MIN: Final = "volcano.sh/jdb-min-available"
BUDGET_MAX: Final = "volcano.sh/jdb-max-unavailable"

PUMICE: Final = "pumice.dev/"
"""Annotations of the simulation; on a Job they hold for all its pods that do not say otherwise."""
