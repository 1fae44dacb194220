# SPDX-License-Identifier: Apache-2.0
"""A storm for strangers as a list of events: it is drawn from a seed, cut down, written and run again."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from pumice.cluster.faults.profiles import named_apart, read_rule
from pumice.cluster.faults.rules import AnyRule
from pumice.config.read import ValuePlace
from pumice.config.yaml_tree import Document
from pumice.proof.storm.script.checking import HAPPENINGS, Happening, Whole, check_happening, kinds_of
from pumice.proof.storm.script.events import VERSION, Event, Natural, Version, read_events
from pumice.proof.strangers.judges.panel import SUBJECTS, subject_profile

FAULT: Final = "fault"
RESTART: Final = "restart-subject"
JOBS: Final = ("job", "vcjob")
LEFT_OUT: Final = ("clock-jump", "power-cut", "claims", "geometries", "touch-pod")
"""Events of other storms that no client can bring about, or that need what strangers are not asked for."""
KNOWN: Final = {name: each for name, each in HAPPENINGS.items() if name not in LEFT_OUT} | {
    "scale-down": Happening(JOBS, amount=Whole),
    "replace-pod": Happening(JOBS, amount=Whole),
    "replace-node": Happening(("node",)),
    RESTART: Happening(named=False),
}
"""Events that `pumice.proof.strangers.driving` understands, except faults."""


class StrangerScript(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One storm for strangers. `judges`: the profile of the subjects; `invariant`: what it broke; `lockstep`: the
    subject reads each moment from its standard input. A fault has its rule as details.
    """

    seed: Natural
    events: tuple[Event, ...] = ()
    judges: str = "volcano"
    invariant: str = ""
    lockstep: bool = False
    version: Version = VERSION

    @property
    def rules(self) -> tuple[AnyRule, ...]:
        """Return the rules of all faults. Raises ConfigError."""
        place = ValuePlace(Document("faults", None))
        found = [read_rule(place.at(number), each.details) for number, each in enumerate(self.events) if is_fault(each)]
        return named_apart(place, found)


def is_fault(event: Event) -> bool:
    """Return whether an event is a rule of faults, which is in force from the beginning."""
    return event.what == FAULT


def read_stranger_script(path: Path) -> StrangerScript:
    """Read a storm for strangers. Raises ConfigError, which names the file and `events[i].key`."""
    script, place = read_events(path, StrangerScript)
    if script.judges not in SUBJECTS:
        subject_profile(script.judges)
    _check(script.events, place.at("events"))
    return script


def _check(events: tuple[Event, ...], place: ValuePlace) -> None:
    kinds, rules = kinds_of(events), list[AnyRule]()
    for index, event in enumerate(events):
        here = place.at(index)
        if is_fault(event):
            rules.append(read_rule(here.at("details"), event.details))
        elif event.what in KNOWN:
            check_happening(event, kinds, here, KNOWN[event.what])
        else:
            raise here.at("what").unknown("event", event.what, (*KNOWN, FAULT))
    named_apart(place, rules)
