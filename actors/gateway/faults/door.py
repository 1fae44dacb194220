# SPDX-License-Identifier: Apache-2.0
"""The door of the gateway's resources: with faults in force, what strikes a request happens here."""

from __future__ import annotations

from functools import partial
from typing import Final
from urllib.parse import parse_qsl, urlencode

import anyio

from pumice.actors.gateway.faults.answers import (
    CutChannel,
    DelayedChannel,
    ExpiringChannel,
    WatchChannel,
    cut_after,
    hang_up,
    late,
    lose,
)
from pumice.actors.gateway.faults.requests import ReadAgain, request_of
from pumice.actors.gateway.front import refuse
from pumice.actors.gateway.problems import RETRY_S, ApiError, expired
from pumice.actors.gateway.request.exchange import App, Exchange, Receive, Scope, Send
from pumice.actors.gateway.server import break_off
from pumice.actors.gateway.site import Site
from pumice.actors.runtime.level_signal import LevelSignal
from pumice.cluster.faults import rules
from pumice.cluster.faults.decisions import ClientRequest, Strike
from pumice.core.messages.replies import Refused

LOOK_S: Final = 0.02
"""While the server is down, connections that come are ended after so long."""
TOO_OLD: Final = "The provided resourceVersion or continue parameter is too old: it was compacted"
MODIFIED: Final = (
    "Operation cannot be fulfilled on {}: the object has been modified; please apply your changes to the latest version"
    " and try again"
)
_MESSAGES: Final = {
    409: ("Conflict", MODIFIED),
    429: ("TooManyRequests", "the server has received too many requests, please try again later"),
    500: ("InternalError", "Internal error occurred: etcdserver: leader changed"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "Timeout: request did not complete within the allotted timeout"),
}  # fmt: skip
"""By code, the reason of a refusal and what a kube-apiserver says then."""


def refusal(asked: ClientRequest, code: int, retry_after_s: int | None = None) -> ApiError:
    """Return the refusal of a request, in a kube-apiserver's words."""
    reason, message = _MESSAGES[code]
    retry = retry_after_s or (RETRY_S if code == 429 else None)
    plural, _, group = asked.resource.partition(".")
    details: dict[str, object] = {"name": asked.name, "group": group, "kind": plural}
    headers = dict[str, str]()
    if retry is not None:
        details["retryAfterSeconds"], headers["retry-after"] = retry, str(retry)
    return ApiError(Refused(code, reason, message.format(f'{asked.resource} "{asked.name}"'), details), headers)


