# SPDX-License-Identifier: Apache-2.0
"""The table of judges: which invariants each one judges, and the document that promises them; profiles of subjects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from pumice.config.errors import UnknownNameError
from pumice.proof.strangers.history import ApiHistory, Broken, Found
from pumice.proof.strangers.judges.accounts import judge_job_counts, judge_losses
from pumice.proof.strangers.judges.evictions import judge_evictions, judge_nominations
from pumice.proof.strangers.judges.gangs import judge_gangs
from pumice.proof.strangers.judges.placements import judge_placements
from pumice.proof.strangers.judges.progress import judge_progress


class Judge(Struct, frozen=True):
    """A judge. `promises`: by invariant, the document that makes the promise."""

    judge: Callable[[ApiHistory], Found]
    promises: Mapping[str, str]


K8S: Final = "https://kubernetes.io/docs"
VOLCANO: Final = "https://volcano.sh/en/docs"
JUDGES: Final[Mapping[str, Judge]] = {
    "placements": Judge(
        judge_placements,
        {
            "one-node": f"{K8S}/concepts/workloads/pods/pod-lifecycle/ (a pod is scheduled once in its lifetime)",
            "own-pods": f"{K8S}/tasks/extend-kubernetes/configure-multiple-schedulers/ (spec.schedulerName)",
            "within-allocatable": f"{K8S}/concepts/configuration/manage-resources-containers/ (how pods with resource"
            " requests are scheduled)",
            "open-nodes": f"{K8S}/concepts/architecture/nodes/ (manual node administration)",
            "within-capability": f"{VOLCANO}/queue/ (capability: the upper limit of a queue)",
        },
    ),
    "gangs": Judge(
        judge_gangs,
        {
            "whole-gangs": f"{VOLCANO}/podgroup/ (minMember) and {VOLCANO}/plugins/ (gang)",
            "grows-whole": f"{VOLCANO}/podgroup/ (minMember), also of a group that was changed",
        },
    ),
    "evictions": Judge(judge_evictions, {"within-budget": f"{K8S}/concepts/workloads/pods/disruptions/"}),
    "nominations": Judge(
        judge_nominations,
        {"nominations": f"{K8S}/concepts/scheduling-eviction/pod-priority-preemption/ (nominatedNodeName)"},
    ),
    "jobs": Judge(judge_job_counts, {"job-counts": f"{VOLCANO}/vcjob/ (status: pending, running, succeeded, failed)"}),
    "losses": Judge(judge_losses, {"nothing-lost": f"{K8S}/reference/using-api/api-concepts/ (resource versions)"}),
    "progress": Judge(
        judge_progress,
        {"starts": f"{K8S}/concepts/scheduling-eviction/kube-scheduler/ (the best feasible node is found)"},
    ),
}


class SubjectProfile(Struct, frozen=True):
    """A sort of scheduler. `scheduler`: the schedulerName of its pods; `gangs`: its pods come in PodGroups
    and queues of Volcano; `judges`: those that hold for it.
    """

    scheduler: str
    gangs: bool
    judges: tuple[str, ...]


_ANY: Final = ("placements", "evictions", "nominations", "losses", "progress")
SUBJECTS: Final[Mapping[str, SubjectProfile]] = {
    "volcano": SubjectProfile("volcano", gangs=True, judges=tuple(JUDGES)),
    "kube-scheduler": SubjectProfile("default-scheduler", gangs=False, judges=_ANY),
    "kueue": SubjectProfile("default-scheduler", gangs=False, judges=_ANY),
    "kai": SubjectProfile("kai-scheduler", gangs=False, judges=_ANY),
    "yunikorn": SubjectProfile("yunikorn", gangs=False, judges=_ANY),
}
"""By the name that `--judges` takes. Gangs of the last three are stated by kinds that are not served."""


def subject_profile(name: str) -> SubjectProfile:
    """Return the profile of a name. Raises UnknownNameError."""
    if name not in SUBJECTS:
        raise UnknownNameError("profile of a subject", name, SUBJECTS, path="--judges")
    return SUBJECTS[name]


def judged(history: ApiHistory, judges: tuple[str, ...]) -> list[Broken]:
    """Return what is broken in a history, the earliest first; each sentence once."""
    found = [broken for name in judges for broken in JUDGES[name].judge(history)]
    once = {(broken.invariant, broken.words): broken for broken in reversed(found)}
    return sorted(once.values(), key=lambda broken: (broken.revision, broken.invariant, broken.words))


ALWAYS: Final[Mapping[str, str]] = {
    "subject-lives": f"{K8S}/reference/using-api/api-concepts/ (clients handle errors and broken watches)",
    "quiesces": f"{K8S}/concepts/architecture/controller/ (a controller moves the state to what is desired)",
}
"""Invariants of every storm: a subject does not end by itself, and it settles."""


def promise_of(invariant: str) -> str:
    """Return the document that promises an invariant."""
    found: dict[str, str] = {name: text for each in JUDGES.values() for name, text in each.promises.items()}
    return {**ALWAYS, **found}[invariant]
