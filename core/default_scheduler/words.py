"""Why a pod found no node, in kube-scheduler's words. Source: kube-scheduler `framework/types.go` (FitError)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.session.reasons import Code

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from pumice.core.session.reasons import IntArray, Reason, ReasonTable

NO_NODES: Final = "no nodes available to schedule pods"


def first_filter(table: ReasonTable, number: int) -> tuple[Reason, ...]:
    """What the first filter said that refused a node."""
    reasons = table.reasons(number)
    return tuple([reason for reason in reasons if reason.plugin == reasons[0].plugin])


def curable(table: ReasonTable, codes: IntArray) -> npt.NDArray[np.bool_]:
    """[N]: the nodes whose refusal fewer pods there might undo."""
    plain = [
        bool(number) and all(reason.code is Code.UNSCHEDULABLE for reason in first_filter(table, number))
        for number in range(int(codes.max(initial=0)) + 1)
    ]
    return np.array(plain, dtype=np.bool_)[codes]


def refusals(table: ReasonTable, codes: IntArray) -> Counter[str]:
    """Reason -> how many nodes gave it; a node may give several."""
    counts: Counter[str] = Counter()
    for number, nodes in enumerate(np.bincount(codes).tolist() if len(codes) else ()):
        for reason in first_filter(table, number) if nodes else ():
            counts[reason.text] += nodes
    return counts


def unavailable(nodes: int, counts: Mapping[str, int]) -> str:
    """``0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu.``"""
    told = ", ".join(sorted([f"{number} {text}" for text, number in counts.items()]))
    return f"0/{nodes} nodes are available:" + (f" {told}." if told else "")


def nowhere(nodes: int, reason: str) -> str:
    """One reason whatever the node."""
    return f"0/{nodes} nodes are available: {reason}."
