"""Points whose plugins give the answers a test wants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.config.pumice_arguments import PumiceArguments
from pumice.config.schema import PluginOption, SchedulerConfig, Tier
from pumice.core.session.points.all_points import Points
from pumice.core.session.points.point import FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import TaskBatch
    from pumice.core.session.points.victims import AsBatch

ALL_ON = {flag: True for flag in FLAGS.values() if flag is not None}


def points(
    *tiers: str, enabled: dict[str, bool] | None = None, fix: tuple[str, ...] = (), as_batch: AsBatch | None = None
) -> Points:
    """Tiers of plugins named by single letters, all flags on."""
    flags = ALL_ON if enabled is None else enabled
    config = tuple(Tier(tuple(PluginOption(name, flags) for name in tier)) for tier in tiers)
    return Points(SchedulerConfig(("allocate",), config, pumice=PumiceArguments(fix=fix)), as_batch or no_batch)


def no_batch(_: Sequence[Task]) -> TaskBatch:
    raise AssertionError("no rule is a mask")


def given_answers(point: str, tiers: Sequence[str], answers: dict[str, Any], **options: Any) -> Any:
    """A point at which every plugin gives its answer, whatever it is asked."""
    made = points(*tiers, **options).by_name()[point]
    for name, answer in answers.items():
        made.add(name, constant(answer))
    return made


def constant(answer: Any) -> Callable[..., Any]:
    return lambda *_: answer
