"""The scenarios of a checkout, small: every figure is there, on both backends, and pauses are seen."""

import time

import anyio
import pytest

from pumice.proof.bench.figures import Parameters, Samples
from pumice.proof.bench.pauses import pauses
from pumice.proof.bench.scenarios import SCENARIOS
from tests.benches import api
from tests.benches.scenarios import MORE
from tests.pumice.cli.terminal import pumice


@pytest.mark.parametrize("backend", ["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
def test_the_gateway_is_measured(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    for name, count in (("CREATES", 100), ("GETS", 150), ("EVENTS", 20), ("LISTS", 2)):
        monkeypatch.setattr(api, name, count)
    samples = Samples()
    api.measure(Parameters(pods=300, runs=1, backend=backend), samples, lambda _: None)
    figures = samples.figures()
    assert figures.keys() >= {"creates_per_s", "gets_per_s", "watch_events_per_s", "list_s", "list_pause_s"}
    assert all(figure.value > 0 for name, figure in figures.items() if "growth" not in name)
    assert figures["list_bytes"].value > 300 * 300


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
def test_every_scenario_of_a_checkout_runs_small(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for constant, count in (("CREATES", 60), ("GETS", 20), ("EVENTS", 5), ("LISTS", 1)):
        monkeypatch.setattr(api, constant, count)
    monkeypatch.setitem(SCENARIOS, name, MORE[name])
    sizes = [f"--{size}=7" for size in ("nodes", "pods", "gang", "running") if getattr(MORE[name].defaults, size)]
    said = pumice("bench", name, *sizes, "--runs", 1, "-o", "json")
    assert said.code == 0, said.err
    assert said.json["figures"]


@pytest.mark.anyio
async def test_a_pause_of_the_loop_is_seen() -> None:
    async with pauses() as found:
        await anyio.sleep(0.02)
        time.sleep(0.05)  # noqa: ASYNC251 - this is what is to be noticed
        await anyio.sleep(0.02)
    assert found.longest_s >= 0.045
    assert found.longest_cpu_s < 0.045
