"""Cycles of Kubernetes' own scheduler on a few objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pumice.config.load import default_text
from pumice.config.rules import VERSION, under
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import Carry, CycleClock, run_cycle
from pumice.core.default_scheduler.profile import NAME
from pumice.core.messages.decisions import CycleResult
from pumice.core.objects.metadata import Object
from pumice.core.session.trail.trail import NULL_TRAIL, NullTrail
from pumice.core.state.view import View
from tests.kit.pods import pod

NOW = 1_767_400_000.0
CONFIG = parse_scheduler_config(default_text(), source="default.conf")


def mine(name: str, **options: Any) -> Object:
    """A pod of that scheduler."""
    return pod(name, scheduler=NAME, **options)


def decided(
    *objects: Object | Sequence[Object],
    view: View | None = None,
    carry: Object | None = None,
    trail: NullTrail = NULL_TRAIL,
    rules: int = VERSION,
) -> CycleResult:
    """One cycle."""
    view = view or View()
    for each in objects:
        for obj in [each] if isinstance(each, dict) else each:
            view.apply("ADDED", obj)
    known, clock = Carry.from_dict(carry or {}), CycleClock(1, NOW)
    return run_cycle(view.snapshot(), under(CONFIG, rules), clock, known, scheduler=NAME, trail=trail)


def bound(result: CycleResult) -> dict[str, str]:
    """Pod -> node."""
    return {bind.name: bind.node for bind in result.binds}


def why(result: CycleResult) -> dict[str, str]:
    """Pod -> why it waits."""
    return {one.name: one.message for one in result.pod_conditions}
