# SPDX-License-Identifier: Apache-2.0
"""The extender of a storm: it answers by a rule that the monitor knows; late, badly or not at all where a fault
strikes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from zlib import crc32

from pumice.actors.outside.over_http import LATE, ExtenderRequest
from pumice.core.messages.questions import OutsideAnswer
from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pumice.actors.api_server.faults.strikes import Faults

CONTENT: Final = OutsideAnswer(200, b"{}")
REFUSAL: Final = OutsideAnswer(200, b'{"status": "not there", "code": 2}')
GARBAGE: Final = (b"<html>", b"", b"[1]", b'{"status": 7}', b"\xff\xfe", b'{"code"')


def admits(pod: str, node: str) -> bool:
    """Return the rule: of three nodes a pod ("namespace/name") may go to about two."""
    return crc32(f"{pod} {node}".encode()) % 3 != 0


class StormExtender:
    """Answers questions. `sleep` waits, in the storm's time."""

    def __init__(self, faults: Faults, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._faults, self._sleep = faults, sleep

    async def __call__(self, requests: Sequence[ExtenderRequest]) -> Sequence[OutsideAnswer]:
        """Return the answer to each question, in order, as `over_http` gives them."""
        return [await self._one(request) for request in requests]

    async def _one(self, request: ExtenderRequest) -> OutsideAnswer:
        verb = request.url.rpartition("/")[2]
        asked: Object = json.loads(request.content)
        task: Object = asked.get("task") or {}
        pod = f"{task.get('Namespace', '')}/{task.get('Name', '')}"
        fault = self._faults.strike_outside(f"{verb} {pod}")
        match fault.what if fault is not None else "":
            case "outside-refused":
                return OutsideAnswer(error=f'Post "{request.url}": connect: connection refused')
            case "outside-late":
                await self._sleep(request.timeout_s)
                return OutsideAnswer(error=f'Post "{request.url}": {LATE}')
            case "outside-garbage":
                return OutsideAnswer(200, GARBAGE[crc32(request.content) % len(GARBAGE)])
            case "outside-failing":
                return OutsideAnswer(500)
            case _:
                pass
        if verb == "prioritize":
            scores = {each["Name"]: crc32(f"{pod} {each['Name']}".encode()) % 100 for each in asked["nodes"]}
            return OutsideAnswer(200, json.dumps({"nodeScore": scores}).encode())
        return CONTENT if verb != "predicate" or admits(pod, asked["node"]["Name"]) else REFUSAL
