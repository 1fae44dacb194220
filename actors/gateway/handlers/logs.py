# SPDX-License-Identifier: Apache-2.0
"""`kubectl logs`: the output of a container's command so far; for an unknown command, a line that says so."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final, NamedTuple

import anyio

from pumice.actors.gateway.problems import ApiError, bad_request
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.request.query import Query
from pumice.actors.gateway.request.upgrades import raw
from pumice.actors.gateway.site import Site
from pumice.cluster.kube.commands.containers import DURATION, plan_of
from pumice.cluster.kube.commands.plans import FOR_EVER, Plan
from pumice.cluster.kube.statuses import timestamp
from pumice.core.life.task import ENDED_PHASES
from pumice.core.objects.metadata import Object, parse_time, section

_STATUSES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
WORDS: Final = {"Succeeded": "has succeeded", "Failed": "has failed", "Running": "is running"}


class Log(NamedTuple):
    """The log of one run of a container. `printed`: lines with their times, in seconds since the epoch; `ended`: no
    more will come.
    """

    printed: tuple[tuple[float, str], ...]
    ended: bool
    started: float = 0.0

    def by(self, now: float) -> list[tuple[float, str]]:
        """Return the lines that were printed by then."""
        return [each for each in self.printed if self.ended or each[0] <= now]


async def logs(site: Site, exchange: Exchange, target: Target) -> None:
    """Answer GET pods/NAME/log; with follow, until the container has ended."""
    pod = await site.get("Pod", target.namespace, target.name)
    container = _container(pod, exchange.query.text("container"))
    log = _log(pod, container, previous=bool(exchange.query.flag("previous")))
    shown = log.by(site.clock.now())
    text = _lines(shown, exchange.query, exchange.query.number("tailLines"))
    follows = bool(exchange.query.flag("follow")) and not log.ended
    with site.watching() if follows else nullcontext():
        await exchange.begin("text/plain", frames=raw)
        await exchange.chunk(text)
        if follows:
            await _until_ended(site, exchange, target, (log, len(shown)))
        await exchange.end()


async def _until_ended(site: Site, exchange: Exchange, target: Target, known: tuple[Log, int]) -> None:
    async with anyio.create_task_group() as tasks:
        with site.open.endless(tasks.cancel_scope):
            tasks.start_soon(_follow, site, exchange, target, known, tasks.cancel_scope)
            await exchange.hung_up()
        tasks.cancel_scope.cancel()


async def _follow(
    site: Site, exchange: Exchange, target: Target, known: tuple[Log, int], scope: anyio.CancelScope
) -> None:
    """Print what comes, and cancel the scope when the container has ended or its pod is gone."""
    ring = site.hub.ring("Pod")
    before, count = known
    while True:
        # Before the pod is read: a change in between ends the wait below immediately.
        seen = ring.end
        try:
            pod = await site.get("Pod", target.namespace, target.name)
            log = _log(pod, _container(pod, exchange.query.text("container")))
        except ApiError:
            break
        now = site.clock.now()
        shown = log.by(now)
        # Another start means another run of the container, whose log begins anew.
        if text := _lines(shown[count if log.started == before.started else 0 :], exchange.query):
            await exchange.chunk(text)
        before, count = log, len(shown)
        if log.ended:
            break
        # Until the next line is due; with None only a change of a pod ends the wait.
        with anyio.move_on_after(next((at - now for at, _ in log.printed if at > now), None)):
            await ring.news.wait_beyond(seen)
    scope.cancel()


def _container(pod: Object, asked: str) -> Object:
    """Return the container that is meant. Raises ApiError (400) when it is none, or one of several."""
    spec = section(pod, "spec")
    own: list[Object] = list(spec.get("containers") or ())
    others = [each for group in ("initContainers", "ephemeralContainers") for each in spec.get(group) or ()]
    listed: dict[str, Object] = {str(each.get("name")): each for each in [*others, *own]}
    pod_name = pod["metadata"]["name"]
    if asked:
        if asked not in listed:
            raise bad_request(f"container {asked} is not valid for pod {pod_name}")
        return listed[asked]
    names = [str(each.get("name")) for each in own]
    if len(own) > 1:
        raise bad_request(f"a container name must be specified for pod {pod_name}, choose one of: [{' '.join(names)}]")
    return own[0] if own else {}


def _log(pod: Object, container: Object, *, previous: bool = False) -> Log:
    """Return the log. Raises ApiError (400) for a container that has not started, or that has not run before."""
    name, plan = str(container.get("name") or ""), plan_of(pod, container)
    status = section(pod, "status")
    said = [each for group in _STATUSES for each in status.get(group) or ()]
    nothing: Object = {}
    own = next((each for each in said if each.get("name") == name), nothing)
    if previous:
        last = section(section(own, "lastState"), "terminated")
        if not last:
            raise bad_request(f'previous terminated container "{name}" in pod "{pod["metadata"]["name"]}" not found')
        return _run(plan, last)
    state = section(own, "state")
    waiting = section(state, "waiting").get("reason")
    if plan is None and waiting in (None, "PodInitializing") and _phase(pod) in WORDS:
        return Log(((parse_time(status.get("startTime")), _line(pod, name)),), ended=_phase(pod) in ENDED_PHASES)
    run = state.get("running") or state.get("terminated") or section(own, "lastState").get("terminated")
    if not run:
        words = f'container "{name}" in pod "{pod["metadata"]["name"]}" is waiting to start'
        raise bad_request(f"{words}: {waiting or 'ContainerCreating'}")
    return _run(plan, run)


def _run(plan: Plan | None, run: Object) -> Log:
    started, ended = parse_time(run.get("startedAt")), "finishedAt" in run
    latest = parse_time(run["finishedAt"]) if ended else FOR_EVER
    printed = [(min(started + at, latest), text) for at, text in plan.said] if plan is not None else []
    return Log(tuple(printed), ended, started)


def _lines(printed: list[tuple[float, str]], query: Query, tail: int | None = None) -> bytes:
    timed = query.flag("timestamps")
    lines = [
        f"{timestamp(at)} {line}" if timed else line for at, text in printed for line in text.splitlines(keepends=True)
    ]
    if tail is not None and tail >= 0:
        lines = lines[max(len(lines) - tail, 0) :]
    return "".join(lines).encode()[: query.number("limitBytes")]


def _line(pod: Object, container: str) -> str:
    phase, meta = _phase(pod), pod["metadata"]
    lasts: Any = section(meta, "annotations").get(DURATION)
    told = f" (it runs for {lasts})" if lasts and phase == "Running" else ""
    where = f"{meta.get('namespace')}/{meta['name']}"
    return f"Pumice simulates this container: {container} of pod {where} {WORDS[phase]}{told} and prints nothing\n"


def _phase(pod: Object) -> str:
    return str(section(pod, "status").get("phase") or "Pending")
