"""Requests that ask for as much as they can: each is answered, none with an error of ours, and the next one as well."""

from __future__ import annotations

import os

import pytest

from tests.actors.gateway.rig import Web, serving
from tests.benches.hostile.bodies import NAMESPACE, pod
from tests.benches.hostile.requests import MOST_BYTES, PODS, HostileRequest, requests

SEEDS = int(os.environ.get("PUMICE_TEST_FUZZ", "40")) // 20


async def prepare(web: Web) -> None:
    for name in (NAMESPACE, f"{NAMESPACE}-other"):
        await web.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}}, 201)
    await web.send("POST", PODS, pod("stored-000000", {"app": "bench"}), 201)


async def ask(web: Web, request: HostileRequest) -> None:
    content = request.body or None
    answer = await web.http.request(request.method, request.path, headers=request.headers, content=content)
    assert answer.status_code < 500, f"{request.name}: {answer.text[:500]}"


def test_they_are_as_small_as_they_say_and_each_has_a_name() -> None:
    asked = requests(0)
    assert len({one.name for one in asked}) == len(asked) > 150
    assert all(one.size <= MOST_BYTES for one in asked)
    assert [one.name for one in requests(1)] != [one.name for one in asked]


@pytest.mark.anyio
async def test_some_of_them() -> None:
    async with serving() as web:
        await prepare(web)
        for request in requests(0)[::6]:
            await ask(web, request)
        await web.get(f"{PODS}/stored-000000")
        metrics = (await web.http.get("/metrics")).text
        assert 'pumice_request_longest_seconds{request="' in metrics


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(max(SEEDS, 1)))
async def test_all_of_them(seed: int) -> None:
    async with serving() as web:
        await prepare(web)
        for request in requests(seed):
            await ask(web, request)
        await web.get(f"{PODS}/stored-000000")
