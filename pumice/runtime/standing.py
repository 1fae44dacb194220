# SPDX-License-Identifier: Apache-2.0
"""Submitted objects that exist already: Volcano's own queues of a new journal take the submitted fields, others
stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.actors.runtime.mailbox import ask_again
from pumice.actors.system.system import System
from pumice.cluster.api.bootstrap import system_queues
from pumice.cluster.api.kinds import kind_of
from pumice.cluster.api.verbs.requests import SUBMIT
from pumice.core.messages import commands
from pumice.core.messages.replies import Accepted, ApiReply
from pumice.core.objects.metadata import Object, is_list, is_mapping, section
from pumice.storage import codec

_OWN: Final = frozenset(queue["metadata"]["name"] for queue in system_queues())
_SAID: Final = ("labels", "annotations")


def is_fresh(system: System) -> bool:
    """Return whether the journal began with this run: then only Pumice has touched the first objects."""
    return system.recovered.config is None


def apart(objects: Sequence[Object]) -> tuple[list[Object], list[Object]]:
    """Return the system queues among them, and the others."""
    own, others = list[Object](), list[Object]()
    for obj in objects:
        is_own = _stored_as(obj) == "Queue" and obj["metadata"]["name"] in _OWN
        (own if is_own else others).append(obj)
    return own, others


async def lay_over(system: System, queue: Object) -> ApiReply:
    """Give the existing system queue the submitted fields, as `kubectl apply` would."""
    metadata = queue["metadata"]
    said = {part: metadata[part] for part in _SAID if metadata.get(part)}
    patch = {"spec": section(queue, "spec"), "metadata": said}
    return await ask_again(system.api, commands.Patch("Queue", "", metadata["name"], codec.pack(patch), user=SUBMIT))


def named(obj: Object) -> str:
    """Name an object for a person: "Queue q", "Job ns/name"; one without a name has the beginning of its future one."""
    metadata = obj["metadata"]
    name = metadata.get("name") or metadata.get("generateName")
    return f"{obj['kind']} {'/'.join(part for part in (metadata.get('namespace'), name) if part)}"


async def differs(system: System, given: Object) -> bool:
    """Return whether the stored object differs from the given spec in a field that this spec sets."""
    metadata = given["metadata"]
    found = await ask_again(
        system.api, commands.Get(_stored_as(given), metadata.get("namespace") or "", metadata["name"])
    )
    if not isinstance(found, Accepted):
        return False
    return not _within(section(given, "spec"), section(codec.unpack(found.blob), "spec"))


def _within(said: object, there: object) -> bool:
    """Return whether the stored value agrees with every field that is given: a field left out may have any value."""
    if is_mapping(said):
        # A `null` in a manifest stands for a field that is left out.
        return is_mapping(there) and all(value is None or _within(value, there.get(key)) for key, value in said.items())
    if is_list(said):
        return is_list(there) and len(said) == len(there) and all(map(_within, said, there))
    return bool(said == there)


def _stored_as(obj: Object) -> str:
    kind = kind_of(obj.get("apiVersion"), obj["kind"])
    return kind.key if kind is not None else str(obj["kind"])
