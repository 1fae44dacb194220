# SPDX-License-Identifier: Apache-2.0
"""Rules for a list of events that a user passes in. The subject of an event may be missing from the list: a storm that
was cut down names nodes and jobs whose own events were left out. But it must not be an object of another kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct, field

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
from pumice.config.errors import ConfigError
from pumice.config.read import ValuePlace, shaped
from pumice.core.configuration import parse_scheduler_config
from pumice.core.errors import QuantityError
from pumice.core.objects.node_devices import MOST_CARDS
from pumice.core.quantity import quantity_of
from pumice.proof.storm.script.claims import MOST_DEVICES

if TYPE_CHECKING:
    from pumice.proof.storm.script.events import Event, Script

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
"""First words of the occasions at which faults can strike (see `pumice.actors.api_server.faults.strikes.subject`)."""


MANY: Final = 10_000
"""Pods of a job, devices or volumes of a node: far more than any storm has, and soon made."""

Share = Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")]
NotNegative = Annotated[float, Meta(ge=0, description="a number from 0")]
Integer = Annotated[float, Meta(ge=-(2**31), lt=2**31, multiple_of=1, description="a whole number")]
Whole = Annotated[float, Meta(ge=0, lt=2**31, multiple_of=1, description="a whole number from 0")]
Counted = Annotated[float, Meta(ge=1, lt=2**31, multiple_of=1, description="a whole number from 1")]
Many = Annotated[float, Meta(ge=0, le=MANY, multiple_of=1, description=f"a whole number from 0 to {MANY}")]
Pods = Annotated[float, Meta(ge=1, le=MANY, multiple_of=1, description=f"a whole number from 1 to {MANY}")]
Cards = Annotated[float, Meta(ge=0, le=MOST_CARDS, multiple_of=1, description=f"a whole number from 0 to {MOST_CARDS}")]
Bit = Annotated[float, Meta(ge=0, le=1, multiple_of=1, description="0 or 1")]
Cells = Annotated[float, Meta(ge=0, le=64, multiple_of=1, description="a whole number from 0 to 64")]
Port = Annotated[float, Meta(ge=0, le=65535, multiple_of=1, description="a whole number from 0 to 65535")]
Claims = Annotated[
    float, Meta(ge=0, le=MOST_DEVICES, multiple_of=1, description=f"a whole number from 0 to {MOST_DEVICES}")
]
Percent = Annotated[float, Meta(ge=0, le=100, multiple_of=1, description="a whole number from 0 to 100")]


class StormAmount:
    """A quantity of some resource, which is not negative."""


AMOUNT: Final = StormAmount()


def read_amount(kind: type, found: object) -> StormAmount:
    """Read a quantity from 0 on. Raises ValueError for another text."""
    assert kind is StormAmount
    with suppress(QuantityError):
        if found is not None and quantity_of(found).sign() >= 0:
            return AMOUNT
    raise ValueError("a quantity such as 500m or 2Gi")


class Nothing(Struct, forbid_unknown_fields=True, rename=lambda name: name.replace("_", "-")):
    """No details. Events with details have classes of their own below."""


class NodeDetails(Nothing, kw_only=True):
    """Details of a node."""

    cpu: StormAmount
    memory: StormAmount
    pods: StormAmount = AMOUNT
    gpus: Whole = 0
    devices: Many = 0
    volumes: Many = 0
    cards: Cards = 0
    cells: Cells = 0
    mig: Bit = 0
    gpus_shared: Cards = 0
    npus: Cards = 0
    chips: Cards = 0


class QueueDetails(Nothing):
    """Details of a queue."""

    weight: Counted = 1
    capability: dict[str, StormAmount] = field(default_factory=dict[str, StormAmount])


class PodsDetails(Nothing, kw_only=True):
    """Details of pods that have no job."""

    pods: Pods
    cpu: StormAmount = AMOUNT
    memory: StormAmount = AMOUNT
    gpus: Whole = 0
    seconds: NotNegative = 0
    grace: Whole = 0
    port: Port = 0
    priority: str = ""
    devices: Claims = 0
    storage: str = ""
    shared: str = ""
    claim: str = ""
    share: Whole = 0
    cores: Percent = 0
    whole: Bit = 0
    gpu_memory: Whole = 0
    gpu_number: Cards = 0
    npu: Whole = 0
    npu_cores: Whole = 0


class LooseDetails(PodsDetails):
    """Details of pods that may have another scheduler."""

    scheduler: str = ""


class JobDetails(PodsDetails):
    """Details of a job."""

    min: Whole = 0
    queue: str = ""


JOBS: Final = ("job", "vcjob")
OWNERS: Final = (*JOBS, "pods")
"""Owners of pods."""


@dataclass(frozen=True, slots=True)
class Happening:
    """A kind of event. `about`: kinds of its subject, () for a new object; `amount` and `details`: their types."""

    about: tuple[str, ...] = ()
    named: bool = True
    amount: Any = float
    details: type[Struct] = Nothing


HAPPENINGS: Final = {
    "node": Happening(details=NodeDetails),
    "queue": Happening(details=QueueDetails),
    "priority": Happening(amount=Integer),
    **dict.fromkeys(JOBS, Happening(details=JobDetails)),
    "pods": Happening(details=LooseDetails),
    **dict.fromkeys(("claims", "geometries"), Happening(named=False)),
    "budget": Happening(JOBS, amount=Counted),
    **dict.fromkeys(("cordon", "remove-node", "shrink-node", "restore-node"), Happening(("node",))),
    "drain": Happening(("node",), amount=Whole),
    **dict.fromkeys(("delete-pod", "fail-pod", "touch-pod"), Happening(OWNERS, amount=Whole)),
    "delete-job": Happening(JOBS),
    "scale-up": Happening(JOBS, amount=Pods),
    "clock-jump": Happening(named=False),
    "power-cut": Happening(named=False),
}
"""Events that `pumice.proof.storm.driver` understands."""


def check_script(script: Script, place: ValuePlace) -> None:
    """Check a script. Raises ConfigError, which names the file and `events[i].key`, for events that do not make a
    storm.
    """
    _check_rates(script, place)
    if script.config:
        source = f"{place.document.source}: config"
        parse_scheduler_config(script.config, source=source)
    kinds = kinds_of(script.events)
    first: dict[str, int] = {}
    for index, event in enumerate(script.events):
        here = place.at("events").at(index)
        if event.what in KINDS:
            _check_fault(event, here)
        elif event.what in HAPPENINGS:
            check_happening(event, kinds, here, HAPPENINGS[event.what])
        else:
            raise here.at("what").unknown("event", event.what, (*HAPPENINGS, *KINDS))
        if event.on and first.setdefault(event.on, index) != index:
            problem = f"expected one fault at an occasion, found {event.on!r} at events[{first[event.on]}] too"
            raise here.at("on").error(ConfigError, problem)


def _check_rates(script: Script, place: ValuePlace) -> None:
    for what in script.rates:
        if what not in KINDS:
            raise place.at("rates").unknown("fault", what, KINDS)
    listed = next((index for index, event in enumerate(script.events) if event.on), None)
    if script.rates and listed is not None:
        problem = f"expected no rates beside listed faults (events[{listed}]), found {', '.join(script.rates)}"
        raise place.at("rates").error(ConfigError, problem)


def _check_fault(event: Event, place: ValuePlace) -> None:
    occasion = OCCASION.fullmatch(event.on)
    words = next((words for kinds, words in WORDS if event.what in kinds), None)
    if occasion is None or (words is not None and occasion[1] not in words):
        example = {"append": "append #2", "watch": "watch Node+Queue #2"}.get((words or ("",))[0])
        example = example or f"{(words or ('bind',))[0]} default/j1-0 #2"
        raise place.at("on").wrong(f"an occasion of {event.what} such as {example!r}", event.on)
    checked: Any = NotNegative
    shaped(place.at("amount"), event.amount, checked)
    if event.what == CRASH and event.target not in CRASHABLE:
        raise place.at("target").unknown("actor", event.target, CRASHABLE)
    shaped(place.at("details"), event.details, Nothing)


def kinds_of(events: Iterable[Event]) -> dict[str, str]:
    """Return the kinds of the objects that events make, by name."""
    return {event.target: event.what for event in events if event.what in ("node", "queue", "priority", *OWNERS)}


def check_happening(event: Event, kinds: Mapping[str, str], place: ValuePlace, happening: Happening) -> None:
    """Check an event other than a fault. `kinds`: of all objects, by name. Raises ConfigError."""
    if event.on:
        raise place.at("on").wrong(f"no occasion: {event.what} is not a fault", event.on)
    if happening.named and not event.target:
        raise place.at("target").wrong(f"the name of a {' or '.join(happening.about or (event.what,))}", event.target)
    kind = kinds.get(event.target)
    if happening.about and kind is not None and kind not in happening.about:
        expected = f"the name of a {' or '.join(happening.about)}, {event.target!r} is a {kind}"
        raise place.at("target").wrong(expected, event.target)
    if event.what == "clock-jump" and not event.amount:
        raise place.at("amount").wrong("seconds, not 0", event.amount)
    shaped(place.at("amount"), event.amount, happening.amount)
    shaped(place.at("details"), event.details, happening.details, read_amount)
