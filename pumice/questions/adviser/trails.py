"""One decided cycle as data: what it decided, in which order jobs had their turns, and where each action ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from pumice.actors.scheduling.plugin_times import PluginTimes, Times
from pumice.core.cycle import Trail, close_session, open_session, run_action
from pumice.core.life.task import TaskStatus
from pumice.core.state.volumes import volume_rules
from pumice.questions.explain.account import NotFoundError
from pumice.questions.explain.scene import near
from pumice.questions.oneshot.supposing import supposed

if TYPE_CHECKING:
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.session.trail.records import Look
    from pumice.questions.explain.scene import Scene

Plain = dict[str, Any]


def trail_of(scene: Scene, task: str = "", stopwatch: Callable[[], float] = time.perf_counter) -> Plain:
    """The cycle with the turns and endings of all jobs; of `task` ("namespace/name") also every look at the nodes, with
    what each filter and scorer said (if no action looked, a look at the end, of action ""), and the choices of victims
    that it was part of. `took`: seconds of this deciding, for a record keeps none. Raises NotFoundError.
    """
    if task and task not in scene.view.tasks.by_key:
        raise NotFoundError(f"cycle {scene.clock.cycle} knew no pod {task!r}{near(scene.view, 'pod', task)}")
    ignored = scene.options.ignored_provisioners if scene.options else ()
    snapshot = scene.view.snapshot(volume_rules(scene.config, ignored))
    trail = Trail((task,), every_filter=True) if task else Trail((), brief=True)
    clock, ask = scene.clock, scene.ask()
    plugins, began = PluginTimes(stopwatch), stopwatch()
    session = open_session(
        snapshot, scene.config, clock, scene.carry, scene.options, trail=trail, ask=ask, watch=plugins.watch
    )
    actions: dict[str, float] = {}
    for action in scene.config.actions:
        before = stopwatch()
        run_action(session, action)
        actions[action] = stopwatch() - before
    looked_for = session.snapshot.tasks.handles[scene.view.tasks.by_key[task].row] if task else None
    if looked_for is not None and not trail.looks and session.jobs.status[looked_for.row] == TaskStatus.PENDING:
        trail.look_anyway(looked_for)
    result = plugins.told(close_session(session, plugins.watch))
    took = {"total_s": stopwatch() - began, "actions": actions, "plugins": _flat(result.report.timings)}
    decided = {**_decided(scene, result), "took": took, "supposed": supposed(ask, scene.config)}
    return {**decided, **_followed(trail), **(_about(trail, task) if task else {})}


def _flat(times: Times) -> dict[str, float]:
    return {f"{point} {plugin}": seconds for point, each in times.items() for plugin, seconds in each.items()}


def _decided(scene: Scene, result: CycleResult) -> Plain:
    return {
        "cycle": result.cycle,
        "now": scene.clock.now,
        "digest": result.digest,
        "actions": list(scene.config.actions),
        "plugins": [[plugin.name for plugin in tier.plugins] for tier in scene.config.tiers],
        "binds": [msgspec.to_builtins(each) for each in result.binds],
        "evicts": [msgspec.to_builtins(each) for each in result.evicts],
    }


def _followed(trail: Trail) -> Plain:
    endings = {job: [_ending(asdict(each)) for each in ended] for job, ended in sorted(trail.endings.items())}
    votes = {job: [list(vote) for vote in one.votes] for job, one in sorted(trail.admissions.items())}
    return {"turns": [asdict(turn) for turn in trail.turns], "endings": endings, "admissions": votes}


def _ending(plain: Plain) -> Plain:
    """What says nothing is left out."""
    return {name: value for name, value in plain.items() if value}


def _about(trail: Trail, task: str) -> Plain:
    looks = [_look(look) for look in trail.looks.get(task, ())]
    elections = [each.to_dict() for each in trail.elections.held if task in (each.preemptor, *each.candidates)]
    return {"task": task, "looks": looks, "elections": elections}


def _look(look: Look) -> Plain:
    """By node that was looked at: who refused it and with which words, or what each plugin adds to its score."""
    refused = look.refused()
    nodes = {
        name: {"refused": [[reason.plugin, reason.text] for reason in look.refusers(name)]}
        if name in refused
        else {"scores": look.score_of(name)}
        for row, name in enumerate(look.names)
        if look.seen is None or look.seen[row]
    }
    return {"action": look.action, "chosen": look.chosen, "nominated": look.nominated, "nodes": nodes}
