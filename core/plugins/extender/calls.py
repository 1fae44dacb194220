"""Asking the extender, one verb at a time or about many nodes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.outside import question
from core.plugins.extender.replies import ExtenderError, ReplyShape, read_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.plugins.extender.bodies import Body
    from core.plugins.extender.settings import ExtenderSettings
    from core.session.session import Session

Reply = dict[str, Any] | ExtenderError


class Calls:
    """Of one session."""

    def __init__(self, session: Session, settings: ExtenderSettings) -> None:
        self._session, self._settings = session, settings

    def ask_all(self, verb: str, bodies: Sequence[Body], shape: ReplyShape | None) -> list[Reply]:
        """What is answered to each, or why there is no answer."""
        settings = self._settings
        url, path = settings.url(verb), settings.verbs[verb]
        answers = self._session.ask([question(url, body, settings.timeout_s) for body in bodies])
        replies: list[Reply] = []
        for answer in answers:
            try:
                replies.append(read_answer(answer, path, url, shape))
            except ExtenderError as error:
                replies.append(error)
        return replies

    def ask(self, verb: str, body: Body, shape: ReplyShape | None) -> dict[str, Any]:
        """What is answered. Raises ExtenderError."""
        (reply,) = self.ask_all(verb, [body], shape)
        if isinstance(reply, ExtenderError):
            raise reply
        return reply
