"""Asynchronous tests run on the backend that they name."""

import anyio
import pytest
from anyio.lowlevel import current_token


@pytest.mark.anyio
async def test_anyio_tests_run_on_the_backend_they_name(anyio_backend: str) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 0)
    assert current_token().backend_class.__module__ == f"anyio._backends._{anyio_backend}"
