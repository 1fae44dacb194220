# SPDX-License-Identifier: Apache-2.0
"""What a future leaves out of what its objects ask for, in sentences: each is said where such objects are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

from pumice.cluster.api.kinds import KINDS, MAKERS
from pumice.cluster.controllers.unserved import NO_CONTROLLER, SCHEDULER, UNSERVED
from pumice.cluster.kernel.fork import Fork
from pumice.config.load import default_text
from pumice.config.settings import CHARTS
from pumice.config.unwrap import conf_keys
from pumice.core.default_scheduler.profile import NAME as DEFAULT_SCHEDULER
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.events import ConfigLoaded
from pumice.core.objects.metadata import Object, annotations_of, object_key, rows, section
from pumice.core.objects.parts import VOLCANO_JOB, WATCHED
from pumice.core.objects.pod import GROUP_NAME
from pumice.questions.oneshot.supposing import unasked

NAMED: Final = 3
UNPLACED: Final = (
    "pods of default-scheduler stay without a node in a future, where only Volcano's scheduler decides: {}. "
    "`pumice run --time virtual` has both schedulers"
)
STRANGERS: Final = "no scheduler named {0!r} runs here, so pods for it stay without a node: {1}"
UNJUDGED: Final = (
    "webhooks and admission policies are asked by a server alone, so they change and refuse nothing here: {}. "
    "`pumice run --http` asks them"
)
UNREAD: Final = "the stock configuration is in force, and not the one in {}: name that one to decide by it"
WEBHOOKS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
JUDGES: Final = (*WEBHOOKS, POLICY, BINDING)
VOLCANOS: Final = ".volcano.sh"
"""End of the names of Volcano's own webhooks, whose rules are part of admission here."""
JUDGED: Final = [row for key, row in KINDS.items() if key in MAKERS or key in WATCHED]
"""Kinds on which decisions depend: a future is the same, whatever is said of others."""
TEMPLATES: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job")
"""Kinds, beside Kubernetes' CronJobs, whose template says which scheduler its pods are for."""

SaidOf = Callable[[Object], Iterable[str]]
"""Return the sentences that name an object."""


def left_out(fork: Fork) -> list[str]:
    """Return the remarks about futures of a fork: outside processes that are not asked, and what is `overlooked`."""
    there = chain(fork.objects, (obj for _, obj in fork.later))
    return [*unasked(fork.config), *overlooked(there, stock=is_stock(fork.told))]


def is_stock(told: ConfigLoaded) -> bool:
    """Return whether it is the configuration that is in force where no other is named."""
    return told.text == default_text()


def overlooked(objects: Iterable[Object], *, stock: bool) -> list[str]:
    """Return the remarks about objects from which less follows in a future than in a served cluster. `stock`: the
    stock configuration is in force.
    """
    return _remarks(objects, lambda obj: chain(_of_scheduler(obj), _of_controller(obj), _unread(obj) if stock else ()))


def unserved(objects: Iterable[Object], *, stock: bool) -> list[str]:
    """Return the remarks about objects that a server alone reads. `stock`: the stock configuration is in force."""
    return _remarks(objects, lambda obj: _unread(obj) if stock else ())


def _remarks(objects: Iterable[Object], said_of: SaidOf) -> list[str]:
    found, judges = dict[str, _Names](), list[Object]()
    for obj in objects:
        if obj["kind"] in JUDGES:
            judges.append(obj)
        for sentence in said_of(obj):
            found.setdefault(sentence, _Names()).add(obj)
    for obj in _asked(judges):
        found.setdefault(UNJUDGED, _Names()).add(obj)
    return [sentence.format(names.text()) for sentence, names in found.items()]


class _Names:
    """The first names of many: a trace has a million objects."""

    def __init__(self) -> None:
        self._first = list[str]()
        self._count = 0

    def add(self, obj: Object) -> None:
        self._count += 1
        if self._count <= NAMED:
            row = KINDS.get(obj["kind"])
            name = object_key(obj) if row is None or row.namespaced else obj["metadata"].get("name")
            self._first.append(f"{obj['kind']} {name}")

    def text(self) -> str:
        """Return the names, with the number of those that are not named."""
        more = self._count - len(self._first)
        return ", ".join(self._first) + (f" and {more} more" if more else "")


