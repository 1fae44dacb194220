# SPDX-License-Identifier: Apache-2.0
"""Failures of a Job and the back-off before its retries (source: Kubernetes' job controller: `pod_failure_policy`,
`backoff_utils`, `pastBackoffLimitOnFailure`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pumice.core.objects.metadata import Object, parse_time, rows, section, text_map
from pumice.core.texts import whole_number

FIRST_WAIT_S: Final = 10.0
LONGEST_WAIT_S: Final = 600.0
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
"""Annotations of a pod: how often its index has failed before it came."""


@dataclass(frozen=True, slots=True)
class FailureVerdict:
    """Consequence of a failed pod. `why`: the reason for which the whole Job fails ("": the Job does not fail)."""

    counts: bool = True
    why: str = ""
    fails_index: bool = False


def verdict_on(job: Object, pod: Object) -> FailureVerdict:
    """Return the verdict by the first rule of the Job's podFailurePolicy that matches, then by the limit of its
    index.
    """
    for number, rule in enumerate(rows(section(job["spec"], "podFailurePolicy"), "rules")):
        matched = _matched(rule, pod, number)
        if not matched:
            continue
        match rule.get("action"):
            case "Ignore":
                return FailureVerdict(counts=False)
            case "FailJob":
                return FailureVerdict(why=matched)
            case "FailIndex" if job["spec"].get("backoffLimitPerIndex") is not None:
                return FailureVerdict(fails_index=True)
            # Count: the first rule that matches ends the search, and the limits below decide.
            case _:
                break
    limit = job["spec"].get("backoffLimitPerIndex")
    return FailureVerdict(fails_index=limit is not None and failures_before(pod) >= limit)


def is_counted(job: Object, pod: Object) -> bool:
    """Return whether a failed pod counts against the Job."""
    return verdict_on(job, pod).counts


def failures_before(pod: Object, name: str = FAILURES) -> int:
    """Return how often the pod's index had failed when the pod was made."""
    return whole_number(text_map(pod["metadata"].get("annotations")).get(name, "")) or 0


def _matched(rule: Object, pod: Object, number: int) -> str:
    """Return the rule that matched, in Kubernetes' words; "" without one."""
    meta, status = pod["metadata"], section(pod, "status")
    if (status.get("phase") or "Pending") != "Failed":
        return ""
    who, by = f"{meta['namespace']}/{meta['name']}", f"matching {rule.get('action')} rule at index {number}"
    codes = section(rule, "onExitCodes")
    for name, code in _exit_codes(status) if codes else ():
        # Exit code 0 never matches, not even `NotIn`: a container that succeeded has not failed.
        if codes.get("containerName") in (None, name) and code and _holds(codes, code):
            return f"Container {name} for pod {who} failed with exit code {code} {by}"
    for wanted in rule.get("onPodConditions") or ():
        for each in status.get("conditions") or ():
            if (each.get("type"), each.get("status")) == (wanted.get("type"), wanted.get("status") or "True"):
                return f"Pod {who} has condition {each['type']} {by}"
    return ""


def _holds(codes: Object, code: int) -> bool:
    return (code in (codes.get("values") or ())) == (codes.get("operator") == "In")


def _exit_codes(status: Object) -> Iterable[tuple[str, int]]:
    for group in ("containerStatuses", "initContainerStatuses"):
        for each in status.get(group) or ():
            ended = section(section(each, "state"), "terminated")
            if ended:
                yield each.get("name") or "", ended.get("exitCode") or 0


def past_limit(job: Object, failed: int, pods: Sequence[Object]) -> bool:
    """Return whether the failures exceed the Job's backoffLimit: pods, or restarts of their containers."""
    limit: int = job["spec"].get("backoffLimit", 6)
    if failed > limit:
        return True
    if section(section(job["spec"], "template"), "spec").get("restartPolicy") != "OnFailure":
        return False
    # Restarts in place replace no pod, so failed pods alone would never reach the limit.
    restarts = sum(each.get("restartCount") or 0 for pod in pods for each in _containers(pod))
    # Kubernetes' own asymmetry (`pastBackoffLimitOnFailure`): with a limit of 0 the first restart is one too many.
    return restarts > 0 if limit == 0 else restarts >= limit


def _containers(pod: Object) -> Iterable[Object]:
    status = section(pod, "status")
    if status.get("phase") in ("Running", "Pending"):
        yield from status.get("initContainerStatuses") or ()
        yield from status.get("containerStatuses") or ()


def ended_at(pod: Object) -> float:
    """Return the end of the pod's last container, or its deletion, in seconds since the epoch; 0 where neither is
    known.
    """
    meta, status = pod["metadata"], section(pod, "status")
    states = [section(section(each, "state"), "terminated") for each in status.get("containerStatuses") or ()]
    times = [_seconds(state.get("finishedAt")) for state in states if state]
    if not times and "deletionTimestamp" in meta:
        return _seconds(meta["deletionTimestamp"]) - (meta.get("deletionGracePeriodSeconds") or 0)
    conditions: list[Object] = status.get("conditions") or []
    turned = [_seconds(each.get("lastTransitionTime")) for each in conditions if each.get("type") == "Ready"]
    return max(times or turned, default=0.0)


def _seconds(text: object) -> float:
    try:
        return parse_time(text) if isinstance(text, str) else 0.0
    except ValueError:
        return 0.0


def again_at(failed: Iterable[Object], succeeded: Iterable[Object]) -> float:
    """Return the earliest time for a pod after the last failed one. The delay is 10 s, doubled for each failure since
    the last success, at most ten minutes.
    """
    since = max([ended_at(pod) for pod in succeeded], default=0.0)
    # Only failures after the last success: a success resets the back-off.
    times = sorted(at for at in map(ended_at, failed) if at > since)
    if not times:
        return 0.0
    return times[-1] + float(min(FIRST_WAIT_S * 2.0 ** min(len(times) - 1, 30), LONGEST_WAIT_S))
