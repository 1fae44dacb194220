"""Node usage from a Prometheus: into the api, from there into decisions, and through its failures."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

import anyio
import httpx
import pytest

from pumice.actors.scheduling import usage_collector
from pumice.actors.scheduling.usage_collector import interval_s, new_client, sources_of
from pumice.core.messages.commands import Poke
from pumice.core.messages.replies import Done
from pumice.core.objects.node_usage import ANNOTATION, CPU_QUERY
from tests.actors.rig import PATIENCE_S, QUICK, idle, placed, started, stored, three_nodes
from tests.kit import gang

pytestmark = pytest.mark.anyio
CONFIG = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: usage
metrics:
  type: prometheus
  address: http://prometheus
  interval: 10ms
"""
SETTINGS = replace(QUICK, config_text=CONFIG)
Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
def prometheus(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], None]:
    """Have an answerer stand for the Prometheus."""

    def stand(answer: Answer) -> None:
        def connect(metrics: Mapping[str, str]) -> httpx.AsyncClient:
            return httpx.AsyncClient(base_url=metrics["address"], transport=httpx.MockTransport(answer))

        monkeypatch.setattr(usage_collector.UsageCollector, "connect", staticmethod(connect))

    return stand


def loads(cpu: dict[str, float], memory: dict[str, float]) -> Answer:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/api/v1/query"
        values = cpu if request.url.params["query"] == CPU_QUERY else memory
        samples = [{"metric": {"instance": name}, "value": [1, str(value)]} for name, value in values.items()]
        return httpx.Response(200, json={"status": "success", "data": {"resultType": "vector", "result": samples}})

    return answer


async def until(holds: Callable[[], bool]) -> None:
    """Look again and again."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            if holds():
                return
            await anyio.sleep(0.005)


async def test_busy_nodes_take_no_pods(prometheus: Callable[[Answer], None]) -> None:
    prometheus(loads({"n0": 95.0, "n1": 10.0, "n2": 70.0, "elsewhere": 1.0}, {"n0": 1.0, "n1": 20.0, "n2": 90.0}))
    async with started(settings=SETTINGS) as system:
        await system.submit(three_nodes())
        await until(lambda: len(stored(system, "NodeMetrics")) == 3)
        await idle(system)
        await system.submit(gang("j", pods=2, phase="Pending", duration="0"))
        await idle(system)
        assert set(placed(system).values()) == {"n1"}
        averages = {
            m["metadata"]["name"]: m["metadata"]["annotations"][ANNOTATION] for m in stored(system, "NodeMetrics")
        }
        assert json.loads(averages["n2"]) == {"cpu": {"10m": 70.0}, "memory": {"10m": 90.0}}


async def test_later_answers_replace_earlier_ones(prometheus: Callable[[Answer], None]) -> None:
    cpu = {"n0": 1.0}
    prometheus(loads(cpu, {}))
    async with started(settings=SETTINGS) as system:
        await system.submit(three_nodes())
        for value in (1.0, 2.0):
            cpu["n0"] = value
            text = f'"10m":{value}'
            await until(lambda: text in str(stored(system, "NodeMetrics")))  # noqa: B023 - awaited immediately
        assert len(stored(system, "NodeMetrics")) == 1


async def test_who_pokes_it_has_it_ask_now(prometheus: Callable[[Answer], None]) -> None:
    cpu = {"n0": 1.0}
    prometheus(loads(cpu, {}))
    seldom = replace(QUICK, config_text=CONFIG.replace("10ms", "1h"))
    async with started(settings=seldom) as system:
        await system.submit(three_nodes())
        (collector,) = [box for name, box in system.switchboard.mailboxes.items() if name.startswith("usage-collector")]
        for value in (1.0, 2.0):
            cpu["n0"] = value
            assert await collector.ask(Poke()) == Done()
            assert f'"10m":{value}' in str(stored(system, "NodeMetrics"))


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (httpx.Response(500), "500 Internal Server Error"),
        (httpx.Response(422, json={"status": "error", "error": "bad query"}), "422 Unprocessable Entity: bad query"),
        (httpx.Response(200, text="<html>"), "malformed"),
        (httpx.ConnectError("nobody there"), "nobody there"),
    ],
)
async def test_a_prometheus_that_fails_is_asked_again(
    prometheus: Callable[[Answer], None],
    caplog: pytest.LogCaptureFixture,
    failure: httpx.Response | Exception,
    words: str,
) -> None:
    asked = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        if asked > 1:
            return loads({"n0": 1.0}, {"n0": 1.0})(request)
        if isinstance(failure, Exception):
            raise failure
        return failure

    prometheus(answer)
    with caplog.at_level(logging.WARNING):
        async with started(settings=SETTINGS) as system:
            await system.submit(three_nodes())
            await until(lambda: bool(stored(system, "NodeMetrics")))
    assert "Prometheus at http://prometheus: " in caplog.text
    assert words in caplog.text


async def test_without_an_address_nobody_is_asked() -> None:
    async with started() as system:
        assert not [name for name in system.switchboard.mailboxes if name.startswith("usage-collector")]
    assert sources_of({"type": "elasticsearch", "address": "http://x"}) == sources_of({"type": "prometheus"}) == ()


@pytest.mark.parametrize(("text", "seconds"), [("", 30.0), ("1m", 60.0), ("0s", 30.0), ("-5s", 30.0), ("often", 30.0)])
def test_interval(text: str, seconds: float) -> None:
    assert interval_s({"interval": text} if text else {}) == seconds


async def test_the_client_speaks_to_the_address() -> None:
    async with new_client({"address": "https://prometheus:9090", "tls.insecureSkipVerify": "true"}) as client:
        assert client.base_url.host == "prometheus"
