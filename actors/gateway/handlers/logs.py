"""`kubectl logs`: containers are simulated and print nothing, which is what the one line says."""

from __future__ import annotations

from typing import Any, Final

import anyio

from actors.gateway.problems import ApiError, bad_request
from actors.gateway.request.exchange import Exchange
from actors.gateway.request.paths import Target
from actors.gateway.site import Site
from core.objects.metadata import Object, section

ENDED: Final = ("Succeeded", "Failed")
DURATION: Final = "pumice.dev/duration"
WORDS: Final = {"Succeeded": "has succeeded", "Failed": "has failed", "Running": "is running"}


async def logs(site: Site, exchange: Exchange, target: Target) -> None:
    """GET pods/NAME/log; with follow, until the pod has ended."""
    pod = await site.get("Pod", target.namespace, target.name)
    container = _container(pod, exchange.query.text("container"))
    line = _line(pod, container)
    if exchange.query.number("tailLines") == 0:
        line = b""
    if not exchange.query.flag("follow") or _phase(pod) in ENDED:
        await exchange.answer(200, line, "text/plain")
        return
    with site.watching():
        await exchange.begin("text/plain")
        await exchange.chunk(line)
        async with anyio.create_task_group() as tasks:
            with site.open.endless(tasks.cancel_scope):
                tasks.start_soon(_until_ended, site, target, tasks.cancel_scope)
                await exchange.hung_up()
            tasks.cancel_scope.cancel()
        await exchange.end()


async def _until_ended(site: Site, target: Target, scope: anyio.CancelScope) -> None:
    """Cancel the scope when the pod has ended or is gone."""
    ring = site.hub.ring("Pod")
    while True:
        seen = ring.end
        try:
            if _phase(await site.get("Pod", target.namespace, target.name)) in ENDED:
                break
        except ApiError:
            break
        await ring.news.wait_beyond(seen)
    scope.cancel()


def _container(pod: Object, asked: str) -> str:
    """The container that is meant. Raises ApiError (400) when it is none, or one of several."""
    spec = section(pod, "spec")
    listed: list[Any] = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    names = [str(each.get("name")) for each in listed]
    pod_name = pod["metadata"]["name"]
    if asked:
        if asked not in names:
            raise bad_request(f"container {asked} is not valid for pod {pod_name}")
        return asked
    own = [str(each.get("name")) for each in spec.get("containers") or ()]
    if len(own) > 1:
        raise bad_request(f"a container name must be specified for pod {pod_name}, choose one of: [{' '.join(own)}]")
    return own[0] if own else ""


def _line(pod: Object, container: str) -> bytes:
    """Raises ApiError (400) for a pod that has not started."""
    phase, meta = _phase(pod), pod["metadata"]
    if phase not in WORDS:
        raise bad_request(f'container "{container}" in pod "{meta["name"]}" is waiting to start: ContainerCreating')
    lasts = section(meta, "annotations").get(DURATION)
    told = f" (it runs for {lasts})" if lasts and phase == "Running" else ""
    where = f"{meta.get('namespace')}/{meta['name']}"
    what = f"{container} of pod {where} {WORDS[phase]}{told} and prints nothing"
    return f"Pumice simulates this container: {what}\n".encode()


def _phase(pod: Object) -> str:
    return str(section(pod, "status").get("phase") or "Pending")
