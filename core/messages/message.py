# SPDX-License-Identifier: Apache-2.0
"""The form that every message type has, and the names of messages in journals, which outlive their classes."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Struct

KEY: Final = "_"
"""The key of an encoded message that holds its tag."""


class Wire(NamedTuple):
    """A name in files, and the version of the form written under it."""

    name: str
    version: int = 1

    @property
    def tag(self) -> str:
        """Return the written tag: the bare name is version 1."""
        return self.name if self.version == 1 else f"{self.name}/{self.version}"


WIRE: Final[dict[str, Wire]] = {
    # a change of the api's truth
    "Mutation": Wire("Mutation"),
    # a cycle, what it decided, and what it writes beside that
    "CycleRecord": Wire("CycleRecord"),
    "Bind": Wire("Bind"),
    "Evict": Wire("Evict"),
    "WriteStatus": Wire("WriteStatus"),
    "PodCondition": Wire("PodCondition"),
    "PodGroupStatus": Wire("PodGroupStatus"),
    "QueueStatus": Wire("QueueStatus"),
    "PodGroupEvent": Wire("PodGroupEvent"),
    # how decisions ended
    "Bound": Wire("Bound"),
    "BindRefused": Wire("BindRefused"),
    "BindTimedOut": Wire("BindTimedOut"),
    "Evicted": Wire("Evicted"),
    "EvictRefused": Wire("EvictRefused"),
    "EvictTimedOut": Wire("EvictTimedOut"),
    "StatusRefused": Wire("StatusRefused"),
    # what became of configurations and actors, and which checkpoints were taken
    "CheckpointTaken": Wire("CheckpointTaken"),
    "ConfigLoaded": Wire("ConfigLoaded"),
    "ActorStarted": Wire("ActorStarted"),
    "ActorCrashed": Wire("ActorCrashed"),
    "ActorStopped": Wire("ActorStopped"),
    "CycleDropped": Wire("CycleDropped"),
    # how alike another scheduler decided
    "ShadowCompared": Wire("ShadowCompared"),
    # faults that clients met, and by which profile
    "FaultsBegan": Wire("FaultsBegan"),
    "FaultStruck": Wire("FaultStruck"),
}
"""By the name of the class."""

NEWEST: Final = {wire.name: wire.version for wire in WIRE.values()}


def tag_of(class_name: str) -> str:
    """Return the tag of a message's class."""
    # A message that never reaches a file keeps the name of its class: no later version reads it.
    found = WIRE.get(class_name)
    return class_name if found is None else found.tag


def newer(tag: object) -> Wire | None:
    """Return the wire of a tag whose version is newer than the known ones."""
    name, _, version = tag.partition("/") if isinstance(tag, str) else ("", "", "")
    if name in NEWEST and version.isdecimal() and int(version) > NEWEST[name]:
        return Wire(name, int(version))
    return None


# gc=False: 24 bytes instead of 40 for the smallest, and the collector passes over them: messages make no cycles.
class Message(Struct, frozen=True, tag=tag_of, tag_field=KEY, gc=False):
    """The form of all messages: frozen, slotted, tagged under the key "_" with the class name, or with the name in
    files (`core.messages.message`).
    """
