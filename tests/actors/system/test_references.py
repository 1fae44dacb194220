"""What actors hold together stands in the table of references; nothing else of one can be reached from another."""

from __future__ import annotations

import ast
import socket
import types
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

from pumice.actors.api_server.faults.strikes import SeededFaults
from pumice.actors.gateway.settings import GatewaySettings
from pumice.actors.real_clusters.mirror.settings import MirrorSettings
from pumice.actors.real_clusters.scheduled.settings import ClusterSettings, ElectionSettings
from pumice.actors.runtime.clock import RealClock
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.system.references import ALL_ROLES, REFERENCES
from pumice.actors.system.roles import CRASHABLE
from pumice.actors.system.settings import SystemSettings, mirrored, scheduling_there
from pumice.actors.system.system import System
from pumice.cluster.handles import HandleTable
from pumice.config.kubeconfig import ClusterAccess
from pumice.core.state.view import View
from pumice.proof.storm.extender import StormExtender
from pumice.storage.memory import MemoryJournal
from tests.actors.system.outsiders import SYSTEM, Held, handed, held, spoken
from tests.actors.system.reaching import is_fixed, is_fixed_type, reached
from tests.kit import source

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """What can be reached is the same on each backend."""
    return "asyncio"


COLLECTING = (
    'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\nmetrics:\n  type: prometheus\n  address: http://p\n'
)
GATEWAY = GatewaySettings(socket.socket.__new__(socket.socket))
FAULTS = SeededFaults(1, {"bind-lost": 0.1}, crashable=CRASHABLE)
STRUCK = SystemSettings(arrivals=True, faults=FAULTS, post=StormExtender(FAULTS, anyio.sleep), config_text=COLLECTING)
MIRROR = mirrored(MirrorSettings(ClusterAccess("http://cluster")), SystemSettings())
SETTINGS = {
    "served": SystemSettings(arrivals=True, bind_workers=2, gateway=GATEWAY),
    "struck": STRUCK,
    "struck and served": replace(STRUCK, gateway=GATEWAY),
    "mirror": MIRROR,
    "mirror and served": replace(MIRROR, gateway=GATEWAY),
    "cluster": scheduling_there(
        ClusterSettings(ClusterAccess("http://cluster"), election=ElectionSettings()), SystemSettings()
    ),
}


def holders(system: System) -> dict[int, tuple[Any, set[str]]]:
    """By id, what can be reached from an actor and changed, and the actors that can reach it."""
    ends = [reference.of(system) for reference in REFERENCES if len(reference.roles) > 1]
    found: dict[int, tuple[Any, set[str]]] = {}
    for name, role in system.switchboard.role.items():
        build = system.roles[role].build
        actor = None if build is None else build(system, name)
        for number, thing in reached(actor, ends).items():
            found.setdefault(number, (thing, set()))[1].add(name)
    return found


def strangers(system: System) -> list[str]:
    """What several actors can reach, may change, and do not have by a row of the table."""
    known = {id(reference.of(system)): reference for reference in REFERENCES}
    problems: list[str] = []
    for number, (thing, names) in holders(system).items():
        roles = {system.switchboard.role[name] for name in names}
        if len(names) > 1 and not isinstance(thing, Mailbox) and number not in known and not is_fixed(thing):
            problems.append(f"{type(thing).__name__} of {', '.join(sorted(roles))}")
        elif number in known and not roles.issubset(known[number].roles):
            problems.append(f"{known[number].what} of {', '.join(sorted(roles.difference(known[number].roles)))}")
    return problems


def boxes_beyond(system: System) -> list[str]:
    """Mailboxes that an actor can reach though its role's record does not give them."""
    own: dict[str, set[str]] = {}
    for name in system.switchboard.mailboxes:
        boxes: list[Mailbox[Any, Any]] = []
        for port in system.ports(name).values():
            boxes += port if isinstance(port, list) else [port]
        own[name] = {name, *(box.name for box in filter(None, boxes))}
    held: list[tuple[Mailbox[Any, Any], set[str]]] = [
        (thing, names) for thing, names in holders(system).values() if isinstance(thing, Mailbox)
    ]
    return [f"{name} reaches {box.name}" for box, names in held for name in names if box.name not in own[name]]


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
async def test_actors_hold_nothing_together_but_what_the_table_says(settings: SystemSettings) -> None:
    system = System(settings, MemoryJournal(), RealClock())
    assert strangers(system) == []
    assert boxes_beyond(system) == []


