# SPDX-License-Identifier: Apache-2.0
"""All node agents as one pure machine: one heap of timers for every pod of every node, statuses written in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pumice.cluster.kube.commands.plans import FOR_EVER
from pumice.cluster.kubelets.container_life import ContainerEnd, ContainerRun, ContainerState, PodContainers, Stop
from pumice.cluster.kubelets.node_reports import ClusterAddresses, OtherAgents
from pumice.cluster.kubelets.pod_life import POD_LIFE, PodState, PodTrigger
from pumice.cluster.kubelets.pod_runs import DEFAULT_DURATION_S, REASON, REFUSED, PodRun, PortsOfNodes, read_run
from pumice.cluster.kubelets.resizes import Resizes
from pumice.cluster.kubelets.statuses import (
    ended_status,
    identify,
    life_status,
    lost_status,
    refused_status,
    resized_status,
    restarted_status,
    running_status,
)
from pumice.cluster.kubelets.taint_evictions import TaintEvictions, eviction
from pumice.cluster.machine import Machine
from pumice.cluster.timers import Timers
from pumice.core.messages.commands import ApiRequest, Delete, EvictPod, StatusCondition, UpdateStatus
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import POD_PLACED
from pumice.storage.codec import repack

PodKey = tuple[str, str]

USER: Final = "node-agents"
ORPHAN_S: Final = 40.0
"""Seconds after which a pod on a removed node is removed (Kubernetes' pod garbage collector)."""
_NODE_GONE: Final = StatusCondition("DisruptionTarget", "True", "DeletionByPodGC", "PodGC: node no longer exists")
TRIES: Final = 6
"""Restarts that a run waits for (the `backoffLimit` of a Job that says none); after them it is like one that runs."""


def ignore_end(_key: PodKey) -> None:
    """Ignore the end of a pod."""


_WAITS_FOR: Final = {
    PodState.STARTING: PodTrigger.STARTED,
    PodState.RUNNING: PodTrigger.TIME_UP,
    PodState.STOPPING: PodTrigger.STOPPED,
}


class NodeAgentsMachine(Machine):
    """Runs the pods of all nodes. `start_delay_s`: from the binding to Running; `default_duration_s`: the duration of a
    pod without one (0: for ever). `ended` is called with ended pods, since the watch does not show them. `addresses`
    are given to pods, `others` manage nodes of their own, where a client can see it.
    """

    kinds: tuple[str, ...] = ("Node", POD_PLACED)

    def __init__(
        self,
        *,
        start_delay_s: float = 0.0,
        default_duration_s: float = DEFAULT_DURATION_S,
        ended: Callable[[PodKey], None] = ignore_end,
        addresses: ClusterAddresses | None = None,
        others: OtherAgents | None = None,
    ) -> None:
        self._addresses = addresses
        self._others = others
        if others is not None:
            self.kinds = ("Lease", *self.kinds)
        self._ports = PortsOfNodes()
        self._evictions = TaintEvictions()
        self._resizes = Resizes()
        self._abroad: set[str] = set()  # nodes that others keep
        self._ended = ended
        self._start_delay_s = start_delay_s
        self._default_duration_s = default_duration_s
        self._nodes: set[str] = set()
        self._runs: dict[PodKey, PodRun] = {}
        self._fresh: dict[PodKey, None] = {}
        self._tainted: dict[PodKey, None] = {}  # pods that may have to go, or may stay now
        self._timers: Timers[PodKey] = Timers()
        self._repeating: set[PodKey] = set()  # pods that are started again and again

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        name = obj["metadata"]["name"]
        if self._others is not None and kind in ("Node", "Lease"):
            (self._others.node if kind == "Node" else self._others.lease)(obj, deleted=deleted)
            self._kept_by(name, elsewhere=self._others.keeps(name))
        if kind == "Lease":
            return
        if kind == "Node":
            if self._addresses is not None:
                self._addresses.node(obj, deleted=deleted)
                self._resizes.node(obj, deleted=deleted)
            self._node(name, deleted=deleted)
            if self._evictions.node(obj, deleted=deleted):
                self._tainted.update(dict.fromkeys(key for key, run in self._runs.items() if run.node == name))
        elif deleted:
            self._removed((obj["metadata"]["namespace"], name), revision)
        else:
            self._pod(obj, revision)

    def _node(self, name: str, *, deleted: bool) -> None:
        if deleted == (name not in self._nodes):
            return
        (self._nodes.discard if deleted else self._nodes.add)(name)
        self._fresh.update(dict.fromkeys(key for key, run in self._runs.items() if run.node == name))

    def _kept_by(self, node: str, *, elsewhere: bool) -> None:
        if elsewhere != (node in self._abroad):
            (self._abroad.add if elsewhere else self._abroad.discard)(node)
            self._fresh.update(dict.fromkeys(key for key, run in self._runs.items() if run.node == node))

    def _pod(self, pod: Object, revision: int) -> None:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        known = self._runs.get(key)
        if known is not None and revision <= known.revision:
            return
        if known is not None and known.uid != pod["metadata"]["uid"]:
            # a list shows only the present holder of the name: the removal of the former one was not heard
            self._removed(key, revision)
            known = None
        run = read_run(pod, revision, self._default_duration_s, known)
        if run is None:
            return
        self._runs[key] = run
        if self._addresses is not None:  # without clients no pod is resized
            self._resizes.pod(key, pod)
        if self._evictions.concerns(run.node):
            self._tainted[key] = None
        if self._addresses is not None and run.address and not run.shares:
            self._addresses.pods.keep(run.uid, run.address)
        if known is not None:
            run.address = run.address or known.address
            run.started = known.started or run.started  # not rounded to seconds
            shortened = run.delete_by < known.delete_by
            # a shortened grace period counts from now
            run.told, run.idle = 0.0 if shortened else known.told, known.idle
            run.over = known.over or run.over
            run.changed, run.restarted = _changed(known, run), known.restarted or run.restarted
            if run.life is not None and known.life is not None:
                if run.changed:
                    known.life.containers = run.life.containers
                run.life, run.conditions = known.life, _together(known.conditions, run.conditions)
            # a status that this machine wrote comes back here: its timers must not begin anew
            if run.state == known.state and run.delete_by == known.delete_by and not run.changed:
                return
        if run.ports:
            if run.state is PodState.ENDED:
                self._ports.release(key)
            # a pod that was loaded as running has not been admitted here, and holds its ports all the same
            elif run.state is not PodState.STARTING:
                self._admitted(run)
        self._fresh[key] = None

    def _removed(self, key: PodKey, revision: int) -> None:
        known = self._runs.get(key)
        if known is not None and revision > known.revision:
            del self._runs[key]
            self._ports.release(key)
            if self._addresses is not None:
                self._addresses.pods.release(known.uid)
            self._fresh.pop(key, None)
            self._tainted.pop(key, None)
            self._timers.cancel(key)
            self._evictions.forget(key)
            self._resizes.gone(key)
            self._repeating.discard(key)

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        fresh, self._fresh = self._fresh, {}
        again: list[ApiRequest] = []
        for key in fresh:
            again += self._started_again(self._runs[key], now)
            self._set_timer(key, self._runs[key], now)
        again += self._resized(now)
        rang = [request for key in self._timers.take_due(now) for request in self._rang(self._runs[key], now)]
        return [*again, *rang, *self._evicted(now)]

    def _started_again(self, run: PodRun, now: float) -> list[ApiRequest]:
        """Restart containers that have got another image, whatever `restartPolicy` says (the kubelet's
        `containerChanged`).
        """
        names, run.changed = run.changed, ()
        mine = run.node in self._nodes and run.node not in self._abroad
        if not names or not mine or run.delete_by or run.over or run.state is not PodState.RUNNING:
            return []
        if run.life is not None:
            return [self._status(run, life_status(run, run.life, now))] if run.life.restart(names, now) else []
        run.restarted = dict(run.restarted or {})
        for name in names:
            old = run.restarted.get(name) or ContainerRun(ContainerState.RUNNING, run.started)
            ended = ContainerEnd(run.stop_code, old.started, now)
            run.restarted[name] = ContainerRun(ContainerState.RUNNING, now, old.restarts + 1, before=ended)
        return [self._status(run, restarted_status(run))]

    def _resized(self, now: float) -> list[ApiRequest]:
        """Report the progress of resizes; a container that asks for it is restarted with its new resources."""
        told: list[ApiRequest] = []
        for key, names in self._resizes.turn(now).items():
            run = self._runs[key]
            if run.state is PodState.RUNNING and run.node in self._nodes and run.node not in self._abroad:
                run.changed = names
                told += self._started_again(run, now)
                status = resized_status(run) if run.life is None else life_status(run, run.life, now)
                told += [] if run.delete_by or run.over else [self._status(run, status)]
        return told

    def _evicted(self, now: float) -> list[ApiRequest]:
        """Evict pods that do not tolerate the taints of their nodes, also on nodes that another agent keeps."""
        tainted, self._tainted = self._tainted, {}
        for key in tainted:
            run = self._runs[key]
            if run.delete_by or run.over or run.state is PodState.ENDED:
                self._evictions.forget(key)
            else:
                self._evictions.look_at(key, run.node, run.tolerations, now)
        due = [self._runs[key] for key in self._evictions.take_due(now)]
        return [eviction(run.namespace, run.name, run.uid) for run in due]

    def _set_timer(self, key: PodKey, run: PodRun, now: float) -> None:
        self._repeating.discard(key)
        if run.node not in self._nodes:
            self._timers.set(key, now + ORPHAN_S)
            return
        if run.node in self._abroad:
            self._timers.cancel(key)
            return
        if run.delete_by:
            if not run.told:
                run.told, run.idle = now, run.idle or run.state is PodState.STARTING
            run.state = POD_LIFE.after(run.state, PodTrigger.DELETED)
        match run.state:
            case PodState.STARTING:
                self._timers.set(key, now + self._start_delay_s)
            case PodState.RUNNING if run.life is not None:
                self._wait_for(key, run.life, now)
            case PodState.RUNNING if run.duration_s > 0:
                # one that came out of another cluster may have begun in a time that is yet to come here
                self._timers.set(key, min(run.began() or now, now) + run.duration_s)
            case PodState.STOPPING:
                self._timers.set(key, max(now, _stop(run)))
            case _:
                self._timers.cancel(key)

    def _wait_for(self, key: PodKey, life: PodContainers, now: float) -> None:
        due = life.next_due() if life.begun else now
        if due == FOR_EVER:
            self._timers.cancel(key)
        else:
            # one that came out of another cluster may have begun in a time that is yet to come here
            self._timers.set(key, max(due, now))
            (self._repeating.add if life.restarts() > TRIES else self._repeating.discard)(key)

    def _live(self, run: PodRun, life: PodContainers, now: float) -> list[ApiRequest]:
        """Return the containers of a pod that have commands, after their due steps."""
        key = (run.namespace, run.name)
        life.advance(now)
        run.state = POD_LIFE.after(run.state, PodTrigger.CONTAINERS_OVER if life.over else PodTrigger.STARTED)
        if life.over:
            self._ports.release(key)
            self._repeating.discard(key)
            self._ended(key)
        else:
            self._wait_for(key, life, now)
        return [self._status(run, life_status(run, life, now))]

    def _rang(self, run: PodRun, now: float) -> list[ApiRequest]:
        if run.node not in self._nodes:
            return self._orphaned(run)
        # the kubelet's own check: a pod whose host ports are taken fails for good
        if run.ports and run.state is PodState.STARTING and not self._admitted(run):
            run.state = POD_LIFE.after(run.state, PodTrigger.REFUSED)
            self._ended((run.namespace, run.name))
            refused = refused_status(REFUSED, REASON)
            return [UpdateStatus("Pod", run.namespace, run.name, repack(refused), user=USER)]
        if run.life is not None and run.state in (PodState.STARTING, PodState.RUNNING):
            return self._live(run, run.life, now)
        trigger = _WAITS_FOR.get(run.state)
        after = POD_LIFE.step(run.state, trigger) if trigger is not None else None
        if after is None:
            return []
        run.state = after
        match after:
            case PodState.RUNNING:
                run.started = now
                self._set_timer((run.namespace, run.name), run, now)
                return [self._status(run, running_status(run, now))]
            case PodState.ENDED:
                self._ports.release((run.namespace, run.name))
                self._ended((run.namespace, run.name))
                return [self._status(run, ended_status(run, now))]
            case _:
                return self._stopped(run, now)

    def _stopped(self, run: PodRun, now: float) -> list[ApiRequest]:
        """Return the status of a terminating pod: its last phase comes first, which watchers see (the kubelet's
        `TerminatePod`).
        """
        if run.over:
            return [self._deletion(run)]
        run.over = True
        self._ended((run.namespace, run.name))
        if run.life is not None and run.life.begun:
            run.life.advance(now)
            return [self._status(run, life_status(run, run.life, now)), self._deletion(run)]
        if run.idle:
            return [self._status(run, lost_status(run, now)), self._deletion(run)]
        if not (run.works_on and run.ends_at() <= now):
            run.exit_code = run.stop_code
        return [self._status(run, ended_status(run, now)), self._deletion(run)]

    def _orphaned(self, run: PodRun) -> list[ApiRequest]:
        """Return the reason and the failed phase that the pod garbage collector writes before it removes the pod."""
        if run.over:
            return [self._deletion(run)]
        run.over = True
        whose = (run.namespace, run.name)
        failed = UpdateStatus("Pod", *whose, repack({"phase": "Failed"}), user=USER)
        return [EvictPod(*whose, run.uid, (_NODE_GONE,)), failed, self._deletion(run)]

    def _admitted(self, run: PodRun) -> bool:
        return self._ports.take((run.namespace, run.name), run.node, run.ports)

    def _status(self, run: PodRun, status: Object) -> UpdateStatus:
        if self._addresses is not None and not run.address:
            status |= self._addresses.of_pod(run.uid, run.node, shares=run.shares)
            run.address = status["podIP"]
        if self._addresses is not None:
            identify(run.uid, status)
            self._resizes.dress((run.namespace, run.name), status)
        return UpdateStatus("Pod", run.namespace, run.name, repack(status), user=USER)

    def _deletion(self, run: PodRun) -> Delete:
        return Delete("Pod", run.namespace, run.name, uid=run.uid, grace_period_s=0, user=USER)

    def node_of(self, namespace: str, name: str) -> str | None:
        """Return the node of a pod; None for an unknown one."""
        run = self._runs.get((namespace, name))
        return None if run is None else run.node

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        times = (self._timers.next_due(), self._evictions.next_due(), self._resizes.next_due())
        return min([each for each in times if each is not None], default=None)

    def running_timers(self) -> int:
        """Return the number of running timers."""
        return (
            len(self._timers)
            + len(self._evictions)
            + len(self._resizes)
            # a pod that restarts again and again never ends, so that no run waits for it
            - sum(key in self._timers for key in self._repeating)
        )


def _stop(run: PodRun) -> float:
    """Return when a pod that was asked to stop will have stopped."""
    life = run.life
    if run.over or run.idle:
        return run.told
    if life is None or not life.begun:
        return run.stops_at(run.told)
    life.stop = Stop(run.told, run.killed_at(run.told), run.stop_code, run.works_on)
    return life.next_due()


def _changed(known: PodRun, run: PodRun) -> tuple[str, ...]:
    """Return the containers of a pod that have got another image, and have not been started again since."""
    before, after = dict(known.containers), dict(run.containers)
    if known.life is not None and run.life is not None:
        before |= {each.name: each.image for each in known.life.containers}
        after |= {each.name: each.image for each in run.life.containers}
    elif known.containers is run.containers and not known.changed:
        return ()
    found = [name for name, image in after.items() if before.get(name, image) != image]
    return tuple(dict.fromkeys((*known.changed, *found)))


def _together(written: Sequence[Object], found: Sequence[Object]) -> list[Object]:
    """Return the conditions that were written here together with those of other writers."""
    own = {each["type"] for each in written}
    return [*written, *(each for each in found if each.get("type") not in own)]
