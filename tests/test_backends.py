"""Both ways of running asynchronous tests work side by side, and each does what it is there for."""

import time

import anyio
import pytest
import trio
import trio.testing
from anyio.lowlevel import current_token


@pytest.mark.anyio
async def test_anyio_tests_run_on_the_backend_they_name(anyio_backend: str) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 0)
    assert current_token().backend_class.__module__ == f"anyio._backends._{anyio_backend}"


@pytest.mark.trio
async def test_virtual_time_costs_no_real_time(autojump_clock: trio.testing.MockClock) -> None:
    before = time.monotonic()
    began = trio.current_time()
    for _ in range(60):
        await anyio.sleep(60)
    assert trio.current_time() - began == pytest.approx(3600)
    assert time.monotonic() - before < 5
