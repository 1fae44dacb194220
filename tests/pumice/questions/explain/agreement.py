"""Whether what is explained of a recorded cycle is what the trail of that cycle says."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.core.cycle import Trail, close_session, open_session, run_action
from pumice.core.life.task import TaskStatus
from pumice.core.messages.decisions import CycleResult
from pumice.core.session.trail.records import Look
from pumice.core.state.volumes import volume_rules
from pumice.questions.explain.account import Account, account_of
from pumice.questions.explain.advice.groups import EVICTING
from pumice.questions.explain.scene import Scene
from pumice.questions.explain.watch import PLACING


def decided(scene: Scene) -> tuple[CycleResult, Trail]:
    """The cycle once more, with a trail that leaves nothing out. Who waits and whom no action was to place is looked
    for before the first that evicts and after the last, as actions that evict look as if nodes were empty.
    """
    trail, cycle = Trail(), (scene.config, scene.clock, scene.carry, scene.options)
    ignored = scene.options.ignored_provisioners if scene.options else ()
    snapshot = scene.view.snapshot(volume_rules(scene.config, ignored))
    session = open_session(snapshot, *cycle, trail=trail, ask=scene.ask())
    first = next((action for action in scene.config.actions if action in EVICTING), "")

    def look_for_others() -> None:
        with trail.paused():
            for task in filter(None, snapshot.tasks.handles):
                placing = [look for look in trail.looks.get(task.key, ()) if look.action in PLACING]
                if not placing and session.jobs.status[task.row] == TaskStatus.PENDING:
                    trail.look_anyway(task)

    for action in scene.config.actions:
        if action == first:
            look_for_others()
        run_action(session, action)
    look_for_others()
    return close_session(session), trail


def explained(scene: Scene) -> dict[str, Account]:
    """What is explained of each pod of the cycle."""
    return {pod: account_of(scene, "pod", pod) for pod in scene.view.tasks.by_key}


def disagreements(scene: Scene) -> list[str]:
    """In what the explanations and the trail differ, pod by pod."""
    result, trail = decided(scene)
    told = explained(scene)
    found = [f"{pod}: nodes" for pod, looks in trail.looks.items() if not _is_one_of(told[pod], looks)]
    for evict in result.evicts:
        pod = f"{evict.namespace}/{evict.name}"
        election = trail.elections.of(pod, evict.preemptor)
        assert election is not None
        votes = {each["plugin"]: (each["tier"], each["gave"]) for each in told[pod].votes.get("ballots", [])}
        if votes != {each.plugin: (each.tier, len(each.gave)) for each in election.opinions}:
            found.append(f"{pod}: votes")
    for pod, account in told.items():
        if account.differs:
            found.append(f"{pod}: {account.differs}")
        if account.tasks != {pod: trail.statuses.get(pod, account.state)}:
            found.append(f"{pod}: status")
        if not account.job:
            continue  # its PodGroup is gone
        job = account.job.get("name", "")
        endings = [(one["action"], one["who"], one["ending"]) for one in account.job.get("endings", [])]
        if endings != [(one.action, one.who, one.ending) for one in trail.of_job(job)]:
            found.append(f"{pod}: endings")
    return found


def _is_one_of(account: Account, looks: Sequence[Look]) -> bool:
    """The last look where that was made after all actions, else any."""
    telling = [look for look in looks if not look.action] or looks
    return any(account.nodes == look.by_reason() for look in telling)
