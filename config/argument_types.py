"""Kinds of value of each argument of a plugin or action; a value of another kind is ignored by its reader.

Source: the reads of Volcano's plugins and actions (`framework/arguments.go` and `OnSessionOpen` of each). The loader
says what was expected and found; the readers keep their default, as there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pumice.config.durations import EXPECTED, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable

_SWITCH_TEXTS: Final = frozenset(["1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"])


class ArgumentKind(NamedTuple):
    """A kind of value: its name in a sentence, and whether a value is one."""

    expected: str
    holds: Callable[[Any], bool]


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_switch(value: object) -> bool:
    return isinstance(value, bool) or (isinstance(value, str) and value in _SWITCH_TEXTS)


def _is_duration(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parse_duration(value)
    except ValueError:
        return False
    return True


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 100


def _are_classes_of_pods(value: object) -> bool:
    classes = cast("list[object]", value) if isinstance(value, list) else []
    return bool(classes) and all(isinstance(each, dict) and _is_class(cast("dict[str, Any]", each)) for each in classes)


def _is_class(said: dict[str, Any]) -> bool:
    numbers = {name: value for name, value in said.items() if name != "models"}
    counts = all(type(value) is int and value >= 0 for value in numbers.values())
    return counts and numbers.keys() <= {"cpu", "milli", "cards", "pods"} and isinstance(said.get("models", ""), str)


def _is_card_policy(value: object) -> bool:
    return value in ("", "binpack", "spread")


def _are_rules(value: object) -> bool:
    rules = cast("list[object]", value) if isinstance(value, list) else None
    return rules is not None and all(isinstance(rule, dict) and _are_labels(cast("Any", rule)) for rule in rules)


def _are_labels(said: dict[object, object]) -> bool:
    return bool(said) and all(isinstance(value, str) for value in said.values())


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in cast("list[object]", value))


INTEGER: Final = ArgumentKind("an integer", _is_integer)
NUMBER: Final = ArgumentKind("a number", _is_number)
SWITCH: Final = ArgumentKind("true or false", _is_switch)
TEXT: Final = ArgumentKind("a text", _is_text)
DURATION: Final = ArgumentKind(EXPECTED, _is_duration)
MAPPING: Final = ArgumentKind("a mapping", _is_mapping)
LIST: Final = ArgumentKind("a list", _is_list)
SHARE: Final = ArgumentKind("a number above 0, at most 100", _is_share)
TEXTS: Final = ArgumentKind("a list of texts", _are_texts)
CARD_POLICY: Final = ArgumentKind("binpack or spread", _is_card_policy)
RULES: Final = ArgumentKind("a list of rules, each of labels and their values (texts)", _are_rules)
CLASSES: Final = ArgumentKind(
    "a list of classes of pods, each of some of cpu, milli, cards, pods (whole numbers) and models (a text)",
    _are_classes_of_pods,
)

KINDS: Final[dict[str, ArgumentKind]] = {
    "allowWholeBundle": SWITCH,
    "ancestorReclaimLevel": INTEGER,
    "binpack.cpu": INTEGER,
    "binpack.memory": INTEGER,
    "binpack.resources": TEXT,
    "capacity.DRAConsumableCapacityEnable": SWITCH,
    "capacity.DynamicResourceAllocationEnable": SWITCH,
    "deviceshare.GPUExclusiveRules": RULES,
    "deviceshare.KnownGeometriesCMName": TEXT,
    "deviceshare.KnownGeometriesCMNamespace": TEXT,
    "deviceshare.SchedulePolicy": CARD_POLICY,
    "deviceshare.ScheduleWeight": INTEGER,
    "enablePreferredOrder": SWITCH,
    "enableTopologyAwarePreemption": SWITCH,
    "extender.httpTimeout": DURATION,
    "extender.ignorable": SWITCH,
    "extender.managedResources": TEXTS,
    "fgd.coverage": SHARE,
    "fgd.typicalPods": CLASSES,
    "hypernode.binpack.cpu": INTEGER,
    "hypernode.binpack.memory": INTEGER,
    "hypernode.binpack.normal-pod.enable": SWITCH,
    "hypernode.binpack.normal-pod.fading": NUMBER,
    "hypernode.binpack.resources": TEXT,
    "hypernode.gradient.evict.max-hypernodes": INTEGER,
    "interval": DURATION,
    "maxCandidateNodesAbsolute": INTEGER,
    "maxDomains": INTEGER,
    "minCandidateNodesAbsolute": INTEGER,
    "minCandidateNodesPercentage": INTEGER,
    "overcommit-factor": NUMBER,
    "predicateErrorCacheEnable": SWITCH,
    "proportional": MAPPING,
    "resourceStrategyFitWeight": NUMBER,
    "resources": MAPPING,
    "sla-waiting-time": DURATION,
    "sra": MAPPING,
    "strategies": LIST,
    "strict": SWITCH,
    "tdm.evict.period": DURATION,
    "thresholds": MAPPING,
    "topologyAwarePreemptWorkerNum": INTEGER,
    "volumebinding.bindTimeoutSeconds": INTEGER,
    "weight": INTEGER,
}
"""By argument: a name means the same wherever it is read."""

_SHAPES: Final = {
    ("binpack.resources.", ""): INTEGER,
    ("hypernode.binpack.resources.", ""): INTEGER,
    ("predicate.", ""): SWITCH,
    ("deviceshare.", "Enable"): SWITCH,
    ("extender.", "Verb"): TEXT,
    ("extender.", "urlPrefix"): TEXT,
}
"""How an argument begins and ends."""


def kind_of(argument: str) -> ArgumentKind | None:
    """Return the kind of value of an argument; None where any is allowed, or only the reader knows."""
    found = KINDS.get(argument)
    if found is None and argument.endswith(".weight"):
        return INTEGER
    whole = (kind for (start, end), kind in _SHAPES.items() if argument.startswith(start) and argument.endswith(end))
    return found or next(whole, None)
