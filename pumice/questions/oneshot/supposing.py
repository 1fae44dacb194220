# SPDX-License-Identifier: Apache-2.0
"""Trials that ask no outside process, and report that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pumice.cluster.kernel.fork import Fork
from pumice.config.schema import SchedulerConfig
from pumice.core.default_scheduler.profile import NAME as DEFAULT_SCHEDULER
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.questions import AskedPod, OutsideAnswer, OutsideAnswers, OutsideQuestion
from pumice.core.objects.metadata import Object, object_key, section
from pumice.core.outside import Ask, AskedOutside, Supposing, ask_nothing, filled
from pumice.core.plugins import ASKING
from pumice.core.plugins.extender.plugin import read_settings

NAMED: Final = 3

# --- Extenders

AskAbout = Callable[[Sequence[Object]], Ask]
"""The objects of a cycle -> the function that answers its questions."""


def of_nobody(_objects: Sequence[Object]) -> Ask:
    """Return answers for a setup without processes to ask."""
    return ask_nothing


def as_recorded(answers: OutsideAnswers | None) -> AskAbout:
    """Return the answers of a record, from the beginning for each cycle; missing ones are supposed."""
    return lambda _: Supposing(answers)


def over_http(objects: Sequence[Object]) -> Ask:
    """Return those that the configuration names, about these objects."""
    from pumice.actors.outside.client import as_json, gone  # noqa: PLC0415 - few ask over HTTP
    from pumice.actors.outside.over_http import ExtenderRequest, ask_now  # noqa: PLC0415

    pods: dict[str, Object] = {}

    def whole(pod: AskedPod) -> bytes:
        if not pods:
            pods.update({_uid(obj): obj for obj in objects if obj["kind"] == "Pod"})
        return as_json(pods.get(pod.uid) or gone(pod), pod)

    def ask(questions: Sequence[OutsideQuestion]) -> Sequence[OutsideAnswer]:
        return ask_now(
            [ExtenderRequest(each.url, filled(each, list(map(whole, each.pods))), each.timeout_s) for each in questions]
        )

    return ask


def _uid(pod: Object) -> str:
    """Return the uid that the scheduler's view has of a pod."""
    return section(pod, "metadata").get("uid") or object_key(pod)


UNASKED: Final = (
    "the extender at {} is asked nothing here: where no record says what it answered, this supposes that it agrees"
)


class AskedOnce:
    """Outside processes for a cycle that is tried again and again. The first trial asks those of `ask`; later ones ask
    none, since an outside process must not act on a trial: they reuse the first answers, and suppose all others.
    """

    def __init__(self, ask: Callable[[], Ask]) -> None:
        self._ask = ask
        self._first: AskedOutside | None = None

    def __call__(self) -> Ask:
        """Return an asker for one more trial."""
        if self._first is not None:
            return Supposing(self._first.answers())
        self._first = AskedOutside(self._ask())
        return self._first


def unasked(config: SchedulerConfig) -> list[str]:
    """Return the remarks about an answer for which no outside process was asked, though the configuration names
    some."""
    found = [
        read_settings(dict(option.arguments or {}))
        for tier in config.tiers
        for option in tier.plugins
        if option.name in ASKING
    ]
    return [UNASKED.format(each.url_prefix) for each in found if each.verbs]


# --- What a future leaves out

TEMPLATES: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController")
"""Kinds, beside Kubernetes' Jobs and CronJobs, whose template says which scheduler its pods are for."""
UNPLACED: Final = (
    "pods of default-scheduler stay without a node in a future, where only Volcano's scheduler decides: {}. "
    "`pumice run --time virtual` has both schedulers"
)


def left_out(fork: Fork) -> list[str]:
    """Return the remarks about futures of a fork: outside processes that are not asked, and pods that nothing
    places.
    """
    there = [*fork.objects, *(obj for _, obj in fork.later)]
    return [*unasked(fork.config), *unplaced(there)]


def unplaced(objects: Iterable[Object]) -> list[str]:
    """Return the remark that pods of Kubernetes' own scheduler get no node; nothing where there are none."""
    names = [f"{obj['kind']} {object_key(obj)}" for obj in objects if _is_of_default_scheduler(obj)]
    if not names:
        return []
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return [UNPLACED.format(", ".join(names[:NAMED]) + more)]


def _is_of_default_scheduler(obj: Object) -> bool:
    """Return whether Kubernetes' own scheduler has a pod of it to place: it waits, or is still to be made."""
    spec = section(obj, "spec")
    if obj["kind"] == "Pod":
        waits = not spec.get("nodeName") and section(obj, "status").get("phase") not in ENDED_PHASES
        return waits and _scheduler(spec) == DEFAULT_SCHEDULER
    if obj["kind"] == "CronJob":
        spec = section(section(spec, "jobTemplate"), "spec")
    elif obj["metadata"].get("uid") or not (obj["kind"] in TEMPLATES or obj.get("apiVersion") == "batch/v1"):
        # with a uid it comes from an API, where its pods have been made
        return False
    return _scheduler(section(section(spec, "template"), "spec")) == DEFAULT_SCHEDULER


def _scheduler(pod: Object) -> str:
    return str(pod.get("schedulerName") or DEFAULT_SCHEDULER)


def supposed(ask: Ask, config: SchedulerConfig) -> list[str]:
    """Return the same as `unasked`, for one cycle at its end: empty if every question was answered."""
    return unasked(config) if isinstance(ask, Supposing) and ask.unasked else []
