"""Faults that a client meets at a request: the outcome of the request, and its record in the journal."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest

from pumice.cluster.faults.profiles import read_profile
from pumice.cluster.faults.rules import FaultProfile
from pumice.config.read import ValuePlace
from pumice.config.yaml_tree import Document
from pumice.core.messages.events import FaultsBegan, FaultStruck
from pumice.storage.journal import FAULT
from pumice.storage.memory import MemoryJournal
from tests.actors.gateway.rig import PODS, QUEUES, Web, pod_of, serving
from tests.actors.rig import journaled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.anyio

FAULTS = "/apis/pumice.dev/v1/faults"
MERGE = "application/merge-patch+json"
CREATED, FOUND, GONE = 201, 200, 404
CUT = 0
"""The connection ended without a whole answer."""


def profile(*rules: dict[str, Any], seed: int | None = None) -> FaultProfile:
    given = {"seed": seed, "rules": [{"kind": "Pod", **rule} for rule in rules]}
    return read_profile(ValuePlace(Document("test", given)), given)


@asynccontextmanager
async def struck_by(*rules: dict[str, Any], journal: MemoryJournal | None = None) -> AsyncGenerator[Web]:
    async with serving(journal, faults=profile(*rules)) as web:
        yield web


async def begin(web: Web, *rules: dict[str, Any]) -> None:
    """Put other faults at pods in force."""
    await web.send("POST", FAULTS, {"rules": [{"kind": "Pod", **rule} for rule in rules]})


async def code_of(web: Web, method: str, path: str, body: Any = None, **headers: str) -> int:
    """The code of an answer, CUT for a part of one or none."""
    try:
        answer = await web.http.request(method, path, json=body, headers=headers)
    except httpx.RemoteProtocolError:
        return CUT
    return answer.status_code


async def label(web: Web, name: str, **labels: str) -> None:
    """Add labels to a pod."""
    patch = {"metadata": {"labels": labels}}
    answer = await web.http.patch(f"{PODS}/{name}", json=patch, headers={"content-type": MERGE})
    assert answer.status_code == FOUND


async def until_code(web: Web, path: str, code: int) -> None:
    """Ask until the answer has this code; a server that is down answers nothing."""
    for _ in range(200):
        if (found := await code_of(web, "GET", path)) == code:
            return
        assert found in (CUT, FOUND)
        await anyio.sleep(0.01)
    raise AssertionError(path)


STRUCK: list[tuple[dict[str, Any], int, int]] = [  # a fault, what the client gets, and whether the pod exists then
    ({"fault": "refuse"}, 503, GONE),
    ({"fault": "refuse", "code": 409}, 409, GONE),
    ({"fault": "refuse", "code": 429}, 429, GONE),
    ({"fault": "refuse", "code": 500}, 500, GONE),
    ({"fault": "refuse", "code": 504}, 504, GONE),
    ({"fault": "lose-answer"}, CUT, FOUND),
    ({"fault": "lose-answer", "answer": 500}, 500, FOUND),
    ({"fault": "lose-answer", "answer": 504}, 504, FOUND),
    ({"fault": "repeat"}, 409, FOUND),
    ({"fault": "cut-answer", "bytes": 0}, CUT, FOUND),
    ({"fault": "cut-answer", "bytes": 30}, CUT, FOUND),
    ({"fault": "arrive-late", "delay_s": 0.05}, CREATED, FOUND),
    ({"fault": "answer-late", "delay_s": 0.05}, CREATED, FOUND),
    ({"fault": "restart", "down_s": 0.05}, CUT, GONE),
    ({"fault": "restart", "down_s": 0.05, "carried_out": True}, CUT, FOUND),
]


async def test_a_create_that_is_struck() -> None:
    async with serving() as web:
        for number, (fault, code, after) in enumerate(STRUCK):
            await begin(web, {**fault, "verb": "create"})
            began = anyio.current_time()
            assert await code_of(web, "POST", PODS, pod_of(f"p{number}")) == code, fault
            assert anyio.current_time() - began >= fault.get("delay_s", 0), fault
            await until_code(web, f"{PODS}/p{number}", after)  # after a restart once the server is back


VERBS = [
    ("GET", f"{PODS}/p", "get", ""),
    ("HEAD", f"{PODS}/p", "get", ""),
    ("GET", PODS, "list", ""),
    ("GET", f"{PODS}?watch=1&timeoutSeconds=1", "watch", ""),
    ("GET", "/api/v1/watch/namespaces/default/pods", "watch", ""),
    ("POST", PODS, "create", ""),
    ("POST", f"{PODS}/p/binding", "create", "binding"),
    ("POST", f"{PODS}/p/eviction", "create", "eviction"),
    ("PUT", f"{PODS}/p", "update", ""),
    ("PUT", f"{PODS}/p/status", "update", "status"),
    ("PATCH", f"{PODS}/p", "patch", ""),
    ("DELETE", f"{PODS}/p", "delete", ""),
    ("DELETE", PODS, "deletecollection", ""),
]


async def test_each_verb_is_told_apart() -> None:
    journal = MemoryJournal()
    async with serving(journal) as web:
        for method, path, verb, subresource in VERBS:
            asked = {"verb": verb, "subresource": subresource, "client": "tester", "namespace": "default"}
            await begin(web, {"fault": "refuse", **asked})
            agent = {"user-agent": "tester/1 (x)"}
            assert await code_of(web, method, path, pod_of("p"), **agent) == 503, (method, path)
            assert await code_of(web, method, f"{QUEUES}/default", **agent) != 503, (method, path)
    struck = [each for each in await journaled(journal, FAULT, FaultStruck | FaultsBegan) if type(each) is FaultStruck]
    assert [(each.verb, each.subresource) for each in struck] == [each[2:] for each in VERBS]
    assert {(each.kind, each.namespace, each.client, each.nth) for each in struck} == {("Pod", "default", "tester", 1)}


async def test_refusals_say_when_to_come_again() -> None:
    async with struck_by({"fault": "refuse", "code": 429, "retry_after_s": 7}, {"fault": "refuse"}) as web:
        answer = await web.http.get(f"{PODS}/p")
        assert answer.headers["retry-after"] == "7"
        assert (answer.json()["reason"], answer.json()["details"]["retryAfterSeconds"]) == ("TooManyRequests", 7)


async def test_labels_are_those_of_the_object() -> None:
    rule = {"fault": "refuse", "labels": "app=web", "verb": ["create", "get", "patch", "delete"]}
    async with struck_by(rule) as web:
        assert await code_of(web, "POST", PODS, pod_of("p", app="web")) == 503
        assert await code_of(web, "POST", PODS, pod_of("p", app="db")) == CREATED
        await web.send("GET", f"{PODS}/p")
        await label(web, "p", app="web")
        await until_code(web, f"{PODS}/p", 503)  # what exists now has them


async def test_who_may_not_ask_meets_no_fault() -> None:
    journal = MemoryJournal()
    async with serving(journal, faults=profile({"fault": "refuse"}), token="secret") as web:
        assert await code_of(web, "GET", PODS) == 401
        assert await code_of(web, "GET", PODS, authorization="Bearer secret") == 503
    assert len(await journaled(journal, FAULT, FaultStruck | FaultsBegan)) == 2


async def test_the_journal_has_the_profile_and_each_strike() -> None:
    journal = MemoryJournal()
    async with struck_by({"fault": "lose-answer", "rule": "lost", "times": 2}, journal=journal) as web:
        for number in range(3):
            await code_of(web, "POST", PODS, pod_of(f"p{number}"))
    began, *struck = await journaled(journal, FAULT, FaultStruck | FaultsBegan)
    assert b'"rule":"lost"' in began.rules
    assert [(each.rule, each.fault, each.name) for each in struck] == [
        ("lost", "lose-answer", "p0"),
        ("lost", "lose-answer", "p1"),
    ]


async def test_the_same_requests_meet_the_same_faults_again() -> None:
    rules = {"fault": "refuse", "probability": 0.3}, {"fault": "lose-answer", "probability": 0.5}

    async def run() -> list[int]:
        async with struck_by(*rules) as web:
            return [await code_of(web, "POST", PODS, pod_of(f"p{number}")) for number in range(20)]

    first = await run()
    assert first == await run()
    assert {*first} == {CREATED, CUT, 503}


async def test_a_create_without_a_name_is_not_repeated() -> None:
    async with struck_by({"fault": "repeat"}) as web:
        made = pod_of("")
        made["metadata"] = {"generateName": "p-"}
        assert await code_of(web, "POST", PODS, made) == CREATED
        assert len((await web.get(PODS))["items"]) == 1


async def test_a_restart_ends_every_connection_and_forgets_changes() -> None:
    async with serving() as web:
        (made,) = await web.create_pods("p")
        before = made["metadata"]["resourceVersion"]
        await begin(web, {"fault": "restart", "down_s": 0.05, "verb": "delete"})
        async with web.watching(f"{PODS}?watch=true") as events:
            assert (await anext(events))["type"] == "ADDED"
            assert await code_of(web, "DELETE", f"{PODS}/p") == CUT
            with pytest.raises(anyio.IncompleteRead):
                await anext(events)
        await until_code(web, f"{PODS}/p", FOUND)
        await web.create_pods("q")
        async with web.watching(f"{PODS}?watch=true&resourceVersion={int(before) - 1}") as events:
            assert (await anext(events))["object"]["code"] == 410
