"""Filters whose answer follows from node specs and pod template alone: worked out once, kept until a node changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.session.points.ready import ReadyCheck
from pumice.core.state.derived import Like, derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.core.kube.rows import BoolArray, NodeRows
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.reasons import Reason
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs


class Question(Protocol):
    """What a static filter asks of a pod. Answers are kept from session to session by the question itself, of which
    there is therefore one.
    """

    reason: ClassVar[Reason]
    """Why nodes are refused."""

    def content(self, template: PodTemplate) -> Hashable:
        """What of the template the answer depends on; None: nothing in it can be refused."""
        ...

    def refused(self, nodes: NodeRows, template: PodTemplate) -> BoolArray | None:
        """Mask [N] of the nodes that are refused, None for none of them. May raise FitFailure."""
        ...


class StaticFilter:
    """A filter around a Question."""

    reads = TEMPLATE_ONLY

    def __init__(self, question: Question) -> None:
        self.name = question.reason.plugin
        self._question = question

    def prepare(self, session: Session, task: Task) -> ReadyCheck | None:
        """The ready answer for the task's template; None when no node is refused.

        Raises FitFailure when the question does.
        """
        mask = _refused(session.nodes, self._question, task.template)
        if mask is None:
            return None
        return ReadyCheck(mask * np.int32(session.reasons.intern(self._question.reason)))


@derived(NODES)
def _refused(nodes: NodeSpecs, question: Question, template: PodTemplate) -> BoolArray | None:
    """Who is refused, None for nobody; templates of one content share it."""
    content = question.content(template)
    return None if content is None else _refused_by_content(nodes, question, Like(content, template))


@derived(NODES)
def _refused_by_content(nodes: NodeSpecs, question: Question, template: Like[PodTemplate]) -> BoolArray | None:
    mask = question.refused(nodes, template.subject)
    return mask if mask is not None and mask.any() else None