async def test_every_row_is_true() -> None:
    held: dict[str, set[str]] = defaultdict(set)
    for settings in SETTINGS.values():
        system = System(settings, MemoryJournal(), RealClock())
        found = holders(system)
        for reference in REFERENCES:
            thing = reference.of(system)
            assert getattr(reference.kind, "_is_protocol", False) or isinstance(thing, reference.kind)
            held[reference.what] |= {
                system.switchboard.role[name] for name in found.get(id(thing), (thing, set[str]()))[1]
            }
    assert {what: tuple(sorted(roles)) for what, roles in held.items()} == {
        reference.what: tuple(sorted(reference.roles)) for reference in REFERENCES
    }


async def test_what_lies_behind_a_handle_is_of_its_type_and_cannot_be_changed() -> None:
    system = System(SETTINGS["served"], MemoryJournal(), RealClock())
    tables = {reference.what: reference for reference in REFERENCES if reference.kind is HandleTable}
    assert {what: vars(reference.of(system))["kind"] for what, reference in tables.items()} == {
        what: reference.holds for what, reference in tables.items()
    }
    changing = {what for what, reference in tables.items() if not is_fixed_type(reference.holds)}
    assert changing == {what for what, reference in tables.items() if reference.moves}
    snapshot = View().snapshot()
    assert all(is_fixed_type(type(columns)) for columns in (snapshot, snapshot.tasks, snapshot.nodes, snapshot.jobs))


async def test_who_is_in_no_other_row_could_live_elsewhere() -> None:
    here = {role for reference in REFERENCES if reference.roles != ALL_ROLES for role in reference.roles}
    assert set(ALL_ROLES) - here == {"arrivals", "bind-worker", "evict-worker", "metrics", "usage-collector"}


def spoken_of() -> list[tuple[str, ast.Module]]:
    """The modules that may speak of a system."""
    return [*source.modules("pumice"), *((path, tree) for path, tree in source.modules("actors") if path == SYSTEM)]


def held_outside(trees: Sequence[tuple[str, ast.Module]]) -> set[Held]:
    found, chains = handed(trees), spoken(trees)
    for settings in SETTINGS.values():
        system = System(settings, MemoryJournal(), RealClock())
        found |= held(system, holders(system), chains)
    return found


async def test_who_is_no_actor_holds_what_the_table_says() -> None:
    found, allowed = held_outside(spoken_of()), {each.what: each.outside for each in REFERENCES}
    assert [each for each in sorted(found) if not each[1].startswith(allowed.get(each[0], ()))] == []
    rows = {(what, place) for what, places in allowed.items() for place in places}
    assert {row for row in rows if not any(what == row[0] and path.startswith(row[1]) for what, path in found)} == set()


@pytest.mark.parametrize(
    ("path", "text", "what"),
    [
        (SYSTEM, "class System:\n    async def cycles(self):\n        return self.observed.newest", "ObservedCycles"),
        (SYSTEM, "class System:\n    async def cycles(self):\n        return self.memory.cycle", "CycleMemory"),
        ("pumice/nosy.py", "system.snapshots.take(1)", "snapshots"),
        ("pumice/nosy.py", "self._system.store.listings.take(1)", "listings"),
        ("pumice/nosy.py", "System(settings, journal, clock, objects=mine)", "decoded objects"),
        ("pumice/nosy.py", "replace(settings, faults=mine)", "faults"),
    ],
)
async def test_what_anybody_else_holds_is_found(path: str, text: str, what: str) -> None:
    assert (what, path) in held_outside([(path, ast.parse(text))])


@pytest.mark.parametrize("what", ["state", "row", "mailbox", "global"])
async def test_anything_else_is_found(what: str) -> None:
    system = System(SystemSettings(), MemoryJournal(), RealClock())
    role = system.roles["metrics"]
    build = role.build
    assert build is not None
    handed: Any = {
        "state": (system.store, "truth of metrics"),
        "row": (system.snapshots, "snapshots of metrics"),
        "mailbox": (system.switchboard.mailboxes["cache"], "metrics reaches cache"),
        "global": (system.store, "truth of metrics"),
    }
    thing, words = handed[what]
    named = types.FunctionType(compile("thing", "nosy.py", "eval"), {"__name__": "pumice.actors.nosy", "thing": thing})
    looks: Any = named if what == "global" else lambda: thing

    def nosy(wiring: Any, name: str) -> Any:
        actor = build(wiring, name)
        vars(actor)["looks_at"] = [looks]
        return actor

    system.roles["metrics"] = replace(role, build=nosy)
    assert words in [*strangers(system), *boxes_beyond(system)]
