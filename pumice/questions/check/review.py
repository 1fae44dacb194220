# SPDX-License-Identifier: Apache-2.0
"""Review of a configuration: the effects of its actions, plugins and flags, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pumice.config.arguments import argument_named
from pumice.config.known import ACTION_ARGUMENTS, FLAGS, Arguments
from pumice.config.schema import PluginOption, SchedulerConfig
from pumice.core.objects.metadata import Object, is_list, is_mapping, section
from pumice.core.plugins import BUILT_IN
from pumice.core.plugins.capacity.limits import ROOT
from pumice.questions.check import words
from pumice.questions.check.effects import without_effect
from pumice.questions.oneshot.obstacles import is_in_a_tree, obstacles
from pumice.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# --- Warnings about jobs and JobFlows

VOLCANO: Final = "batch.volcano.sh/"
_TARGETED: Final = ("RestartPod", "RestartTask", "RestartPartition")


def of_jobs(config: SchedulerConfig, objects: Sequence[Object]) -> list[str]:
    """Return a sentence for each defect that some object can run into and no switch mends."""
    found: list[str] = []
    for fix, concerns, sentence in _DEFECTS:
        names = [_name(obj) for obj in objects if concerns(obj)]
        if names and fix not in config.pumice.fix:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            found.append(f"{names[0]}{more}: {sentence}; `fix: [{fix}]` mends it")
    return found


def _policies(obj: Object) -> Iterator[Object]:
    if obj.get("kind") == "Job" and str(obj.get("apiVersion")).startswith(VOLCANO):
        spec = section(obj, "spec")
        for part in (spec, *_mappings(spec.get("tasks"))):
            yield from _mappings(part.get("policies"))


def _mappings(said: object) -> Iterator[Object]:
    """Yield the mappings of a list; the API reports other items."""
    yield from (each for each in said if is_mapping(each)) if is_list(said) else ()


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
        "restarted-jobs-hear-unknown",
        lambda obj: _fires_on(obj, "Unknown"),
        "its policies for Unknown fire no more once it was restarted",
    ),
    (
        "terminated-jobs-fail-flows",
        lambda obj: obj.get("kind") == "JobFlow",
        "it stays Running for ever when one of its Jobs is Terminated",
    ),
    (
        "flows-follow-deletions",
        lambda obj: obj.get("kind") == "JobFlow",
        "a Job of it that is gone is made anew only when another of its Jobs changes, and then also after its end",
    ),
)


# --- Warnings about queues

LISTED: Final = ("cpu", "memory")
"""Resources that every node has; others that queues count have a domain in their names."""


def of_queues(config: SchedulerConfig, objects: Sequence[Object]) -> list[str]:
    """Return a sentence for each."""
    return [*obstacles(config, objects), *_roots_capability(config, objects)]


def _roots_capability(config: SchedulerConfig, objects: Sequence[Object]) -> list[str]:
    """Warn of resources that root's capability leaves out: they count as zero (capacity.go, checkHierarchicalQueue)."""
    if not is_in_a_tree(config):
        return []
    roots = (obj for obj in objects if obj.get("kind") == "Queue" and section(obj, "metadata").get("name") == ROOT)
    capability = next((section(section(obj, "spec"), "capability") for obj in roots), Object())
    nodes = (section(section(obj, "status"), "allocatable") for obj in objects if obj.get("kind") == "Node")
    there = {*LISTED, *(name for allocatable in nodes for name in allocatable if "/" in name)}
    missing = sorted(there.difference(capability)) if capability else []
    if not missing:
        return []
    named = " and ".join(missing)
    why = (
        f"queue {ROOT} has a capability without {named}: its queues may have none of it, and no pod that asks for it is"
    )
    return [f"{why} placed; add {named} to spec.capability of queue {ROOT}, or drop the capability"]


USERS = "a plugin of one's own"


@dataclass(frozen=True)
class ActionTold:
    """One action: its effect and its arguments."""

    name: str
    does: str
    arguments: Object


@dataclass(frozen=True)
class FlagTold:
    """One flag of a plugin, as it is written in the file, and the plugin's effect there, if it may act."""

    key: str
    does: str
    on: bool


@dataclass(frozen=True)
class PluginTold:
    """One plugin of a tier (from 0)."""

    tier: int
    name: str
    does: str
    flags: tuple[FlagTold, ...]
    arguments: Object


class Review(Result, tag="check/1"):
    """The whole review; `warnings`: settings without effect, or with another one than it seems."""

    actions: tuple[ActionTold, ...]
    plugins: tuple[PluginTold, ...]
    warnings: tuple[str, ...]


def review(config: SchedulerConfig, objects: Sequence[Object] = ()) -> Review:
    """Tell it. `objects`: the queues, PodGroups, Jobs and JobFlows that it meets, where they are known."""
    actions = tuple(
        ActionTold(
            name, words.ACTIONS.get(name, USERS), _heeded(config.action_arguments(name), ACTION_ARGUMENTS.get(name))
        )
        for name in config.actions
    )
    plugins = tuple(
        PluginTold(number, option.name, words.does(option) or USERS, _flags(option), _of_plugin(option))
        for number, tier in enumerate(config.tiers)
        for option in tier.plugins
    )
    met = (*of_queues(config, objects), *of_jobs(config, objects))
    return Review(actions, plugins, (*config.warnings, *without_effect(config), *met))


def _of_plugin(option: PluginOption) -> Object:
    plugin = BUILT_IN.get(option.name)
    return _heeded(option.arguments, None if plugin is None else plugin.arguments)


def _flags(option: PluginOption) -> tuple[FlagTold, ...]:
    heard = (flag for flag in FLAGS if words.listens(option, flag.point))
    told = ((flag, words.flag_does(option.name, flag.point)) for flag in heard)
    return tuple(FlagTold(flag.key, does, option.is_enabled(flag.point)) for flag, does in told)


def _heeded(arguments: Object, known: Arguments | None) -> Object:
    """Return the arguments in force: known ones whose value is read. `known` None: of a plugin that only its author
    knows.
    """
    if known is None:
        return arguments
    found = {name: (argument_named(name, known), value) for name, value in arguments.items()}
    return {name: value for name, (each, value) in found.items() if each is not None and each.kind.holds(value)}
