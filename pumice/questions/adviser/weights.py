"""A remark on queues' weights, which do not order jobs that wait for admission.

Proportion divides by weight what pods ask for that exist (proportion.go, OnSessionOpen: deserved is at most the
request), and the pods of a Job exist once it is admitted. So a queue whose jobs all wait for admission asks for
nothing, and a queue of more weight may wait longer than one of less: Volcano v1.15.1 does so, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.questions.adviser.classes import WaitReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.config.schema import SchedulerConfig
    from pumice.questions.adviser.census import Census

UNADMITTED: Final = (WaitReason.OVERCOMMIT, WaitReason.NOT_ADMITTED, WaitReason.QUEUE_CAPABILITY)


def weights_remark(config: SchedulerConfig, weights: Mapping[str, int], census: Census) -> str:
    """Return a sentence on jobs that wait for admission though the weights of queues differ; "" for nothing to say.
    `weights`: by queue.
    """
    option = config.plugin("proportion")
    if option is None or not option.is_enabled("QueueOrder") or "enqueue" not in config.actions:
        return ""
    outside = [job for job in census.waiting if job.phase in ("", "Pending") and job.finding.reason in UNADMITTED]
    queues = sorted({job.queue for job in outside})
    if not queues or len({weights.get(queue, 1) for queue in weights}) < 2:
        return ""
    count = f"{len(outside)} job{'' if len(outside) == 1 else 's'}"
    return (
        f"{count} of {', '.join(f'{queue} (weight {weights.get(queue, 1)})' for queue in queues)} wait for admission: "
        "the weights of queues divide only what pods ask for that exist, and those of a Job exist once it is admitted, "
        "so that a queue of more weight may wait longer, as in Volcano; without action enqueue they count for all jobs"
    )
