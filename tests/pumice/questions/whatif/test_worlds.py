"""In random worlds the loop on virtual time decides what the whole system decides, digest by digest."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import anyio
import pytest
from msgspec import structs
from trio.testing import MockClock

from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.cluster.api import checks
from pumice.cluster.api.verbs.creation import Creation
from pumice.cluster.api.verbs.requests import RequestMoment
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.intake import in_order
from pumice.cluster.kernel.life import Life
from pumice.core.digest import digest
from pumice.core.messages.decisions import Bind, CycleResult, Decision, Evict
from pumice.core.messages.events import CycleRecord
from pumice.core.messages.replies import Refused
from pumice.runtime.determinism import deterministic
from pumice.storage import codec
from pumice.storage.journal import CYCLE, DECISION, Stored
from pumice.storage.memory import MemoryJournal
from tests.pumice.questions.whatif.clusters import BEGAN
from tests.pumice.questions.whatif.worlds import world

WORLDS = int(os.environ.get("PUMICE_TEST_WORLDS", "60"))
"""Of 1,000 worlds three are decided at another time (135, 591 and 957, see cluster/kernel/README.md)."""
FIRST_S = 5.0
HORIZON_S = 75.0
Told = tuple[str, str, str, str]
Decided = tuple[float, str, tuple[Told, ...]]
"""A cycle that decides: when, the digest of its decisions, and what they are, to read where they differ."""


@contextmanager
def _same_identities() -> Generator[None]:
    """Draw uids and generated names from what an object is called and how many came before it.

    Otherwise they follow from revisions, of which the whole system has more (Events, repeated words), and ties between
    equal pods, which the lower uid wins, would be broken otherwise.
    """
    seen = Counter[str]()

    def drawn(name: str) -> str:
        return blake2b(f"{name} {seen[name]}".encode(), digest_size=16).hexdigest()

    def create_object(self: Creation, obj: Any, moment: RequestMoment, **more: Any) -> Any:
        meta, uid = obj["metadata"], moment.uid
        name = f"{obj['kind']} {meta.get('namespace')} {meta.get('name') or meta.get('generateName')}"
        if not uid:
            text = drawn(name)
            uid = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        reply = original(self, obj, structs.replace(moment, uid=uid), **more)
        seen[name] += not isinstance(reply, Refused)  # a controller may be refused once more in one of the shells
        return reply

    def generated_name(base: str, seed: int, revision: int, attempt: int) -> str:
        seen[base] += 1
        return base + drawn(base)[:5]

    original = Creation.create_object
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Creation, "create_object", create_object)
        patch.setattr(checks, "generated_name", generated_name)
        yield


async def _whole_system(fork: Fork) -> list[Decided]:
    journal = MemoryJournal()
    settings = SystemSettings(config_text=fork.told.text, checkpoint_every=0, default_duration_s=0)
    async with System(settings, journal, VirtualClock(BEGAN - FIRST_S)).running() as system:
        await anyio.sleep(FIRST_S)  # its first cycles have nothing but queues
        began = anyio.current_time()
        await system.submit(in_order(fork.objects))
        for at, obj in sorted(fork.later, key=lambda each: each[0]):
            await anyio.sleep_until(began + at)
            await system.submit([obj])
        await anyio.sleep_until(began + HORIZON_S)
    journal.reopen()
    return [_decided(now, decisions) for now, decisions in _cycles(await journal.read(limit=10**9)) if decisions]


def _cycles(records: Sequence[Stored]) -> list[tuple[float, list[Bind | Evict]]]:
    found = list[tuple[float, list[Bind | Evict]]]()
    for stored in records:
        if stored.kind == CYCLE:
            found.append((codec.decode(stored.payload, CycleRecord).now, []))
        elif stored.kind == DECISION:
            found[-1][1].append(codec.decode(stored.payload, Decision))
    return found


def _decided(now: float, decisions: Sequence[Bind | Evict]) -> Decided:
    binds = [each for each in decisions if isinstance(each, Bind)]
    evicts = [each for each in decisions if isinstance(each, Evict)]
    at = round(now - BEGAN, 3)
    return at, digest(binds, evicts, (), (), ()), tuple([_told(each) for each in decisions])


def _told(decision: Bind | Evict) -> Told:
    pod = f"{decision.namespace}/{decision.name}"
    return type(decision).__name__, pod, decision.node, getattr(decision, "reason", "")


def _alone(fork: Fork) -> list[Decided]:
    found = list[Decided]()

    def decided(result: CycleResult, now: float) -> None:
        decisions: tuple[Bind | Evict, ...] = (*result.binds, *result.evicts)
        if decisions:
            found.append(_decided(now, decisions))

    with _same_identities():
        Life(fork, 0, lambda mutation, at: None, decided).run(HORIZON_S)
    return found


def check(fork: Fork) -> int:
    """Both decide the same, at the same time; how much that was."""
    options = {"clock": MockClock(autojump_threshold=0)}
    with deterministic(0), _same_identities():
        whole = anyio.run(_whole_system, fork, backend="trio", backend_options=options)
    assert _alone(fork) == whole
    return sum(len(decisions) for _, _, decisions in whole)


@pytest.mark.parametrize("number", range(4))
def test_a_world_is_decided_alike_in_both_shells(number: int) -> None:
    check(world(number))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, WORLDS, 20))
def test_many_worlds_are_decided_alike_in_both_shells(first: int) -> None:
    assert sum(check(world(number)) for number in range(first, first + 20)) > 20


def test_a_world_without_one_of_its_jobs_is_decided_otherwise() -> None:
    fork = world(1)
    assert _alone(replace(fork, objects=fork.objects[:-3])) != _alone(fork)
