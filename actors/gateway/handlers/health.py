"""/healthz, /livez, /readyz and /metrics."""

from __future__ import annotations

from pumice.actors.gateway.fault_counts import exposed_faults
from pumice.actors.gateway.handlers.object_counts import exposed_objects
from pumice.actors.gateway.problems import no_such_path
from pumice.actors.gateway.queue_counts import counted, exposed_counts
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.site import Site, guarded
from pumice.actors.runtime.asking import ask_again, expected
from pumice.core.messages import commands
from pumice.core.messages.cycles import TellQueues
from pumice.core.messages.faults import FaultsRead, ReadFaults
from pumice.core.messages.replies import Exposition
from pumice.storage import codec

CHECKS = {"livez": ("ping",), "healthz": ("ping", "api"), "readyz": ("ping", "api", "watches")}
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def health(site: Site, exchange: Exchange) -> None:
    """`ok`, or with ?verbose every check by name; 503 while something is not as it should be."""
    which, _, check = exchange.path.strip("/").partition("/")
    if check and check not in CHECKS[which]:
        raise no_such_path()
    found = {name: await _holds(site, name) for name in ((check,) if check else CHECKS[which])}
    if "verbose" in exchange.query or not all(found.values()):
        lines = [f"[{'+' if good else '-'}]{name} {'ok' if good else 'failed'}" for name, good in found.items()]
        verdict = "passed" if all(found.values()) else "failed"
        text = "\n".join([*lines, f"{which} check {verdict}\n"])
    else:
        text = "ok"
    await exchange.answer(200 if all(found.values()) else 503, text.encode(), "text/plain; charset=utf-8")


async def _holds(site: Site, check: str) -> bool:
    if check == "watches":
        return site.hub.ready.is_set()
    if check == "api":
        return not site.api.closed
    return True


async def metrics(site: Site, exchange: Exchange) -> None:
    """Prometheus' text format, with Volcano's metric names."""
    if site.runner is not None:
        await guarded(ask_again(site.runner, TellQueues()))
    answer = expected(await guarded(site.metrics.ask(commands.Expose())), Exposition)
    counts = await _queue_counts(site)
    faults = exposed_faults(await _faults(site)) if site.stormy else b""
    objects = exposed_objects(site.kinds, site.hub.counts())
    await exchange.answer(200, answer.text + counts + objects + faults + site.waiting.text(), METRICS_TYPE)


async def _queue_counts(site: Site) -> bytes:
    _, queues = await site.listing("Queue", None)
    _, groups = await site.listing("PodGroup", None)
    return exposed_counts((codec.unpack(blob)["metadata"]["name"] for blob in queues), await counted(groups))


async def _faults(site: Site) -> dict[str, int]:
    reply = await guarded(ask_again(site.api, ReadFaults()))
    return expected(reply, FaultsRead).struck
