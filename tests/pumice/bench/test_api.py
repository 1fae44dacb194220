"""`bench api`, small: every figure is there, on both backends, and pauses are seen."""

import time

import anyio
import pytest

from pumice.bench import api
from pumice.bench.figures import Parameters, Samples
from pumice.bench.pauses import pauses


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_gateway_is_measured(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    for name, count in (("CREATES", 100), ("GETS", 150), ("EVENTS", 20), ("LISTS", 2)):
        monkeypatch.setattr(api, name, count)
    samples = Samples()
    api.measure(Parameters(pods=300, runs=1, backend=backend), samples, lambda _: None)
    figures = samples.to_dict()
    assert figures.keys() >= {"creates_per_s", "gets_per_s", "watch_events_per_s", "list_s", "list_pause_s"}
    assert all(figure["value"] > 0 for name, figure in figures.items() if "growth" not in name)
    assert figures["list_bytes"]["value"] > 300 * 300


@pytest.mark.anyio
async def test_a_pause_of_the_loop_is_seen() -> None:
    async with pauses() as found:
        await anyio.sleep(0.02)
        time.sleep(0.05)  # noqa: ASYNC251 - this is what is to be noticed
        await anyio.sleep(0.02)
    assert found.longest_s >= 0.045
    assert found.longest_cpu_s < 0.045
