"""What speaks against each card of the nodes that refused a pod for want of cards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.devices.words import told_of

if TYPE_CHECKING:
    from pumice.core.cycle import Trail
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.session.trail.records import Look

FILTER: Final = "deviceshare"
NODES: Final = 8
"""Of so many nodes the cards are told."""


def cards_against(session: Session, trail: Trail) -> dict[str, dict[str, list[str]]]:
    """Pod -> node -> a sentence for each card, as the last action left them."""
    if not session.devices:
        return {}
    tasks = {task.key: task for task in session.snapshot.tasks.handles if task is not None and task.key in trail.looks}
    told = {pod: _of_pod(session, task, trail.looks[pod][-1]) for pod, task in tasks.items()}
    return {pod: nodes for pod, nodes in told.items() if nodes}


def _of_pod(session: Session, task: Task, look: Look) -> dict[str, list[str]]:
    families = [family for family in session.devices if family.concerns(task)]
    refused = [node for node in look.refused() if any(r.plugin == FILTER for r in look.refusers(node))]
    found: dict[str, list[str]] = {}
    for node in refused[:NODES] if families else ():
        row = session.nodes.row[node]
        here = [(each.against(task, row), each.cards_asked(task)) for each in families if each.present[row]]
        sentences = [said for against, asked in here for said in told_of(against, asked)]
        found[node] = sentences or ["no cards of the kind"]
    return found
