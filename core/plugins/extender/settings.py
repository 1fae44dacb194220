"""The plugin's arguments, read as Volcano does (`parseExtenderConfig`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from pumice.config.arguments import Arguments
from pumice.core.objects.metadata import section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.objects.pod import Task

VERBS: Final = (
    "onSessionOpen",
    "onSessionClose",
    "predicate",
    "prioritize",
    "preemptable",
    "reclaimable",
    "queueOverused",
    "jobEnqueueable",
    "jobReady",
    "allocateFunc",
    "deallocateFunc",
)
TIMEOUT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class ExtenderSettings:
    """`verbs`: what is appended to `url_prefix` to ask each; a verb that is not there is not asked. `managed`: the
    resources of which a pod must ask for one; empty: it is asked about every pod.
    """

    url_prefix: str
    timeout_s: float
    verbs: Mapping[str, str]
    ignorable: bool
    managed: frozenset[str]

    def url(self, verb: str) -> str:
        """Where a verb is asked."""
        return f"{self.url_prefix.rstrip('/')}/{self.verbs[verb]}"

    def is_interested(self, task: Task) -> bool:
        """Whether it is asked about the pod (`IsInterested`)."""
        if not self.managed:
            return True
        spec = task.template.spec
        containers: list[dict[str, Any]] = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        resources = [section(each, "resources") for each in containers]
        named = [resource for each in resources for part in ("requests", "limits") for resource in section(each, part)]
        return not self.managed.isdisjoint(named)


def read_settings(values: dict[str, Any]) -> ExtenderSettings:
    """What is of another type than it should be counts as not given."""
    arguments = Arguments("extender", values)
    named = {verb: arguments.get_string(f"extender.{verb}Verb", "") for verb in VERBS}
    managed = values.get("extender.managedResources")
    return ExtenderSettings(
        url_prefix=arguments.get_string("extender.urlPrefix", ""),
        timeout_s=arguments.get_duration_s("extender.httpTimeout", TIMEOUT_S),
        verbs={verb: path for verb, path in named.items() if path},
        ignorable=arguments.get_bool("extender.ignorable", default=False),
        managed=frozenset(map(str, cast("list[object]", managed))) if isinstance(managed, list) else frozenset(),
    )
