"""Asking the extender, one verb at a time or about many nodes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.core.outside import NOBODY, NOT_RECORDED, SUPPOSED, question
from pumice.core.plugins.extender.replies import ExtenderError, ReplyShape, read_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.plugins.extender.bodies import Body
    from pumice.core.plugins.extender.settings import ExtenderSettings
    from pumice.core.session.session import Session

NAME: Final = "extender"
UNASKED: Final = (NOBODY, NOT_RECORDED, SUPPOSED)
"""Answers of those who ask nobody."""
Reply = dict[str, Any] | ExtenderError


class Calls:
    """Of one session."""

    def __init__(self, session: Session, settings: ExtenderSettings) -> None:
        self._session, self._settings = session, settings
        self._asked = self._failed = 0

    def ask_all(self, verb: str, bodies: Sequence[Body], shape: ReplyShape | None) -> list[Reply]:
        """What is answered to each, or why there is no answer."""
        settings = self._settings
        url, path = settings.url(verb), settings.verbs[verb]
        answers = self._session.ask([question(url, body, settings.timeout_s) for body in bodies])
        replies: list[Reply] = []
        self._asked += len(answers)
        for answer in answers:
            try:
                replies.append(read_answer(answer, path, url, shape))
            except ExtenderError as error:
                replies.append(error)
                if answer not in UNASKED:
                    self._failed += 1
                    self._tell(error)
        return replies

    def _tell(self, error: ExtenderError) -> None:
        """Note who keeps the cycle waiting: where that is ignorable no decision names the extender."""
        settings = self._settings
        went_on = "the cycle went on without" if settings.ignorable else "what it was asked about is refused"
        waits = f", after up to {settings.timeout_s:g} s each" if settings.timeout_s else ""
        self._session.fit.troubles[NAME] = (
            f"extender {settings.url_prefix}: {self._failed} of {self._asked} questions of the cycle got no answer "
            f"that can be used{waits}; the last: {error}; {went_on}"
        )

    def ask(self, verb: str, body: Body, shape: ReplyShape | None) -> dict[str, Any]:
        """What is answered. Raises ExtenderError."""
        (reply,) = self.ask_all(verb, [body], shape)
        if isinstance(reply, ExtenderError):
            raise reply
        return reply
