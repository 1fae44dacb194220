# SPDX-License-Identifier: Apache-2.0
"""Settings of a configuration that have no effect, or another one than it seems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pumice.config.errors import describe
from pumice.config.known import FLAGS, PUMICE
from pumice.config.schema import PluginOption, SchedulerConfig
from pumice.core.plugins import BUILT_IN, SECTIONS, record_of
from pumice.core.plugins.extender.plugin import VERB_OF
from pumice.core.plugins.plugin import Limit
from pumice.questions.check.words import listens

Places = list[tuple[int, PluginOption]]
"""The plugins with their tiers, from 0."""
QUOTAS: Final = frozenset(name for name, plugin in BUILT_IN.items() if plugin.limits is Limit.QUEUE)
VICTIMS: Final = {"preempt": "Preemptable", "reclaim": "Reclaimable", "shuffle": "Victim"}
"""Actions that evict, and the flag of the plugins that name victims."""
WHOLE_GANGS: Final = ("gangpreempt", "gangreclaim")
RESERVES: Final = "reserve-without-filters"
"""The fix that has pods placed that predicates did not look at."""
STARVING: Final = ("preempt", "reclaim", *WHOLE_GANGS)
PRIORITY: Final = "priority"
LENT: Final = "enqueue-counts-what-is-lent"
FILTERS: Final = "conformance-only-filters"


def without_effect(config: SchedulerConfig) -> list[str]:
    """Return a sentence for each."""
    places = [(number, option) for number, tier in enumerate(config.tiers) for option in tier.plugins]
    return [sentence for rule in RULES for sentence in rule(config, places)]


def _tiers(config: SchedulerConfig, _places: Places) -> Iterator[str]:
    for number, tier in enumerate(config.tiers):
        if not tier.plugins:
            yield f"tiers[{number}]: it names no plugin"


def _twice(config: SchedulerConfig, places: Places) -> Iterator[str]:
    for name in dict.fromkeys(config.actions):
        if config.actions.count(name) > 1:
            yield f"action {name} runs {config.actions.count(name)} times in every cycle"
    listed = [option.name for _, option in places]
    for name in dict.fromkeys(listed):
        if listed.count(name) > 1:
            yield f"plugin {name} is listed {listed.count(name)} times: it is built once and asked each time"


def _flags(config: SchedulerConfig, places: Places) -> Iterator[str]:
    """Yield flags that differ from the default (on, except for two), so they were written."""
    for number, option in places:
        if option.name not in BUILT_IN:
            continue
        known = BUILT_IN[option.name].listens
        where = f"tiers[{number}], plugin {option.name}"
        for flag in FLAGS:
            if flag.point not in known and option.enabled.get(flag.point, flag.on_by_default) != flag.on_by_default:
                yield f"{where}: {flag.key} is without effect: the plugin says nothing there"
        if not any(option.is_enabled(flag.point) for flag in FLAGS if flag.point in known and flag.on_by_default):
            yield f"{where}: {_switched_off(config, option)}"


def _switched_off(config: SchedulerConfig, option: PluginOption) -> str:
    """Yield the plugins that no action asks."""
    if option.name != "predicates" or RESERVES in config.pumice.fix:
        return "all that it does is switched off"
    return (
        "enablePredicate is off: no pod is bound at all, for volumes are reserved only for pods that it has looked at "
        f"(the fix {RESERVES} has them placed wherever there is room)"
    )


def _later_tiers(config: SchedulerConfig, places: Places) -> Iterator[str]:
    for action in ("preempt", "reclaim"):
        asked = [(number, option.name) for number, option in places if _listens(option, VICTIMS[action])]
        later = [name for number, name in asked if number > asked[0][0]]
        if action in config.actions and later:
            first = ", ".join(name for number, name in asked if number == asked[0][0])
            yield (
                f"{action} asks {', '.join(later)} about victims only where the tier before ({first}) has an opinion "
                "on none of them"
            )


def _evictions(config: SchedulerConfig, places: Places) -> Iterator[str]:
    for action, point in VICTIMS.items():
        if action in config.actions and not _any(places, point):
            yield f"action {action} evicts no pod: no plugin names victims"
    for action in WHOLE_GANGS:
        if action in config.actions and not any(record_of(option.name).names_gangs for _, option in places):
            yield f"action {action} evicts no pod: no plugin names victims"
    for action in STARVING:
        if action in config.actions and not _any(places, "JobStarving"):
            yield f"action {action} evicts for no job: no plugin says which job starves (gang, priority and tdm do)"
    for _, option in places:
        needed = record_of(option.name).needs_action
        if needed and needed not in config.actions:
            yield f"plugin {option.name} is without effect: it needs the action {needed}"


def _admission(config: SchedulerConfig, places: Places) -> Iterator[str]:
    judges = judges_of(places)
    evicting = [action for action in STARVING if action in config.actions]
    if "enqueue" in config.actions and not judges:
        yield "action enqueue lets every PodGroup in: no plugin judges (overcommit, proportion, capacity, … do)"
    if "enqueue" not in config.actions:
        for name in judges:
            if record_of(name).listens == ("JobEnqueued",):
                mind = f"; mind that enqueue keeps {' and '.join(evicting)} from jobs that are not admitted"
                needs = f"plugin {name} is without effect: it needs the action enqueue"
                yield needs + (mind if evicting else "")


def _placing(config: SchedulerConfig, places: Places) -> Iterator[str]:
    names = {option.name for _, option in places}
    if "allocate" not in config.actions:
        yield "nothing is placed: action allocate is not listed"
    if "predicates" not in names:
        yield "taints, selectors, affinity, ports and volumes are not looked at: plugin predicates is not listed"
    if "gang" not in names:
        yield "minAvailable is not enforced: plugin gang is not listed"
    elif not any(option.name == "gang" and option.is_enabled("JobReady") for _, option in places):
        yield "minAvailable is not enforced: enableJobReady of plugin gang is off"
    elif not any(option.name == "gang" and option.is_enabled("JobPipelined") for _, option in places):
        yield (
            "a job without room for its minAvailable keeps what it found from others for the rest of every cycle: "
            "enableJobPipelined of plugin gang is off"
        )
    if names.isdisjoint(QUOTAS):
        yield "queues have neither shares nor limits: neither plugin proportion nor capacity is listed"
    if names.issuperset(QUOTAS):
        yield "proportion and capacity both divide the cluster: a queue has what both of them allow; use one"


EARLY: Final = {
    "preempt": "what it finds room for without evictions is promised that room in every cycle, and never bound",
    "gangpreempt": "it evicts for jobs that there would have been room for",
}
"""Effect of an action that runs before allocate although it belongs after it."""


def _order(config: SchedulerConfig, _places: Places) -> Iterator[str]:
    actions = config.actions
    if "allocate" not in actions:
        return
    for name, outcome in EARLY.items():
        if name in actions and actions.index(name) < actions.index("allocate"):
            yield f"action {name} comes before allocate: {outcome}"
    if "enqueue" in actions and actions.index("enqueue") > len(actions) - 1 - actions[::-1].index("allocate"):
        yield "action enqueue comes after allocate: what it lets in waits for the next cycle"


def _arguments(config: SchedulerConfig, _places: Places) -> Iterator[str]:
    for name in config.configurations:
        if name not in config.actions and name not in SECTIONS and name != PUMICE:
            yield f"configurations: {name} is without effect: the action is not among the actions"


def _extender(_config: SchedulerConfig, places: Places) -> Iterator[str]:
    for number, option in places:
        if option.name != "extender":
            continue
        where, arguments = f"tiers[{number}], plugin extender", option.arguments
        if not str(arguments.get("extender.urlPrefix", "")).startswith(("http://", "https://")):
            found = describe(arguments.get("extender.urlPrefix"))
            yield f"{where}: every question fails: extender.urlPrefix: expected http://… or https://…, was {found}"
        if not any(name.endswith("Verb") and value for name, value in arguments.items()):
            yield f"{where}: it is asked nothing: no extender.…Verb is named"
        for flag in FLAGS:
            if flag.point in VERB_OF and not option.is_enabled(flag.point) and listens(option, flag.point):
                yield f"{where}: extender.{VERB_OF[flag.point]}Verb is without effect: {flag.key} is off"


def _switches(_config: SchedulerConfig, places: Places) -> Iterator[str]:
    """Yield plugins that do nothing until one of their own switches is on, and all of these are off by default."""
    for _, option in places:
        switches = record_of(option.name).switches
        if switches and not any(switch.of(option.arguments) for switch in switches):
            names = ", ".join(switch.name for switch in switches)
            yield f"plugin {option.name} is without effect: its switches are off by default ({names})"


def _priority(config: SchedulerConfig, places: Places) -> Iterator[str]:
    listed = [option for _, option in places if option.name == PRIORITY]
    if "preempt" in config.actions and not any(_listens(option, "Preemptable") for option in listed):
        why = f"enablePreemptable of plugin {PRIORITY} is off" if listed else f"plugin {PRIORITY} is not listed"
        yield (
            f"action preempt goes by no priority ({why}): a job evicts any other of its queue that the other plugins "
            f"let go, more important ones too; list plugin {PRIORITY}"
        )


def _admission_first(config: SchedulerConfig, places: Places) -> Iterator[str]:
    """Warn of jobs that enqueue hides from evicting actions: these look at admitted jobs only (volcano 3910)."""
    evicting = [action for action in STARVING if action in config.actions]
    limiting = [name for name in judges_of(places) if record_of(name).limits is not None]
    if "enqueue" not in config.actions or not evicting or not limiting:
        return
    many = len(evicting) > 1
    yield (
        f"{' and '.join(evicting)} {'make' if many else 'makes'} room for admitted jobs only: with action enqueue a "
        f"job that {' or '.join(dict.fromkeys(limiting))} does not admit, because the cluster or its queue is full, "
        "waits whatever its priority; without enqueue in actions all jobs are admitted"
    )


def _lent(config: SchedulerConfig, places: Places) -> Iterator[str]:
    """Warn of Volcano 4679."""
    tree = any(option.name == "capacity" and option.is_enabled("Hierarchy") for _, option in places)
    reclaiming = [action for action in ("reclaim", "gangreclaim") if action in config.actions]
    if tree and reclaiming and "enqueue" in config.actions and LENT not in config.pumice.fix:
        yield (
            f"{' and '.join(reclaiming)} cannot take back what other queues borrowed of a full cluster: enqueue counts "
            f"it against the limit of queue root and does not admit who is entitled to it; take enqueue out of actions "
            f"(the fix {LENT} admits them)"
        )


def _conformance_decides(config: SchedulerConfig, places: Places) -> Iterator[str]:
    """Warn of Volcano 5896."""
    if "reclaim" not in config.actions or FILTERS in config.pumice.fix:
        return
    asked = [(number, option.name) for number, option in places if _listens(option, VICTIMS["reclaim"])]
    first = min((number for number, name in asked if name == "conformance"), default=None)
    late = [name for number, name in asked if name in QUOTAS and first is not None and number > first]
    if late:
        yield (
            f"conformance stands in a tier above {' and '.join(late)}: reclaim may then take from queues what they "
            f"deserve; put them in one tier (the fix {FILTERS} has conformance only filter)"
        )


def judges_of(places: Places) -> list[str]:
    """Return the plugins that are asked about admission."""
    return [option.name for _, option in places if _listens(option, "JobEnqueued")]


def _listens(option: PluginOption, point: str) -> bool:
    return option.is_enabled(point) and listens(option, point)


def _any(places: Places, point: str) -> bool:
    return any(_listens(option, point) for _, option in places)


RULES: Final[tuple[Callable[[SchedulerConfig, Places], Iterator[str]], ...]] = (
    _placing,
    _order,
    _twice,
    _tiers,
    _flags,
    _later_tiers,
    _evictions,
    _admission,
    _admission_first,
    _lent,
    _conformance_decides,
    _priority,
    _arguments,
    _extender,
    _switches,
)
