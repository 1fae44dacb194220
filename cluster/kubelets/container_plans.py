# SPDX-License-Identifier: Apache-2.0
"""Plans that a node agent reads from a pod whose containers have commands, and their progress in the pod's status."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.kube.commands.containers import has_commands, heeds, plan_of, serves
from pumice.cluster.kube.commands.plans import FOR_EVER, Plan
from pumice.cluster.kubelets.container_life import (
    ALWAYS,
    CONTAINER_LIFE,
    NEVER,
    ON_FAILURE,
    AskedContainer,
    ContainerEnd,
    ContainerRun,
    ContainerTrigger,
    PodContainers,
    backoff_after,
)
from pumice.core.objects.metadata import Object, parse_time, section

IMMEDIATE: Final = Plan(0.0)


def read_life(pod: Object, duration_s: float) -> PodContainers | None:
    """Return the containers as they are; None when none has a command. `duration_s`: of a container without one, 0 for
    ever.
    """
    spec = section(pod, "spec")
    if not has_commands(spec):
        return None
    policy = spec.get("restartPolicy") or ALWAYS
    listed: list[tuple[Object, bool]] = [(each, True) for each in spec.get("initContainers") or ()]
    listed += [(each, False) for each in spec.get("containers") or ()]
    plans = [plan_of(pod, each) for each, _ in listed]
    if not any(plans):
        return None
    otherwise = Plan(duration_s or FOR_EVER)
    containers = [
        _container(each, plan, policy, otherwise, first=first)
        for (each, first), plan in zip(listed, plans, strict=True)
    ]
    return _found(tuple(containers), section(pod, "status"), spec.get("activeDeadlineSeconds"))


def _container(each: Object, plan: Plan | None, policy: str, otherwise: Plan, *, first: bool) -> AskedContainer:
    is_sidecar = first and each.get("restartPolicy") == ALWAYS
    # An init container that has succeeded is over, whatever the pod's policy: only a sidecar is started again.
    again = ALWAYS if is_sidecar else ON_FAILURE if first and policy == ALWAYS else policy
    if plan is None:
        # an unknown program takes the time of its pod and ends for good; an init container takes none
        plan = Plan(FOR_EVER) if is_sidecar or serves(each) else IMMEDIATE if first else otherwise
        again = NEVER
    elif plan.works:
        again = NEVER if not plan.exit_code else again
        plan = plan.working(otherwise.lasts_s)
    name, image = str(each.get("name")), str(each.get("image") or "")
    return AskedContainer(name, image, plan, again, first, is_sidecar, heeds(each))


def _found(containers: tuple[AskedContainer, ...], status: Object, deadline_s: Any) -> PodContainers:
    said = {
        each.get("name"): each
        for group in ("initContainerStatuses", "containerStatuses")
        for each in status.get(group) or ()
    }
    runs = [run_of(said.get(container.name) or {}) for container in containers]
    return PodContainers(
        containers,
        runs,
        deadline_s=float(deadline_s) if deadline_s else FOR_EVER,
        # A kubelet writes startTime when it takes the pod, before any container has a status.
        begun=parse_time(status.get("startTime")) if said else 0.0,
    )


def run_of(said: Object) -> ContainerRun:
    """Return the run of a container, as its status describes it."""
    state = section(said, "state")
    run = ContainerRun(restarts=said.get("restartCount") or 0, before=_ended(section(said, "lastState")))
    run.backoff_s = backoff_after(run.restarts)
    if "running" in state:
        run.state = CONTAINER_LIFE.after(run.state, ContainerTrigger.SEEN_RUNNING)
        run.started = parse_time(section(state, "running").get("startedAt"))
    elif "terminated" in state:
        run.state, run.ended = CONTAINER_LIFE.after(run.state, ContainerTrigger.SEEN_ENDED), _ended(state)
    # Waiting after an end is a back-off: its end stands under lastState.
    elif run.before is not None:
        run.state = CONTAINER_LIFE.after(run.state, ContainerTrigger.SEEN_WAITING)
        run.ended, run.before = run.before, None
    return run


def _ended(state: Object) -> ContainerEnd | None:
    ended = section(state, "terminated")
    if not ended:
        return None
    return ContainerEnd(
        ended.get("exitCode") or 0, parse_time(ended.get("startedAt")), parse_time(ended.get("finishedAt"))
    )


def foreseen(life: PodContainers) -> tuple[float, int]:
    """Return for how many seconds the pod is Running, and how it ends; 0 seconds when it never ends."""
    for container in life.containers:
        if container.first and not container.is_sidecar and container.plan.exit_code:
            return 0.0, 0  # it never runs
    main = [container for container in life.containers if not container.first]
    again = any(each.again == ALWAYS or (each.again == ON_FAILURE and each.plan.exit_code) for each in main)
    lasts_s = max((each.plan.lasts_s for each in main), default=FOR_EVER)
    if again or lasts_s == FOR_EVER:
        return 0.0, 0
    return lasts_s, next((each.plan.exit_code for each in main if each.plan.exit_code), 0)
