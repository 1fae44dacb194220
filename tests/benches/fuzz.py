"""`fuzz`: how long one request of at most 64 KiB holds the event loop of a large cluster, whatever it asks for.

The whole system runs in this process, with a memory journal; a client in a thread sends one request after another.
What counts is the processor time of the loop's thread between two of its turns, from the request to some while after
its answer: the gateway's part, the api server's, and what others make of the change.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterable
from typing import Any, Final

import anyio
import anyio.to_thread

from pumice.actors.gateway.settings import GatewaySettings, listen
from pumice.actors.runtime.clock import RealClock
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.core.messages.replies import Refused
from pumice.proof.bench.cluster import nodes
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.proof.bench.pauses import pauses
from pumice.storage.memory import MemoryJournal
from tests.benches.hostile.bodies import NAMESPACE, pod
from tests.benches.hostile.requests import HostileRequest, requests

DEFAULTS: Final = Parameters(nodes=5_000, pods=50_000, runs=1, backend="asyncio")
BATCH: Final = 500
AFTER_S: Final = 0.05
"""So long is looked at what others make of a change."""
SETTLED_S: Final = 3.0
"""So long the checkpointer is given to catch up with the filling, which is no request's doing."""
SHOWN: Final = 10
SERVER_ERROR: Final = 500


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """`runs` are so many seeds."""
    for seed in range(parameters.runs):
        anyio.run(_run, parameters, samples, seed, backend=parameters.backend)
        advance(1)


async def _run(parameters: Parameters, samples: Samples, seed: int) -> None:
    with listen("127.0.0.1", 0) as listener:
        settings = SystemSettings(gateway=GatewaySettings(listener))
        async with System(settings, MemoryJournal(), RealClock()).running() as system:
            await _fill(system, parameters)
            await system.until_idle()
            await anyio.sleep(SETTLED_S)
            system.context.longest.forget()  # of the filling, in which the collector may look at all there is
            with settled():
                await _ask_all(listener.getsockname()[1], samples, requests(seed), system)


async def _fill(system: System, parameters: Parameters) -> None:
    namespaces = (NAMESPACE, f"{NAMESPACE}-other")
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in namespaces
    ]
    objects += nodes(parameters.nodes)
    objects += (pod(f"stored-{number:06d}", {"app": "bench"}) for number in range(parameters.pods))
    for first in range(0, len(objects), BATCH):
        for answer in await system.submit(objects[first : first + BATCH]):
            if isinstance(answer, Refused):
                raise RuntimeError(answer.message)


async def _ask_all(port: int, samples: Samples, asked: Iterable[HostileRequest], system: System) -> None:
    found: list[tuple[float, str]] = []
    failed = 0
    for request in asked:
        async with pauses() as stood:
            code = await anyio.to_thread.run_sync(_ask, port, request)
            await anyio.sleep(AFTER_S)
        failed += code >= SERVER_ERROR
        found.append((stood.longest_cpu_s, request.name))
        samples.add("hold_s", stood.longest_cpu_s, "s")
    samples.add("server_errors", failed, "answers")
    samples.add("longest_step_s", system.context.longest.seconds, "s")
    for seconds, name in sorted(found, reverse=True)[:SHOWN]:
        samples.add(f"hold_s of {name!r}", seconds, "s")


def _ask(port: int, request: HostileRequest) -> int:
    """The answer's code; 0 where the connection was closed instead."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request(request.method, request.path, request.body or None, request.headers)
        answer = connection.getresponse()
        while answer.read(1 << 20):
            continue
        return answer.status
    except (http.client.HTTPException, OSError):
        return 0
    finally:
        connection.close()
