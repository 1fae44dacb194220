"""How far another cluster's scheduler and Pumice decide alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

    from pumice.questions.replay.agreement import Agreement

SHOWN: Final = 20
"""So many differences are shown."""


def show_agreement(console: Console, agreement: Agreement) -> None:
    """In a sentence, and where they differ."""
    share = "" if agreement.share is None else f" ({agreement.share:.1%})"
    console.print(
        f"{agreement.cycles} cycles were the cluster's own scheduler's: of its {agreement.decisions} decisions"
        f" {agreement.same} are the same here{share}, {agreement.ties} of them one of equally good nodes;"
        f" {agreement.other_node} with another node, {agreement.only_there} not made here, and"
        f" {len(agreement.only_here)} made here alone.",
        soft_wrap=True,
    )
    for each in (*agreement.differences, *agreement.only_here)[:SHOWN]:
        line = f"    cycle {each.cycle}: {each.task}: there {said(each.recorded)}, here {said(each.decided)}"
        console.print(line, markup=False, soft_wrap=True)


def said(decision: dict[str, Any] | None) -> str:
    """A decision in words; None: there was none."""
    if decision is None:
        return "left alone"
    why = f" ({decision['why']})" if decision.get("why") else ""
    return f"bound to {decision['node']}{why}" if decision["_"] == "Bind" else f"evicted from {decision['node']}"
