"""Asks processes outside what a cycle wants to know of them (plugin extender).

Owns: nothing but the pods of the newest cycle, as it read them.
Accepts: `AskOutside`; answers `OutsideAnswered`.
Sends: asks the api for the pods that questions are about.
When full: never; only who runs the cycle asks, one question after the other.
Stops: after the questions in hand, which take their timeouts at most. What does not answer is an answer, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actors.outside.over_http import ExtenderRequest, Post
from pumice.actors.outside.whole_pods import WholePods
from pumice.actors.runtime.actor import Actor
from pumice.core.messages.questions import AskOutside, OutsideAnswered, OutsideQuestion
from pumice.core.outside import filled

if TYPE_CHECKING:
    from pumice.actors.runtime.context import Context
    from pumice.actors.system.ports import ApiPort, OutsidePort


class ExtenderClient(Actor[AskOutside, OutsideAnswered]):
    """`post` asks over HTTP, or is what stands for it."""

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
