"""Asking for what a new cluster holds before any client has asked for anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio

from pumice.actors.errors import ActorFailedError
from pumice.core.messages.commands import ApiRequest

if TYPE_CHECKING:
    from pumice.actors.system.ports import ApiPort

AGAIN_S = 0.02


async def ask_first(api: ApiPort, requests: Sequence[ApiRequest]) -> None:
    """Ask these; again when the api crashed over it. What is there already stays as it is."""
    while requests:
        try:
            await api.ask_many(requests)
        except ActorFailedError:
            await anyio.sleep(AGAIN_S)
        else:
            return
