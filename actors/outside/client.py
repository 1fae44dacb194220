# SPDX-License-Identifier: Apache-2.0
"""The client of processes outside that a cycle asks (plugin extender), with the pods that it asks about.

Owns: nothing but the pods of the newest cycle, as it read them.
Accepts: `AskOutside`; answers `OutsideAnswered`.
Sends: asks the api for the pods that questions are about.
When full: never; only who runs the cycle asks, one question after the other.
Stops: after the questions in hand, which take their timeouts at most. What does not answer is an answer, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.actors.outside.over_http import ExtenderRequest, Post
from pumice.actors.runtime.actor import Actor
from pumice.core.messages.commands import Get
from pumice.core.messages.questions import AskOutside, OutsideAnswered, OutsideQuestion
from pumice.core.messages.replies import Accepted
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.typed import typed_pod
from pumice.core.outside import filled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.actors.runtime.actor import Context
    from pumice.actors.system.ports import ApiPort, OutsidePort
    from pumice.core.messages.questions import AskedPod
    from pumice.storage.shared_objects import SharedObjects

# --- Whole pods, as the api has them


class WholePods:
    """The pods of one cycle, each read once. A deleted pod keeps the content that the question has."""

    def __init__(self, api: ApiPort, objects: SharedObjects) -> None:
        self._api, self._objects = api, objects
        self._cycle = 0
        self._known: dict[str, Object] = {}  # by uid

    async def look_up(self, cycle: int, pods: Iterable[AskedPod]) -> None:
        """Fetch all of these pods."""
        if cycle != self._cycle:
            self._cycle, self._known = cycle, {}
        missing = list({pod.uid: pod for pod in pods if pod.uid not in self._known}.values())
        if not missing:
            return
        replies = await self._api.ask_many([Get("Pod", pod.namespace, pod.name) for pod in missing])
        for pod, reply in zip(missing, replies, strict=True):
            found: Object = self._objects.unpack(reply.blob) if isinstance(reply, Accepted) else {}
            same = section(found, "metadata").get("uid") == pod.uid
            self._known[pod.uid] = found if same else gone(pod)

    def json(self, pod: AskedPod) -> bytes:
        """Return a fetched pod as JSON."""
        return as_json(self._known[pod.uid], pod)


def gone(pod: AskedPod) -> Object:
    """Return the parts of a pod that are known without the api."""
    return {"metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}, "spec": {}, "status": {}}


def as_json(whole: Object, pod: AskedPod) -> bytes:
    """Return the pod on the node where the cycle has put it, as Go's typed client encodes it."""
    whole = typed_pod(whole)
    spec = section(whole, "spec")
    if pod.node and spec.get("nodeName") != pod.node:
        whole = {**whole, "spec": {**spec, "nodeName": pod.node}}
    return msgspec.json.encode(whole)


class ExtenderClient(Actor[AskOutside, OutsideAnswered]):
    """The extender's client. `post` asks over HTTP, or stands in for it."""

    def __init__(self, name: str, mailbox: OutsidePort, context: Context, *, api: ApiPort, post: Post) -> None:
        super().__init__(name, mailbox, context)
        self._pods = WholePods(api, context.objects)
        self._post = post

    async def handle(self, message: AskOutside) -> OutsideAnswered:
        """Ask all of them."""
        await self._pods.look_up(message.cycle, (pod for each in message.questions for pod in each.pods))
        return OutsideAnswered(tuple(await self._post([self._request(each) for each in message.questions])))

    def _request(self, question: OutsideQuestion) -> ExtenderRequest:
        return ExtenderRequest(
            question.url, filled(question, list(map(self._pods.json, question.pods))), question.timeout_s
        )
