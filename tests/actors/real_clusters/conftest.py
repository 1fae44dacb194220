"""The backends of tests with two systems with a server between them."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Most of these wait: daily on the event loop that serves by default, on the other one with all that is slow."""
    name: str = request.param
    return name