class FaultDoor:
    """The application of a route, behind the faults of `site`. Without faults in force it costs one look."""

    def __init__(self, app: App, site: Site) -> None:
        self._app = app
        self._site = site
        self._told: dict[tuple[str, str], LevelSignal] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request (ASGI)."""
        if not self._site.faults.is_on:
            await self._app(scope, receive, send)
            return
        if self._site.open.is_down:
            await hang_up(send)
            return
        read = ReadAgain(receive)
        asked = await request_of(self._site, scope, read)
        # None is never counted: an occasion must not depend on requests that are refused anyway.
        strike = self._site.faults.strike(asked, self._site.clock.now()) if asked is not None else None
        await self._meet(asked, strike, scope, read, send)

    async def _meet(
        self, asked: ClientRequest | None, strike: Strike | None, scope: Scope, read: ReadAgain, send: Send
    ) -> None:
        receive = read.again()
        if asked is None or strike is None:
            await self._unharmed(asked, scope, receive, send)
            return
        # Before it strikes, so that the journal names it even if the process ends with it.
        await self._site.note(strike.told(asked))
        match strike.rule:
            case rules.Refuse(code=code, retry_after_s=retry_after_s):
                await refuse(Exchange(scope, receive, send), refusal(asked, code, retry_after_s))
            case rules.ArriveLate(delay_s=delay_s):
                await self._wait(delay_s)
                await self._unharmed(asked, scope, receive, send)
            case rules.AnswerLate(delay_s=delay_s):
                await self._app(scope, receive, late(send, partial(self._wait, delay_s)))
            case rules.LoseAnswer(answer=answer):
                await self._app(scope, receive, lose)
                await self._instead(asked, answer, Exchange(scope, read.again(), send), send)
            case rules.Repeat():
                await self._repeat(scope, read, send)
            case rules.CutAnswer(bytes=size):
                await self._app(scope, receive, cut_after(send, size))
            case rules.Stale(changes=changes):
                await self._app(self._older(scope, asked.kind, changes), receive, send)
            case rules.Expire() if asked.verb == "list":
                await refuse(Exchange(scope, receive, send), expired(TOO_OLD))
            case rules.Expire() | rules.CutWatch() | rules.DelayWatch() as rule:
                await self._watch(asked, rule, scope, receive, send)
            case rules.RestartServer() as rule:
                if rule.carried_out:
                    await self._app(scope, receive, lose)
                await self._go_down(rule.down_s)
            case rules.LateWebhook():
                raise AssertionError(strike)  # strikes questions to webhooks alone

    async def _wait(self, seconds: float) -> None:
        """Wait; a server that stops does not wait for this."""
        with self._site.open.request():
            await anyio.sleep(seconds)

    async def _instead(self, asked: ClientRequest, answer: str | int, exchange: Exchange, send: Send) -> None:
        """Send what comes in place of a lost answer."""
        if isinstance(answer, int):
            await refuse(exchange, refusal(asked, answer))
        else:
            await hang_up(send)

    async def _repeat(self, scope: Scope, read: ReadAgain, send: Send) -> None:
        """Carry a request out twice; all of its body must have come before the first time."""
        await read.whole()
        await self._app(scope, read.again(), lose)
        await self._app(scope, read.again(), send)

    def _older(self, scope: Scope, kind: str, changes: int) -> Scope:
        """Return a list of the state of some changes ago, in place of one of any state."""
        revision = self._site.hub.ring(kind).before(changes)
        # The log may not reach back so far: then the present state is shown.
        if revision is None:
            return scope
        query = dict(parse_qsl(scope["query_string"].decode("ascii"), keep_blank_values=True))
        query |= {"resourceVersion": str(revision), "resourceVersionMatch": "Exact"}
        return {**scope, "query_string": urlencode(query).encode()}

    # --- watches

    async def _unharmed(self, asked: ClientRequest | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; a watch that others are to be behind of says how far it has come."""
        told = self._leading(asked) if asked is not None and asked.verb == "watch" else None
        if told is None:
            await self._app(scope, receive, send)
            return
        with anyio.CancelScope() as over:
            await self._app(scope, receive, WatchChannel(send, over, told))

    def _leading(self, asked: ClientRequest) -> LevelSignal | None:
        """Return the signal of a watch that others of the client are to be behind of; None where there are none."""
        for rule in self._site.faults.profile.rules:
            if isinstance(rule, rules.DelayWatch) and rule.behind in asked.kinds:
                return self._signal(asked.client, str(rule.behind))
        return None

    def _signal(self, client: str, kind: str) -> LevelSignal:
        return self._told.setdefault((client, kind), LevelSignal())

    async def _watch(
        self,
        asked: ClientRequest,
        rule: rules.Expire | rules.CutWatch | rules.DelayWatch,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        told = self._leading(asked)
        with anyio.CancelScope() as over:
            channel: WatchChannel
            match rule:
                case rules.Expire(events=events):
                    channel = ExpiringChannel(send, over, told, events)
                case rules.CutWatch(events=events, within=within):
                    channel = CutChannel(send, over, told, events, within=within)
                case rules.DelayWatch(delay_s=delay_s, behind=behind):
                    leader = self._signal(asked.client, behind) if behind else None
                    channel = DelayedChannel(send, over, told, delay_s, leader)
            await self._app(scope, receive, channel)

    # --- the whole server

    async def _go_down(self, down_s: float) -> None:
        """End every connection and forget all changes, as a server that starts again has; come back later."""
        site = self._site
        # A gateway that stops does not come back.
        if site.open.closing:
            return
        # Breaking off all connections cancels this request, too, and the server must come back.
        with anyio.CancelScope(shield=True), site.open.down():
            until = anyio.current_time() + down_s
            site.hub.forget()
            while anyio.current_time() < until and not site.open.ended:
                break_off(site.settings.listener)
                await anyio.sleep(min(LOOK_S, down_s))
            # Those that came after the last look.
            break_off(site.settings.listener)
