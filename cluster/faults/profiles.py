# SPDX-License-Identifier: Apache-2.0
"""Fault profiles from YAML or JSON, by anyone: all of it is checked before the first request."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from msgspec import structs

from pumice.cluster.api.selectors import SelectorTextError, parse_selector
from pumice.cluster.faults.rules import RULES, WRITES, AnyRule, FaultProfile, Refuse, RequestRule
from pumice.config.errors import ConflictError
from pumice.config.read import ValuePlace, mapping, read_yaml, sequence, shaped
from pumice.config.yaml_tree import Document

LISTED: Final = ("verb", "kind", "nth")
"""Keys that take a list of values, or one value alone."""
MOST_RULES: Final = 1000
CONFLICT: Final = 409
NOWHERE: Final = ValuePlace(Document("", None))
KEYS: Final = ("include", "rules", "seed")
PACKAGED: Final = ("kubelets", "leases", "lost-answers", "refusals", "rough", "slow", "stale", "watches")
"""The names in `profiles.yaml`, for the help of commands, which read no file to be shown."""


def read_profile_text(text: str, source: str) -> FaultProfile:
    """Return the profile that a text holds. Raises ConfigError with the line."""
    return read_profile(*read_yaml(text, source))


def read_profile(place: ValuePlace, value: object) -> FaultProfile:
    """Return the profile of a parsed text: the included packaged ones first, in their order. Raises ConfigError."""
    given = mapping(place, value)
    for key in given:
        if key not in KEYS:
            raise place.at(key).unknown("key", key, KEYS)
    rules = list[AnyRule]()
    # Before one's own rules: of two that would strike a request the first does.
    for position, name in enumerate(sequence(place.at("include"), given.get("include"))):
        rules += packaged(name, place.at("include").at(position)).rules
    written = sequence(place.at("rules"), given.get("rules"))
    if len(written) > MOST_RULES:
        raise place.at("rules").wrong(f"at most {MOST_RULES} rules", len(written))
    for position, each in enumerate(written):
        rules.append(read_rule(place.at("rules").at(position), each))
    whole = shaped(place, {"seed": given.get("seed")}, FaultProfile)
    return structs.replace(whole, rules=named_apart(place.at("rules"), rules))


def packaged(name: object, place: ValuePlace) -> FaultProfile:
    """Return the packaged profile of a name. Raises UnknownNameError at the place."""
    found = _packaged()
    if not isinstance(name, str):
        raise place.wrong("the name of a profile", name)
    if name not in found:
        raise place.unknown("fault profile", name, found)
    return found[name]


# A file of the package does not change while the process runs.
@cache
def _packaged() -> Mapping[str, FaultProfile]:
    text = files("pumice.cluster.faults").joinpath("profiles.yaml").read_text(encoding="utf-8")
    place, value = read_yaml(text, "profiles.yaml")
    return {name: _prefixed(name, read_profile(place.at(name), each)) for name, each in mapping(place, value).items()}


def _prefixed(name: str, profile: FaultProfile) -> FaultProfile:
    """Return the profile with names of rules that no other profile has, since one may include several."""
    rules = [structs.replace(rule, rule=f"{name}.{rule.rule}") for rule in profile.rules]
    return structs.replace(profile, rules=tuple(rules))


def read_rule(place: ValuePlace, value: object) -> AnyRule:
    """Return one rule. Raises ConfigError at the place of what is wrong."""
    given = {key: _listed(key, each) for key, each in mapping(place, value).items() if each is not None}
    fault: Any = given.get("fault")
    if not isinstance(fault, str):
        raise place.at("fault").wrong(f"one of {', '.join(RULES)}", fault)
    if fault not in RULES:
        raise place.at("fault").unknown("fault", fault, RULES)
    rule = shaped(place, given, RULES[fault])
    # Each value was checked by the class; here they are compared with each other.
    _check(place, rule)
    return rule


def _listed(key: str, value: object) -> object:
    return [value] if key in LISTED and isinstance(value, str | int) else value


def _check(place: ValuePlace, rule: AnyRule) -> None:
    """Check the values of a rule against each other."""
    if rule.until_s is not None and rule.until_s <= rule.from_s:
        raise place.at("until_s").wrong(f"more than from_s ({rule.from_s:g})", rule.until_s)
    if isinstance(rule, RequestRule):
        _check_verbs(place, rule)
    try:
        parse_selector(rule.labels)
    except SelectorTextError as error:
        raise place.at("labels").error(ConflictError, f"not a valid label selector: {error}") from error


def _check_verbs(place: ValuePlace, rule: RequestRule) -> None:
    # A conflict is about what is in the way of a write; the other codes fit reads as well.
    fits = WRITES if isinstance(rule, Refuse) and rule.code == CONFLICT else rule.fits
    for verb in rule.verb:
        if verb not in fits:
            raise place.at("verb").wrong(f"one of {', '.join(fits)}", verb)


def named_apart(place: ValuePlace, rules: list[AnyRule]) -> tuple[AnyRule, ...]:
    """Return the rules with a name each: those without one are called by their fault and their number. Raises
    ConflictError for a name that two rules have: what is drawn for a rule depends on its name.
    """
    whole, taken = list[AnyRule](), set[str]()
    for number, rule in enumerate(rules, start=1):
        name = rule.rule or f"{rule.fault}-{number}"
        if name in taken:
            raise place.at(number - 1).error(ConflictError, f"two rules are called {name!r}")
        taken.add(name)
        whole.append(rule if rule.rule else structs.replace(rule, rule=name))
    return tuple(whole)


def rule_of(source: str, fault: str, given: Mapping[str, object]) -> AnyRule:
    """Return the rule of a call with these arguments. Raises ConfigError."""
    return read_rule(ValuePlace(Document(source, None)), {"fault": fault, **given})
