"""The clients of a soak: watches that are opened again as client-go does, writers, kubelets, somebody who lists."""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from itertools import cycle
from random import Random
from typing import Final

import anyio
import msgspec

from pumice.proof.bench.wire import JSON, HttpConnection, UnexpectedAnswerError, connected
from tests.benches.soak.counting import Counts
from tests.benches.soak.ledger import WatchLedger
from tests.benches.soak.plan import HEARTBEAT_S, SoakPlan, Unit, heartbeat, node_name, units
from tests.benches.soak.users import token_of

HOST: Final = "127.0.0.1"
STRATEGIC: Final = "application/strategic-merge-patch+json"
KUBELETS: Final = 10
"""Connections over which all nodes report."""
BATCH: Final = 10
"""Nodes that report one after the other before their connection rests."""
WATCH_S: Final = (300, 600)
"""A watch asks for so long, as client-go's reflectors do, and is then opened again where it ended."""
LISTS_PER_S: Final = 2.0


class Meta(msgspec.Struct):
    """Of an object, what is looked at."""

    uid: str = ""
    resourceVersion: str = "0"  # noqa: N815 - Kubernetes' name


class Thing(msgspec.Struct):
    """An object, or a Status."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    message: str = ""


class WatchLine(msgspec.Struct):
    """A line of a watch."""

    type: str
    object: Thing


class ListAnswer(msgspec.Struct):
    """A list."""

    metadata: Meta
    items: list[Thing]


_EVENT: Final = msgspec.json.Decoder(WatchLine)
_THING: Final = msgspec.json.Decoder(Thing)
_LISTED: Final = msgspec.json.Decoder(ListAnswer)


@dataclass(slots=True)
class Clients:
    """All of them, and what they know together. `stop` is when nothing more is made."""

    plan: SoakPlan
    port: int
    stop: float
    counts: Counts = field(default_factory=Counts)
    pods: dict[str, WatchLedger] = field(default_factory=dict[str, WatchLedger])
    nodes: list[WatchLedger] = field(default_factory=list[WatchLedger])

    def ledgers(self) -> list[WatchLedger]:
        """Of all watches."""
        return [*self.pods.values(), *self.nodes]

    # --- watches

    async def list_all(self) -> None:
        """Where the watches begin."""
        async with self._connected(None) as connection:
            for name in self.plan.names():
                found = _LISTED.decode(await connection.ask("GET", f"/api/v1/namespaces/{name}/pods"))
                self.pods[name] = _ledger(name, found)
            found = _LISTED.decode(await connection.ask("GET", "/api/v1/nodes"))
            self.nodes += [_ledger(f"nodes {number}", found) for number in range(self.plan.node_watches)]

    async def watch_pods(self, namespace: str) -> None:
        """Until cancelled."""
        await self._watch(self.pods[namespace], f"/api/v1/namespaces/{namespace}/pods", namespace)

    async def watch_nodes(self, number: int) -> None:
        """Until cancelled."""
        await self._watch(self.nodes[number], "/api/v1/nodes", None)

    async def _watch(self, ledger: WatchLedger, path: str, namespace: str | None) -> None:
        chance = Random(f"{self.plan.seed}/{ledger.name}")
        while True:
            seconds = min(chance.uniform(*WATCH_S), max(2.0, self.plan.seconds * chance.uniform(0.2, 0.5)))
            asked = f"watch=true&allowWatchBookmarks=true&timeoutSeconds={int(seconds)}"
            self.counts.watches += 1
            async with self._connected(namespace) as connection:
                rest = b""
                async for part in connection.parts("GET", f"{path}?{asked}&resourceVersion={ledger.revision}"):
                    lines = (rest + part).split(b"\n")
                    rest = lines.pop()
                    self._told(ledger, lines, pods=namespace is not None)
                if rest:
                    self.counts.failed(f"{ledger.name}: a watch ended within an event")

    def _told(self, ledger: WatchLedger, lines: Sequence[bytes], *, pods: bool) -> None:
        now = time.monotonic()
        for line in lines:
            event = _EVENT.decode(line)
            if event.type == "ERROR":
                self.counts.failed(f"{ledger.name}: {event.object.message}")
                continue
            meta = event.object.metadata
            if event.type == "BOOKMARK":
                ledger.bookmark(int(meta.resourceVersion))
                continue
            self.counts.lag(ledger.seen(event.type, meta.uid, int(meta.resourceVersion), now))
            if pods:
                self.counts.made += event.type == "ADDED"
                self.counts.gone += event.type == "DELETED"

    # --- writers

    async def write(self, number: int) -> None:
        """Make and delete until the time is over, then delete what is left."""
        chance = Random(f"{self.plan.seed}/times/{number}")
        left: list[tuple[float, str, Unit, str]] = []
        making, at = units(self.plan, number), time.monotonic() + chance.random() * self.plan.pace_s
        async with self._connected(self.plan.names_of(number)[0]) as connection:
            while at < self.stop or left:
                if left and (left[0][0] <= at or at >= self.stop):
                    due, _, unit, uid = heapq.heappop(left)
                    await _sleep_until(min(due, self.stop))
                    await self._delete(connection, unit, uid)
                    continue
                await _sleep_until(at)
                unit = next(making)
                uid = await self._make(connection, unit)
                life_s = self.plan.life_s * chance.uniform(0.5, 1.0)
                if uid:
                    heapq.heappush(left, (time.monotonic() + life_s, unit.path, unit, uid))
                at += self.plan.pace_s

    async def _make(self, connection: HttpConnection, unit: Unit) -> str:
        made = await self._asked(connection, "POST", unit.resource, unit.body)
        if made is not None and not unit.job:
            revision = int(made.metadata.resourceVersion)
            self.counts.lag(self.pods[unit.namespace].written(revision, time.monotonic()))
        return made.metadata.uid if made is not None else ""

    async def _delete(self, connection: HttpConnection, unit: Unit, uid: str) -> None:
        await self._asked(connection, "GET", unit.path)
        answer = await self._asked(connection, "DELETE", f"{unit.path}?propagationPolicy=Background")
        if answer is not None and not unit.job:
            self.pods[unit.namespace].deleted(uid, time.monotonic())

    # --- kubelets, and somebody who lists

    async def report(self, number: int) -> None:
        """Every so many-th node says that it is alive, until the time is over."""
        mine = [node_name(each) for each in range(number, self.plan.nodes, KUBELETS)]
        batches = [mine[first : first + BATCH] for first in range(0, len(mine), BATCH)]
        if not batches:
            return
        pause_s = HEARTBEAT_S / len(batches)
        at = time.monotonic() + pause_s * number / KUBELETS
        async with self._connected(None) as connection:
            for batch in cycle(batches):
                await _sleep_until(min(at, self.stop))
                now = time.monotonic()
                if now >= self.stop:
                    return
                self.counts.late_s = max(self.counts.late_s, now - at)
                await self._beat(connection, batch)
                at = max(at, now - HEARTBEAT_S) + pause_s  # what was due longer ago is not made up for

    async def _beat(self, connection: HttpConnection, batch: Sequence[str]) -> None:
        body = heartbeat()
        for name in batch:
            found = await self._asked(connection, "PATCH", f"/api/v1/nodes/{name}/status", body, STRATEGIC)
            if found is None:
                continue
            self.counts.heartbeats += 1
            revision, now = int(found.metadata.resourceVersion), time.monotonic()
            for ledger in self.nodes:
                self.counts.lag(ledger.written(revision, now))

    async def list_pods(self) -> None:
        """The pods of some namespace, again and again."""
        chance = Random(f"{self.plan.seed}/lists")
        async with self._connected(None) as connection:
            while time.monotonic() < self.stop:
                path = f"/api/v1/namespaces/{chance.choice(self.plan.names())}/pods"
                await self._asked(connection, "LIST", path)
                await anyio.sleep(1 / LISTS_PER_S)

    async def trespass(self) -> None:
        """Users list the pods of their own namespace, and are refused those of another's."""
        chance = Random(f"{self.plan.seed}/trespasses")
        while time.monotonic() < self.stop and self.plan.users > 1:
            own, other = chance.sample(self.plan.names(), 2)
            async with self._connected(own) as connection:
                await self._asked(connection, "LIST", f"/api/v1/namespaces/{own}/pods")
                if token_of(self.plan, own) != token_of(self.plan, other):
                    await self._refused(connection, f"/api/v1/namespaces/{other}/pods")
            await anyio.sleep(1 / LISTS_PER_S)

    async def _refused(self, connection: HttpConnection, path: str) -> None:
        try:
            await connection.ask("GET", path)
        except UnexpectedAnswerError as error:
            if str(error).startswith("403"):
                return
        self.counts.failed(f"GET {path}: expected 403")

    def _connected(self, namespace: str | None) -> AbstractAsyncContextManager[HttpConnection]:
        """Return a connection of a namespace's user, the administrator's for None."""
        return connected(HOST, self.port, token_of(self.plan, namespace))

    async def _asked(
        self, connection: HttpConnection, verb: str, path: str, body: bytes = b"", form: str = JSON
    ) -> Thing | None:
        """The answer, timed; None for one that is no good, which is counted."""
        started = time.perf_counter()
        try:
            answer = await connection.ask("GET" if verb == "LIST" else verb, path, body, form)
        except UnexpectedAnswerError as error:
            self.counts.failed(f"{verb} {path}: {error}")
            return None
        self.counts.took_s[verb.lower()].append(time.perf_counter() - started)
        return _THING.decode(answer)


def _ledger(name: str, found: ListAnswer) -> WatchLedger:
    made = WatchLedger(name)
    made.begin(int(found.metadata.resourceVersion), {item.metadata.uid for item in found.items})
    return made


async def _sleep_until(at: float) -> None:
    await anyio.sleep(max(0.0, at - time.monotonic()))