# --- Schedulers and controllers


def _of_scheduler(obj: Object) -> Iterator[str]:
    for name in sorted(_schedulers(obj)):
        if name == DEFAULT_SCHEDULER:
            yield UNPLACED
        elif name != SCHEDULER:
            yield STRANGERS.format(name, "{}")


def _schedulers(obj: Object) -> set[str]:
    """Return the schedulers that have pods of it to place: they wait, or are still to be made."""
    spec, kind = section(obj, "spec"), obj["kind"]
    if kind == "Pod":
        waits = not spec.get("nodeName") and section(obj, "status").get("phase") not in ENDED_PHASES
        return {_scheduler(spec, grouped=GROUP_NAME in annotations_of(obj))} if waits else set()
    if kind == "CronJob" and obj.get("apiVersion") == "batch/v1":
        return {_scheduler(_pod_in(section(section(spec, "jobTemplate"), "spec")))}
    # with a uid it comes from an API, where its pods have been made
    if obj["metadata"].get("uid"):
        return set()
    if (obj.get("apiVersion"), kind) == VOLCANO_JOB:
        named = [_pod_in(task).get("schedulerName") or spec.get("schedulerName") for task in rows(spec, "tasks")]
        return {_scheduler({"schedulerName": name}, grouped=True) for name in named}
    return {_scheduler(_pod_in(spec))} if kind in TEMPLATES else set()


def _pod_in(spec: Object) -> Object:
    return section(section(spec, "template"), "spec")


def _scheduler(pod: Object, *, grouped: bool = False) -> str:
    """Return the scheduler that places a pod; `grouped`: it names a PodGroup, and is Volcano's by that."""
    name = str(pod.get("schedulerName") or DEFAULT_SCHEDULER)
    return SCHEDULER if grouped and name == DEFAULT_SCHEDULER else name


def _of_controller(obj: Object) -> Iterator[str]:
    if obj["kind"] in UNSERVED:
        yield f"{{}}: {NO_CONTROLLER}"


# --- What a server reads


def _unread(obj: Object) -> Iterator[str]:
    """Yield that a configuration in the cluster is not taken over."""
    meta = obj["metadata"]
    if obj["kind"] == "ConfigMap" and (meta.get("namespace"), meta.get("name")) == (CHARTS.namespace, CHARTS.name):
        data = section(obj, "data")
        keys = conf_keys(data)
        if len(keys) == 1 and data[keys[0]] != default_text():
            yield UNREAD


def _asked(judges: Iterable[Object]) -> Iterator[Object]:
    """Yield webhook configurations and bindings of policies that may change or refuse what decisions depend on."""
    judges = [*judges]
    policies = {obj["metadata"].get("name"): obj for obj in judges if obj["kind"] == POLICY}
    for obj in judges:
        if obj["kind"] == BINDING:
            spec = section(obj, "spec")
            policy = policies.get(spec.get("policyName"))
            # one that warns or audits refuses nothing; a policy that is not here may be where the binding is going
            if "Deny" in (spec.get("validationActions") or ()) and (policy is None or _is_about_jobs(policy, obj)):
                yield obj
        elif obj["kind"] in WEBHOOKS:
            others = [each for each in rows(obj, "webhooks") if not str(each.get("name")).endswith(VOLCANOS)]
            if _is_about_jobs({**obj, "webhooks": others}):
                yield obj


def _is_about_jobs(*configurations: Object) -> bool:
    """Return whether they speak of a kind on which decisions depend."""
    from pumice.actors.gateway.webhooks.hooks import HookTable  # noqa: PLC0415 - few clusters have any

    table = HookTable()
    for each in configurations:
        table.heard("ADDED", each["kind"], each)
    return any(table.about(verb, row, row.version, "") for row in JUDGED for verb in ("CREATE", "UPDATE", "DELETE"))
