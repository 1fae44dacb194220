# SPDX-License-Identifier: Apache-2.0
"""The usage collector: it asks a Prometheus for the nodes' loads, and writes them into the api as NodeMetrics objects.

Owns: its HTTP client.
Accepts: `Poke`: ask now.
Sends: asks the api for the nodes, and to write.
When full: the poker waits. A Prometheus that does not answer costs this turn; the next one comes.
Stops: immediately.

What it writes is journaled like everything in the api: a cycle decided on it can be decided again.
"""

from __future__ import annotations

import logging
import re
import ssl
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx

from pumice.actors.runtime.actor import Actor
from pumice.actors.runtime.mailbox import expected
from pumice.cluster.kube.statuses import timestamp
from pumice.config.durations import parse_duration
from pumice.core.messages.commands import Create, List, Poke, Update
from pumice.core.messages.replies import Done, Listing
from pumice.core.objects.node_usage import (
    CPU_QUERY,
    KIND,
    MEMORY_QUERY,
    AnswerError,
    node_metrics,
    values_of,
    what_is_wrong,
)
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from pumice.actors.runtime.actor import Context
    from pumice.actors.system.ports import ApiPort, PokePort

TYPE: Final = "prometheus"
PATH: Final = "/api/v1/query"
INTERVAL_S: Final = 30.0
TIMEOUT_S: Final = 10.0

log = logging.getLogger(__name__)


def sources_of(metrics: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sources that the configuration's `metrics` section names: ("prometheus",), or none."""
    return (TYPE,) if metrics.get("type") == TYPE and metrics.get("address") else ()


def interval_s(metrics: Mapping[str, str]) -> float:
    """Return the seconds between two turns; 30 where `interval` is not a positive duration, as in Volcano."""
    try:
        interval = parse_duration(metrics.get("interval", ""))
    except ValueError:
        return INTERVAL_S
    return interval if interval > 0 else INTERVAL_S


def new_client(metrics: Mapping[str, str]) -> httpx.AsyncClient:
    """Return a client of the Prometheus at `address`; `tls.insecureSkipVerify` "true" trusts any server there.

    As Volcano's it goes there directly, past any proxy of the environment, and trusts the system's certificates.
    """
    address = metrics["address"]
    trusting = metrics.get("tls.insecureSkipVerify") == "true" or not address.startswith("https:")
    verify = False if trusting else ssl.create_default_context()
    return httpx.AsyncClient(base_url=address, verify=verify, timeout=TIMEOUT_S, trust_env=False)


def without_password(address: str) -> str:
    """Return the address without its password, for messages."""
    return re.sub(r"//[^/@]*@", "//", address)


class UsageCollector(Actor[Poke, Done]):
    """Collects loads. `metrics`: the configuration's section of that name."""

    connect = staticmethod(new_client)

    def __init__(
        self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort, metrics: Mapping[str, str]
    ) -> None:
        super().__init__(name, mailbox, context)
        self._api, self._metrics = api, metrics
        self._lock = anyio.Lock()

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Ask again and again."""
        return (self._keep_asking,)

    async def handle(self, message: Poke) -> Done:
        """Ask now."""
        await self._turn()
        return Done()

    async def _keep_asking(self) -> None:
        while True:
            await self._turn()
            await anyio.sleep(interval_s(self._metrics))

    async def _turn(self) -> None:
        async with self._lock:
            try:
                async with self.connect(self._metrics) as client:
                    cpu, memory = await _ask(client, CPU_QUERY), await _ask(client, MEMORY_QUERY)
            except (httpx.HTTPError, httpx.InvalidURL, AnswerError) as error:
                shown = without_password(self._metrics["address"])
                log.warning("Prometheus at %s: %s", shown, _words(error))
                return
            await self._write(cpu, memory)

    async def _write(self, cpu: Mapping[str, float], memory: Mapping[str, float]) -> None:
        nodes, known = [await self._names(kind) for kind in ("Node", KIND)]
        stamp = timestamp(self.clock.now())
        written: list[Create | Update] = []
        for name in sorted(nodes & (cpu.keys() | memory.keys())):
            blob = codec.pack(node_metrics(name, cpu, memory, stamp))
            written.append(Update(blob, self.name) if name in known else Create(blob, user=self.name))
        if written:
            await self._api.ask_many(written)

    async def _names(self, kind: str) -> set[str]:
        listing = expected(await self._api.ask(List(kind)), Listing)
        return {codec.unpack(blob)["metadata"]["name"] for blob in listing.blobs}


async def _ask(client: httpx.AsyncClient, query: str) -> dict[str, float]:
    answer = await client.get(PATH, params={"query": query})
    if not answer.is_success:
        raise AnswerError(f"{answer.status_code} {answer.reason_phrase}: {what_is_wrong(answer.content)}")
    return values_of(answer.content)


def _words(error: BaseException) -> str:
    """Return the error's message, or else its cause's: on some event loops only the cause has one."""
    if isinstance(error, httpx.TimeoutException):
        return f"no answer within {TIMEOUT_S:g} s ({type(error).__name__})"
    seen: BaseException | None = error
    while seen is not None:
        if str(seen):
            return str(seen)
        seen = seen.__cause__ or seen.__context__
    return type(error).__name__
