"""What is left of connections that are over."""

import gc

import anyio
import pytest
from hypercorn.protocol.h11 import H11Protocol

from tests.actors.gateway.rig import PATIENCE_S, Web, serving

pytestmark = pytest.mark.anyio


def kept() -> int:
    """Connections of which hypercorn's part is still there."""
    return sum(type(each) is H11Protocol for each in gc.get_objects())


async def hang_up(web: Web) -> None:
    """In the middle of a request, and with a watch open."""
    async with await anyio.connect_tcp(*web.settings.address) as stream:
        await stream.send(b"GET /api/v1/pods HTTP/1.1\r\nhost: x")
    async with web.watching("/api/v1/pods?watch=1"):
        pass


async def test_nothing_is_left_to_the_collector() -> None:
    """What has lived long, as watches have, it hardly ever looks at."""
    async with serving() as web:
        await web.get("/api/v1/pods")
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                await hang_up(web)
            with anyio.fail_after(PATIENCE_S):
                while kept() > 1:  # noqa: ASYNC110 - until only that of `web` is left
                    await anyio.sleep(0.01)
        finally:
            gc.enable()
