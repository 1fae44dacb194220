"""What happens when a task is placed, and what its bind carries. Source: Volcano `framework/event.go`,
`framework.BindContextHandler`, `cache.BindContext`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from pumice.core.messages.decisions import BindContext
from pumice.core.session.points.point import Point

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.listed import Listed


class Handler(Protocol):
    """An event handler: called with the task and its node's row after a placement or before its undoing; a text is an
    error.
    """

    def __call__(self, task: Task, node: int) -> str | None: ...


class Binding(Point[Callable[["Task"], "BindContext | None"]]):
    """Every plugin is asked what the bind of a placed task is to carry; all of it is carried."""

    __slots__ = ()

    def __call__(self, task: Task) -> BindContext | None:
        """What they say as one, None for nothing."""
        said: list[BindContext] = []
        for ask in self.rules:
            context = ask(task)
            if context is not None:
                said.append(context)
        return merged(said) if said else None


class BindingPoints:
    """`bind_context`, and the event handlers, of which all are called, in order of registration."""

    def __init__(self, listed: Listed) -> None:
        self.bind_context = Binding("BindContext", listed)
        self.on_allocate: list[Handler] = []
        self.on_deallocate: list[Handler] = []

    def handle(self, allocate: Handler | None = None, deallocate: Handler | None = None) -> None:
        """Register event handlers."""
        if allocate is not None:
            self.on_allocate.append(allocate)
        if deallocate is not None:
            self.on_deallocate.append(deallocate)


def merged(contexts: Sequence[BindContext]) -> BindContext | None:
    """Merge rule: what each says is done, in the order given; of two who write one annotation the first is heeded; the
    longest patience counts. None: nobody says anything.
    """
    if len(contexts) <= 1:
        return contexts[0] if contexts else None
    annotations: dict[str, str] = {}
    for each in reversed(contexts):
        annotations |= each.written
    return BindContext(
        volumes=tuple(volume for each in contexts for volume in each.volumes),
        provisions=tuple(claim for each in contexts for claim in each.provisions),
        devices=tuple(devices for each in contexts for devices in each.devices),
        timeout_s=max(each.timeout_s for each in contexts),
        annotations=tuple(sorted(annotations.items())),
        locks=tuple(lock for each in contexts for lock in each.locks),
    )
