"""Fixtures every test may use.

Two plugins run asynchronous tests here, each where it is asked to and nowhere else:

* `@pytest.mark.anyio`: anyio's plugin, once on asyncio and once on trio. This is the way to test an actor.
* `@pytest.mark.trio`: pytest-trio, for tests with timers; its `autojump_clock` fixture makes time virtual.
"""

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop an anyio test runs on: every such test runs on both."""
    name: str = request.param
    return name
