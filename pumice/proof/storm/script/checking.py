"""What a list of events that somebody hands in must say. What an event is about may be missing from the list: a storm
that was cut down names nodes and jobs whose own events were left out. It must not be something else, though.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from pumice.actors.api_server.faults.strikes import (
    BIND,
    CLAIM,
    CRASH,
    EVICT,
    JOURNAL,
    KINDS,
    OUTSIDE,
    STATUS,
    TURN,
    WATCH,
)
from pumice.actors.system.roles import CRASHABLE
from pumice.config.errors import ConfigError, WrongTypeError, describe, nearest_name
from pumice.config.load import parse_scheduler_config
from pumice.core.actions import ACTIONS
from pumice.core.errors import QuantityError
from pumice.core.objects.node_devices import MOST_CARDS
from pumice.core.plugins import PLUGINS
from pumice.core.quantity import quantity_of
from pumice.proof.storm.script.claims import MOST_DEVICES

if TYPE_CHECKING:
    from pumice.proof.storm.script.events import Event, Script

Rule = Callable[[Any], bool]
OCCASION: Final = re.compile(r"(\S+)(?: \S.*)? #[1-9][0-9]*")
WORDS: Final = (
    (BIND, ("bind",)),
    (EVICT, ("evict", "eviction")),
    (STATUS, ("status", "patch")),
    (CLAIM, ("claim",)),
    (WATCH, ("watch",)),
    (JOURNAL, ("append",)),
    (TURN, ("turn",)),
    (OUTSIDE, ("outside",)),
)
"""How the occasions begin at which faults can strike (see `pumice.actors.api_server.faults.strikes.subject`)."""


@dataclass(frozen=True, slots=True)
class Check:
    """What is expected, in words, and whether something is that."""

    expected: str
    holds: Rule


def whole(least: int, most: int = 2**31 - 1) -> Check:
    """A whole number."""
    words = f"a whole number from {least}" + (f" to {most}" if most < 2**31 - 1 else "")
    return Check(words, lambda found: number(found) and found == int(found) and least <= found <= most)


def number(found: Any) -> bool:
    """Not a truth value."""
    return isinstance(found, (int, float)) and not isinstance(found, bool)


def is_quantity(found: Any) -> bool:
    """Of some resource, and not negative."""
    try:
        return found is not None and quantity_of(found).sign() >= 0
    except QuantityError:
        return False


def _quantities(found: Any) -> bool:
    return isinstance(found, dict) and all(map(is_quantity, cast("dict[str, Any]", found).values()))


QUANTITY: Final = Check("a quantity such as 500m or 2Gi", is_quantity)
TEXT: Final = Check("a text", lambda found: isinstance(found, str))
NOT_NEGATIVE: Final = Check("a number from 0", lambda found: number(found) and found >= 0)
ANY: Final = Check("anything", lambda _: True)

MANY: Final = 10_000
"""Pods of a job, devices or volumes of a node: far more than any storm has, and soon made."""
NODE: Final = {"cpu": QUANTITY, "memory": QUANTITY, "pods": QUANTITY, "gpus": whole(0)}
JOB: Final = {
    "pods": whole(1, MANY),
    "min": whole(0),
    "cpu": QUANTITY,
    "memory": QUANTITY,
    "gpus": whole(0),
    "seconds": NOT_NEGATIVE,
    "grace": whole(0),
    "port": whole(0, 65535),
    "queue": TEXT,
    "priority": TEXT,
    "devices": whole(0, MOST_DEVICES),
    "storage": TEXT,
    "shared": TEXT,
    "claim": TEXT,
    "share": whole(0),
    "cores": whole(0, 100),
    "whole": whole(0, 1),
    "gpu-memory": whole(0),
    "gpu-number": whole(0, MOST_CARDS),
    "npu": whole(0),
    "npu-cores": whole(0),
}
LOOSE: Final = {key: check for key, check in JOB.items() if key not in ("min", "queue")} | {"scheduler": TEXT}
JOBS: Final = ("job", "vcjob")
OWNERS: Final = (*JOBS, "pods")
"""What has pods."""


@dataclass(frozen=True, slots=True)
class Happening:
    """`about`: kinds of what it is about, () for something new of its own; `details`: those it may have."""

    about: tuple[str, ...] = ()
    named: bool = True
    amount: Check = ANY
    details: Mapping[str, Check] = field(default_factory=dict[str, Check])
    needs: tuple[str, ...] = ()


HAPPENINGS: Final = {
    "node": Happening(
        details=NODE
        | {"devices": whole(0, MANY), "volumes": whole(0, MANY), "cards": whole(0, MOST_CARDS), "cells": whole(0, 64)}
        | {"mig": whole(0, 1), **dict.fromkeys(("gpus-shared", "npus", "chips"), whole(0, MOST_CARDS))},
        needs=("cpu", "memory"),
    ),
    "queue": Happening(details={"weight": whole(1), "capability": Check("quantities by resource", _quantities)}),
    "priority": Happening(amount=whole(-(2**31))),
    "job": Happening(details=JOB, needs=("pods",)),
    "vcjob": Happening(details=JOB, needs=("pods",)),
    "pods": Happening(details=LOOSE, needs=("pods",)),
    **dict.fromkeys(("claims", "geometries"), Happening(named=False)),
    "budget": Happening(JOBS, amount=whole(1)),
    **dict.fromkeys(("cordon", "remove-node", "shrink-node", "restore-node"), Happening(("node",))),
    "drain": Happening(("node",), amount=whole(0)),
    **dict.fromkeys(("delete-pod", "fail-pod", "touch-pod"), Happening(OWNERS, amount=whole(0))),
    "delete-job": Happening(JOBS),
    "scale-up": Happening(JOBS, amount=whole(1, MANY)),
    "clock-jump": Happening(named=False, amount=Check("seconds, not 0", bool)),
    "power-cut": Happening(named=False),
}
"""What `pumice.proof.storm.driver` and `pumice.proof.storm.driver` understand."""


def check_script(script: Script, source: str) -> None:
    """Raises ConfigError, which names the file and `events[i].key`, for what no storm can be made of."""
    _expect(NOT_NEGATIVE, script.seed, source, "seed")
    _expect(NOT_NEGATIVE, script.order_seed, source, "order")
    _expect(NOT_NEGATIVE, script.faults_end_s, source, "faults_end_s")
    _expect(NOT_NEGATIVE, script.news_delay_s, source, "news_delay_s")
    _expect(Check("seconds, more than 0", lambda found: found > 0), script.period_s, source, "period_s")
    _check_rates(script, source)
    if script.config:
        parse_scheduler_config(script.config, source=f"{source}: config", built_plugins=PLUGINS, built_actions=ACTIONS)
    kinds = {
        event.target: event.what for event in script.events if event.what in ("node", "queue", "priority", *OWNERS)
    }
    for index, event in enumerate(script.events):
        _check_event(event, kinds, source, f"events[{index}]")
    _check_occasions(script.events, source)


def _check_rates(script: Script, source: str) -> None:
    for what, rate in script.rates.items():
        if what not in KINDS:
            raise _unknown("fault", what, KINDS, source, "rates")
        _expect(Check("a probability from 0 to 1", lambda found: 0 <= found <= 1), rate, source, f"rates.{what}")
    listed = next((index for index, event in enumerate(script.events) if event.on), None)
    if script.rates and listed is not None:
        problem = f"expected no rates beside listed faults (events[{listed}]), found {', '.join(script.rates)}"
        raise ConfigError(problem, source=source, path="rates")


def _check_event(event: Event, kinds: Mapping[str, str], source: str, path: str) -> None:
    if event.what not in KINDS and event.what not in HAPPENINGS:
        raise _unknown("event", event.what, (*HAPPENINGS, *sorted(KINDS)), source, f"{path}.what")
    _expect(NOT_NEGATIVE, event.at, source, f"{path}.at")
    if event.what in KINDS:
        _check_fault(event, source, path)
    else:
        _check_happening(event, kinds, source, path)


def _check_fault(event: Event, source: str, path: str) -> None:
    occasion = OCCASION.fullmatch(event.on)
    words = next((words for kinds, words in WORDS if event.what in kinds), None)
    if occasion is None or (words is not None and occasion[1] not in words):
        example = {"append": "append #2", "watch": "watch Node+Queue #2"}.get((words or ("",))[0])
        example = example or f"{(words or ('bind',))[0]} default/j1-0 #2"
        raise WrongTypeError(
            f"an occasion of {event.what} such as {example!r}", event.on, source=source, path=f"{path}.on"
        )
    _expect(NOT_NEGATIVE, event.amount, source, f"{path}.amount")
    if event.what == CRASH and event.target not in CRASHABLE:
        raise _unknown("actor", event.target, CRASHABLE, source, f"{path}.target")
    _check_details(event, Happening(), source, path)


def _check_happening(event: Event, kinds: Mapping[str, str], source: str, path: str) -> None:
    happening = HAPPENINGS[event.what]
    if event.on:
        raise WrongTypeError(f"no occasion: {event.what} is no fault", event.on, source=source, path=f"{path}.on")
    if happening.named and not event.target:
        about = " or ".join(happening.about or (event.what,))
        raise WrongTypeError(f"the name of a {about}", event.target, source=source, path=f"{path}.target")
    kind = kinds.get(event.target)
    if happening.about and kind is not None and kind not in happening.about:
        expected = f"the name of a {' or '.join(happening.about)}, {event.target!r} is a {kind}"
        raise WrongTypeError(expected, event.target, source=source, path=f"{path}.target")
    _expect(happening.amount, event.amount, source, f"{path}.amount")
    _check_details(event, happening, source, path)


def _check_details(event: Event, happening: Happening, source: str, path: str) -> None:
    for key in happening.needs:
        if key not in event.details:
            expected = happening.details[key].expected
            raise WrongTypeError(expected, None, source=source, path=f"{path}.details.{key}")
    for key, found in event.details.items():
        if key not in happening.details:
            raise _unknown("key", key, happening.details, source, f"{path}.details")
        _expect(happening.details[key], found, source, f"{path}.details.{key}")


def _check_occasions(events: Iterable[Event], source: str) -> None:
    first: dict[str, int] = {}
    for index, event in enumerate(events):
        if event.on and first.setdefault(event.on, index) != index:
            problem = f"expected one fault at an occasion, found {event.on!r} at events[{first[event.on]}] too"
            raise ConfigError(problem, source=source, path=f"events[{index}].on")


def _expect(check: Check, found: object, source: str, path: str) -> None:
    if not check.holds(found):
        raise WrongTypeError(check.expected, found, source=source, path=path)


def _unknown(what: str, name: str, known: Iterable[str], source: str, path: str) -> ConfigError:
    known = tuple(known)
    near = nearest_name(name, known)
    hint = f", did you mean {near!r}?" if near else ""
    names = f"known: {', '.join(known)}" if known else "none is known here"
    return ConfigError(f"unknown {what} {describe(name)}{hint}; {names}", source=source, path=path)
