# SPDX-License-Identifier: Apache-2.0
"""Trials that ask no outside process, and report that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pumice.config.schema import SchedulerConfig
from pumice.core.messages.questions import AskedPod, OutsideAnswer, OutsideAnswers, OutsideQuestion
from pumice.core.objects.metadata import Object, object_key, section
from pumice.core.outside import Ask, AskedOutside, Supposing, ask_nothing, filled
from pumice.core.plugins import ASKING
from pumice.core.plugins.extender.plugin import read_settings

AskAbout = Callable[[Sequence[Object]], Ask]
"""The objects of a cycle -> the function that answers its questions."""


def of_nobody(_objects: Sequence[Object]) -> Ask:
    """Return answers for a setup without processes to ask."""
    return ask_nothing


def as_recorded(answers: OutsideAnswers | None) -> AskAbout:
    """Return the answers of a record, from the beginning for each cycle; missing ones are supposed."""
    return lambda _: Supposing(answers)


def over_http(objects: Sequence[Object]) -> Ask:
    """Return those that the configuration names, about these objects."""
    from pumice.actors.outside.client import as_json, gone  # noqa: PLC0415 - few ask over HTTP
    from pumice.actors.outside.over_http import ExtenderRequest, ask_now  # noqa: PLC0415

    pods: dict[str, Object] = {}

    def whole(pod: AskedPod) -> bytes:
        if not pods:
            pods.update({_uid(obj): obj for obj in objects if obj["kind"] == "Pod"})
        return as_json(pods.get(pod.uid) or gone(pod), pod)

    def ask(questions: Sequence[OutsideQuestion]) -> Sequence[OutsideAnswer]:
        return ask_now(
            [ExtenderRequest(each.url, filled(each, list(map(whole, each.pods))), each.timeout_s) for each in questions]
        )

    return ask


def _uid(pod: Object) -> str:
    """Return the uid that the scheduler's view has of a pod."""
    return section(pod, "metadata").get("uid") or object_key(pod)


UNASKED: Final = (
    "the extender at {} is asked nothing here: where no record says what it answered, this supposes that it agrees"
)


class AskedOnce:
    """Outside processes for a cycle that is tried again and again. The first trial asks those of `ask`; later ones ask
    none, since an outside process must not act on a trial: they reuse the first answers, and suppose all others.
    """

    def __init__(self, ask: Callable[[], Ask]) -> None:
        self._ask = ask
        self._first: AskedOutside | None = None

    def __call__(self) -> Ask:
        """Return an asker for one more trial."""
        if self._first is not None:
            return Supposing(self._first.answers())
        self._first = AskedOutside(self._ask())
        return self._first


def unasked(config: SchedulerConfig) -> list[str]:
    """Return the remarks about an answer for which no outside process was asked, though the configuration names
    some."""
    found = [
        read_settings(dict(option.arguments or {}))
        for tier in config.tiers
        for option in tier.plugins
        if option.name in ASKING
    ]
    return [UNASKED.format(each.url_prefix) for each in found if each.verbs]


def supposed(ask: Ask, config: SchedulerConfig) -> list[str]:
    """Return the same as `unasked`, for one cycle at its end: empty if every question was answered."""
    return unasked(config) if isinstance(ask, Supposing) and ask.unasked else []
