"""What plugins have the bind of a task carry, as one. Source: Volcano `framework.BindContextHandler`,
`cache.BindContext`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.messages.decisions import BindContext

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    )
