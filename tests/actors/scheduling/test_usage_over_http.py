"""Node usage from a Prometheus on a real socket: what it measured decides, and what goes wrong is told and survived."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from pumice.actors.scheduling import usage_collector
from pumice.actors.system.settings import SystemSettings
from pumice.core.objects.node_usage import CPU_QUERY, MEMORY_QUERY
from tests.actors.rig import idle, placed, started, stored, three_nodes
from tests.actors.scheduling.test_usage_collector import CONFIG, SETTINGS, until
from tests.kit import gang
from tests.kit.prometheus import Prometheus, refusal, self_signed, serving

pytestmark = pytest.mark.anyio
BUSY = {
    CPU_QUERY: {"n0": 95.0, "n1": 10.0, "n2": 70.0, "elsewhere": 1.0},
    MEMORY_QUERY: {"n0": 1.0, "n1": 20.0, "n2": 90.0},
}

SCALAR = '{"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}}'


def settings(address: str, more: str = "") -> SystemSettings:
    text = CONFIG.replace("http://prometheus", f"{address}{more}")
    if address.startswith("https:"):  # asyncio leaves a socket open whose handshake is cut short by the end of a test
        text = text.replace("10ms", "400ms")
    return replace(SETTINGS, config_text=text)


async def place_two(at: SystemSettings) -> set[str]:
    """Where pods go once something was measured."""
    async with started(settings=at) as system:
        await system.submit(three_nodes())
        await until(lambda: len(stored(system, "NodeMetrics")) == 3)
        await idle(system)
        await system.submit(gang("j", pods=2, phase="Pending", duration="0"))
        await idle(system)
        return set(placed(system).values())


@pytest.mark.parametrize("prefix", ["", "/monitoring/prom"])
async def test_busy_nodes_take_no_pods(prefix: str) -> None:
    with serving(Prometheus(BUSY, prefix=prefix)) as prometheus:
        assert await place_two(settings(prometheus.address)) == {"n1"}
        assert {path for path, _ in prometheus.asked} == {f"{prefix}/api/v1/query"}


async def test_it_is_asked_past_any_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving(Prometheus(BUSY)) as prometheus, serving(Prometheus(BUSY)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        assert await place_two(settings(prometheus.address)) == {"n1"}
        assert prometheus.asked
        assert not proxy.asked


async def test_who_asks_is_named_as_the_address_says() -> None:
    with serving(Prometheus(BUSY)) as prometheus:
        address = prometheus.address.replace("http://", "http://reader:secret@")
        assert await place_two(settings(address)) == {"n1"}
        assert {authorization for _, authorization in prometheus.asked} == {"Basic cmVhZGVyOnNlY3JldA=="}


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ((500, "text/plain", "out of memory"), "500 Internal Server Error: out of memory"),
        ((503, "text/html", "<html>starting</html>"), "503 Service Unavailable"),
        (refusal(422, "query processing would load too many samples"), "too many samples"),
        (refusal(401, "who are you"), "who are you"),
        ((404, "text/plain", "404 page not found"), "404 Not Found: 404 page not found"),
        (
            (200, "application/json", SCALAR),
            "Expected",
        ),
        ((200, "application/json", '{"status": "success"}'), "no data"),
    ],
)
async def test_what_goes_wrong_is_told_and_survived(
    caplog: pytest.LogCaptureFixture, failure: tuple[int, str, str], words: str
) -> None:
    with serving(Prometheus(BUSY, failures=[failure])) as prometheus, caplog.at_level(logging.WARNING):
        assert await place_two(settings(prometheus.address)) == {"n1"}
    told = [record.getMessage() for record in caplog.records if "Prometheus at" in record.getMessage()]
    assert len(told) == 1
    assert words in told[0]


async def test_numbers_that_are_none_measure_nothing() -> None:
    odd: dict[str, dict[str, float | str]] = {CPU_QUERY: {"n0": "NaN", "n1": "+Inf"}, MEMORY_QUERY: {"n2": 5.0}}
    with serving(Prometheus(odd)) as prometheus:
        async with started(settings=settings(prometheus.address)) as system:
            await system.submit(three_nodes())
            await until(lambda: bool(stored(system, "NodeMetrics")))
            assert [metrics["metadata"]["name"] for metrics in stored(system, "NodeMetrics")] == ["n2"]


async def test_one_that_thinks_too_long_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(usage_collector, "TIMEOUT_S", 0.2)
    with serving(Prometheus(BUSY, silence_s=0.6)) as prometheus, caplog.at_level(logging.WARNING):
        assert await place_two(settings(prometheus.address)) == {"n1"}
    assert "no answer within 0.2 s (ReadTimeout)" in caplog.text


async def test_nobody_at_the_address(caplog: pytest.LogCaptureFixture) -> None:
    with serving(Prometheus(BUSY)) as prometheus:
        pass
    address = prometheus.address.replace("http://", "http://reader:secret@")
    with caplog.at_level(logging.WARNING):
        async with started(settings=settings(address)) as system:
            await system.submit([*three_nodes(), *gang("j", pods=1, phase="Pending", duration="0")])
            await until(lambda: "Prometheus at" in caplog.text)
            await idle(system)
            assert len(placed(system)) == 1, "who was not measured is not busy"
    assert "secret" not in caplog.text


@pytest.mark.parametrize(("more", "trusted"), [("", False), ("\n  tls.insecureSkipVerify: 'true'", True)])
async def test_a_certificate_that_nobody_vouches_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, more: str, trusted: bool
) -> None:
    with serving(Prometheus(BUSY), self_signed(tmp_path)) as prometheus, caplog.at_level(logging.WARNING):
        at = settings(prometheus.address, more)
        if trusted:
            assert await place_two(at) == {"n1"}
            return
        async with started(settings=at):
            await until(lambda: "Prometheus at" in caplog.text)
    assert "CERTIFICATE_VERIFY_FAILED" in caplog.text
    assert prometheus.asked == []


async def test_a_certificate_of_the_systems_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(Prometheus(BUSY), certificate) as prometheus:
        assert await place_two(settings(prometheus.address)) == {"n1"}
