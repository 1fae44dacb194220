# SPDX-License-Identifier: Apache-2.0
"""/apis/pumice.dev/v1: the questions for the adviser, and their answers."""

from __future__ import annotations

from typing import Final

import anyio

from pumice.actors.gateway.advice import KINDS, VERSION, AdviserAnswer, AdviserQuestion, refusal
from pumice.actors.gateway.front import Front
from pumice.actors.gateway.problems import ApiError, no_such_path, wrong_method
from pumice.actors.gateway.request.exchange import ClientGoneError, Exchange
from pumice.actors.gateway.request.paths import Target

METHODS: Final = {"get": ("GET", "HEAD"), "create": ("POST",)}
OK: Final = 200


async def advise(site: Front, exchange: Exchange, target: Target) -> None:
    """Answer with the AdviserAnswer, or stop when the client leaves. Raises ApiError."""
    question = await _question(site, exchange, target)
    answer = await _asked(site, exchange, question)
    if answer.code != OK:
        raise refusal(answer)
    await exchange.answer(OK, answer.body)


async def _question(site: Front, exchange: Exchange, target: Target) -> AdviserQuestion:
    row = KINDS[target.plural]
    namespaced = row.namespaced and bool(target.name)
    if target.version != VERSION or target.subresource or bool(target.namespace) != namespaced:
        raise no_such_path()
    if not (row.of_one if target.name else row.of_all):
        raise no_such_path()
    if exchange.method not in METHODS[row.verb]:
        raise wrong_method(exchange.method)
    sees = site.namespaces_seen(exchange.user, whole=row.whole)
    body = await exchange.body(site.settings.body_limit)  # the watcher for the end must not read the beginning
    return AdviserQuestion(target.plural, target.namespace, target.name, exchange.query.pairs(), body, sees)


async def _asked(site: Front, exchange: Exchange, question: AdviserQuestion) -> AdviserAnswer:
    """Return the answer. Raises ClientGoneError when the client has left meanwhile, or the server stops."""
    found: AdviserAnswer | ApiError | None = None
    async with anyio.create_task_group() as tasks:
        with site.open.endless(tasks.cancel_scope):
            tasks.start_soon(_until_gone, exchange, tasks.cancel_scope)
            try:
                found = await site.desk.ask(question)
            except ApiError as error:
                found = error
            tasks.cancel_scope.cancel()
    if isinstance(found, ApiError):
        raise found
    if found is None:
        raise ClientGoneError
    return found


async def _until_gone(exchange: Exchange, scope: anyio.CancelScope) -> None:
    await exchange.hung_up()
    scope.cancel()
