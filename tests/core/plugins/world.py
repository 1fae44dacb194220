"""Sessions over small clusters, opened from a list of plugins, and questions to their extension points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.core.configuration import from_parsed
from pumice.core.cycle import open_session
from pumice.core.objects.metadata import parse_time
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.session.trail.trail import NULL_TRAIL
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.config.schema import SchedulerConfig
    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.session.trail.trail import NullTrail
    from pumice.core.state.jobs import Job

NOW = "2026-01-01T12:00:00Z"
ACTIONS = ("enqueue", "allocate", "backfill")

Option = str | dict[str, Any]


def configuration(
    *tiers: Sequence[Option],
    fix: Iterable[str] = (),
    actions: Sequence[str] = ACTIONS,
    configurations: Sequence[Object] = (),
) -> SchedulerConfig:
    """Tiers of plugins by name or as entries, every flag on unless an entry says otherwise."""
    plugins = [{"plugins": [{"name": p} if isinstance(p, str) else p for p in tier]} for tier in tiers]
    said = {"actions": list(actions), "tiers": plugins, "configurations": list(configurations)}
    config = from_parsed(said, flags_default_on=True)
    return msgspec.structs.replace(config, pumice=msgspec.structs.replace(config.pumice, fix=tuple(fix)))


def flatten(parts: Iterable[Object | list[Object]]) -> list[Object]:
    """Objects, and lists of them, in one list."""
    found: list[Object] = []
    for part in parts:
        if isinstance(part, list):
            found += part
        else:
            found.append(part)
    return found


def view_of(*parts: Object | list[Object]) -> View:
    """A view that has seen these objects."""
    view = View()
    for obj in flatten(parts):
        view.apply("ADDED", obj)
    return view


def open_world(
    config: SchedulerConfig,
    *parts: Object | list[Object],
    now: str = NOW,
    carry: Carry | None = None,
    trail: NullTrail = NULL_TRAIL,
) -> Session:
    """A session over these objects."""
    snapshot = view_of(*parts).snapshot(volume_rules(config))
    return open_session(snapshot, config, CycleClock(1, parse_time(now)), carry or Carry(), report=True, trail=trail)


def job_of(session: Session, name: str, namespace: str = "default") -> Job:
    """A job by the name of its PodGroup."""
    return next(job for job in session.jobs.in_order if job.key == f"{namespace}/{name}")


def task_of(session: Session, name: str, namespace: str = "default") -> Task:
    """A task by the name of its pod."""
    key = f"{namespace}/{name}"
    return next(task for task in session.snapshot.tasks.handles if task is not None and task.key == key)


def names(tasks: Iterable[Task]) -> list[str]:
    """Pod names."""
    return [task.name for task in tasks]


def ask(session: Session, point: str, *subject: Any) -> Any:
    """What all plugins together say at a point, by Volcano's name of it."""
    asked: Any = session.points.by_name()[point]
    return asked(*subject)


def evictable(session: Session, point: str, subject: Any, *pods: str) -> list[str]:
    """Whom the plugins let go at a point, of the pods named, in that order."""
    candidates = [task_of(session, name) for name in pods]
    return names(ask(session, point, subject, candidates))
