# SPDX-License-Identifier: Apache-2.0
"""Commands about Jobs or queues (`bus.volcano.sh`), which are deleted first and carried out after the answer: never
twice, whatever crashes in between.
"""

from __future__ import annotations

from collections.abc import Collection

from pumice.core.messages.commands import ApiRequest, Delete
from pumice.core.messages.replies import Accepted, ApiReply
from pumice.core.objects.metadata import Object, section

Key = tuple[str, str]
"""Namespace and name."""


class PendingCommands:
    """Commands with one of these actions about objects of the kind `target`, until they are deleted."""

    def __init__(self, target: str, actions: Collection[str], user: str) -> None:
        self._target = target
        self._actions = actions
        self._user = user
        self._known: dict[Key, Object] = {}

    def observe(self, command: Object, *, deleted: bool) -> None:
        """Note a command that exists, or was deleted."""
        key = (command["metadata"].get("namespace") or "", command["metadata"]["name"])
        if deleted:
            self._known.pop(key, None)
        elif section(command, "target").get("kind") == self._target and command.get("action") in self._actions:
            self._known[key] = command

    def withdrawals(self) -> list[ApiRequest]:
        """Return the requests that take the commands away."""
        return [
            Delete("Command", *key, uid=command["metadata"]["uid"], user=self._user)
            for key, command in self._known.items()
        ]

    def answered(self, request: Delete, reply: ApiReply) -> tuple[str, str, str] | None:
        """Return namespace and name of the target and the action, once a command has been taken away."""
        command = self._known.pop((request.namespace, request.name), None)
        if command is None or not isinstance(reply, Accepted):
            return None
        return command["metadata"].get("namespace") or "", command["target"]["name"], command["action"]
