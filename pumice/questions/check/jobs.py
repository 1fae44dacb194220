"""Jobs and JobFlows that a configuration meets: defects of Volcano that they run into, and switches that mend them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import Object, section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pumice.config.schema import SchedulerConfig

VOLCANO: Final = "batch.volcano.sh/"
_TARGETED: Final = ("RestartPod", "RestartTask", "RestartPartition")


def of_jobs(config: SchedulerConfig, objects: Sequence[Object]) -> list[str]:
    """Return a sentence for each defect that some object can run into and no switch mends."""
    found: list[str] = []
    for fix, concerns, words in _DEFECTS:
        names = [_name(obj) for obj in objects if concerns(obj)]
        if names and fix not in config.pumice.fix:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            found.append(f"{names[0]}{more}: {words}; `fix: [{fix}]` mends it")
    return found


def _policies(obj: Object) -> Iterator[Object]:
    if obj.get("kind") == "Job" and str(obj.get("apiVersion")).startswith(VOLCANO):
        spec = section(obj, "spec")
        yield from spec.get("policies") or ()
        for task in spec.get("tasks") or ():
            yield from task.get("policies") or ()


def _fires_on(obj: Object, *events: str) -> bool:
    return any({policy.get("event"), *(policy.get("events") or ())} & {"*", *events} for policy in _policies(obj))


def _expires(obj: Object) -> bool:
    volcano = obj.get("kind") == "Job" and str(obj.get("apiVersion")).startswith(VOLCANO)
    return volcano and section(obj, "spec").get("ttlSecondsAfterFinished") is not None


def _name(obj: Object) -> str:
    meta = section(obj, "metadata")
    return f"{obj.get('kind')} {meta.get('namespace') or 'default'}/{meta.get('name') or meta.get('generateName')}"


_DEFECTS: Final[tuple[tuple[str, Callable[[Object], bool], str], ...]] = (
    (
        "scaling-is-no-eviction",
        lambda obj: _fires_on(obj, "PodEvicted", "PodFailed"),
        "lowering its replicas fires its policies for PodFailed and PodEvicted",
    ),
    (
        "ended-pods-are-not-evicted",
        lambda obj: _fires_on(obj, "PodEvicted"),
        "deleting a pod that has ended fires its policy for PodEvicted",
    ),
    ("aborted-jobs-expire", _expires, "ttlSecondsAfterFinished does not count once the Job is Aborted"),
    (
        "restarts-keep-the-pod-group",
        lambda obj: any(policy.get("action") in _TARGETED for policy in _policies(obj)),
        "restarting some of its pods deletes its PodGroup, and others may have its room",
    ),
    (
        "terminated-jobs-fail-flows",
        lambda obj: obj.get("kind") == "JobFlow",
        "it stays Running for ever when one of its Jobs is Terminated",
    ),
)
