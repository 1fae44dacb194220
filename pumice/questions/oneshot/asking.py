"""Whom a one-shot cycle asks outside: extenders themselves, or what a record says they answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pumice.actors.outside.over_http import ExtenderRequest, at_once
from pumice.actors.outside.whole_pods import as_json, gone
from pumice.core.messages.questions import AskedPod, OutsideAnswer, OutsideAnswers, OutsideQuestion
from pumice.core.objects.metadata import Object, object_key, section
from pumice.core.outside import Ask, Supposing, filled, nobody

AskAbout = Callable[[Sequence[Object]], Ask]
"""The objects of a cycle -> whom it asks."""


def of_nobody(objects: Sequence[Object]) -> Ask:
    """There is nobody to ask."""
    del objects
    return nobody


def as_recorded(answers: OutsideAnswers | None) -> AskAbout:
    """The answers of a record, from the beginning for each cycle; what it has none for is supposed."""
    return lambda _: Supposing(answers)


def over_http(objects: Sequence[Object]) -> Ask:
    """Those that the configuration names, about these objects."""
    pods: dict[str, Object] = {}

    def whole(pod: AskedPod) -> bytes:
        if not pods:
            pods.update({_uid(obj): obj for obj in objects if obj["kind"] == "Pod"})
        return as_json(pods.get(pod.uid) or gone(pod), pod)

    def ask(questions: Sequence[OutsideQuestion]) -> Sequence[OutsideAnswer]:
        return at_once(
            [ExtenderRequest(each.url, filled(each, list(map(whole, each.pods))), each.timeout_s) for each in questions]
        )

    return ask


def _uid(pod: Object) -> str:
    """The uid that the scheduler's view has of a pod."""
    return section(pod, "metadata").get("uid") or object_key(pod)
