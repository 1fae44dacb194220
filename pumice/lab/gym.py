# SPDX-License-Identifier: Apache-2.0
"""Environments for learning, in gymnasium's form: choose the node of each pod, which job is tried next, or the weights
of a configuration.

Nodes and jobs are chosen inside the scheduler's own cycle: all filters and the gang's rule stand, and only the score,
or the order of jobs, is the agent's. So what an agent learns here holds for the scheduler. Needs
`pip install 'pumice[gym]'`.

    env = NodeEnv(pumice.Workload.of_files("openb:nodes.csv,pods.csv", placement=True), "alibabacloud.com/gpu-milli")
    seen, info = env.reset(seed=0)
    while not done:
        seen, reward, done, _, info = env.step(choose(seen["nodes"], seen["pod"], info["mask"]))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from greenlet import getcurrent, greenlet
from gymnasium import spaces
from msgspec.structs import replace

from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import run_cycle
from pumice.core.plugins import PLUGINS
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.session.heap import PriorityQueue
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.session.points.orders import JobOrder
from pumice.core.session.points.point import listed_plugins
from pumice.core.session.points.rules import ColumnRule
from pumice.core.state.derived import itself
from pumice.core.state.jobs import Job
from pumice.core.state.volumes import volume_rules
from pumice.errors import InputError
from pumice.questions.evaluation.evaluate import WAIT, Evaluator, objective_of
from pumice.questions.evaluation.policy import Policy
from pumice.questions.evaluation.task import held_by, view_of
from pumice.questions.gate.run import WantedFacts

if TYPE_CHECKING:
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.questions.evaluation.workload import EvaluatedWorkload

CHOICE: Final = "gym-choice"
CONFIG: Final = f"""\
actions: allocate
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: {CHOICE}
"""
JOB_CHOICE: Final = "gym-job-choice"
JOB_CONFIG: Final = f"""\
actions: allocate
tiers:
- plugins:
  - name: {JOB_CHOICE}
  - name: gang
  - name: predicates
  - name: binpack
"""
Floats = npt.NDArray[np.float32]
Seen = dict[str, Floats]


class _Chooser:
    """The plugin that asks the agent: at every choice, about the nodes that may take the pod."""

    name = CHOICE
    reads = TEMPLATE_ONLY

    def __init__(self, arguments: dict[str, Any]) -> None:
        del arguments
        self._since, self._row = -1, -1

    def on_session_open(self, session: Session) -> None:
        self._session = session
        session.points.node_order.add(self.name, [self])

    def on_session_close(self, session: Session) -> None:
        pass

    def prepare(self, session: Session, task: Task) -> ColumnRule[np.float64]:
        rows, touched = np.arange(session.nodes.count, dtype=np.float64), session.nodes.touched

        def finish(raw: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            """Score the candidates, whose raw scores are their rows: NormalizeScore sees those that may take it."""
            # A search may ask again about the same choice: nothing was placed since then.
            if len(touched) != self._since:
                self._since = len(touched)
                agent = getcurrent().parent  # which started the cycle, and answers with the row of a node
                assert agent is not None
                self._row = agent.switch((session, task, raw.astype(np.intp)))
            return np.asarray(raw == self._row, dtype=np.float64)

        return ColumnRule(rows, finish=finish)


class _AskedQueue(PriorityQueue["Job"]):
    """The jobs of a queue that have not been tried: the agent takes one out. `pushed`: those that came since it was
    asked.
    """

    __slots__ = ("_session", "jobs", "pushed")

    def __init__(self, session: Session) -> None:
        self._session = session
        self.jobs = dict[str, Job]()
        self.pushed = list[str]()

    def __len__(self) -> int:
        return len(self.jobs)

    def push(self, item: Job) -> None:
        """Add a job."""
        self.jobs[item.key] = item
        self.pushed.append(item.key)

    def pop(self) -> Job:
        """Return the job that the agent chooses; the only one asks nothing."""
        if len(self.jobs) == 1:
            return self.jobs.popitem()[1]
        agent = getcurrent().parent
        assert agent is not None
        return self.jobs.pop(agent.switch((self._session, self)))


class _AskedOrder(JobOrder):
    """The order of jobs that the agent chooses."""

    __slots__ = ("session",)
    session: Session

    def queue(self) -> PriorityQueue[Job]:
        """Return an empty queue."""
        return _AskedQueue(self.session)


class _JobChooser:
    """The plugin that asks the agent which job of a queue is tried next. It comes first in the configuration."""

    name = JOB_CHOICE

    def __init__(self, arguments: dict[str, Any]) -> None:
        del arguments

    def on_session_open(self, session: Session) -> None:
        points = session.points
        asked = _AskedOrder("JobOrder", listed_plugins(itself(session.config)))
        asked.session = session
        points.job_order = asked

    def on_session_close(self, session: Session) -> None:
        pass


class _PlacementEnv(gymnasium.Env[Seen, int]):
    """One cycle over a placement, which stops wherever its plugin asks the agent. A seed draws the workload, as in
    evaluations. The reward of a choice is the part of `resource` that was allocated until the next one (a gang that
    does not fit is undone), so that an episode's sum is what `util.RESOURCE` of an evaluation says.
    """

    def __init__(self, workload: EvaluatedWorkload, resource: str, config: str) -> None:
        if not workload.placement:
            raise InputError("expected a workload with placement=True: here no time passes", path="workload")
        PLUGINS.setdefault(CHOICE, _Chooser)
        PLUGINS.setdefault(JOB_CHOICE, _JobChooser)
        self._workload, self._resource = workload, resource
        self._config = parse_scheduler_config(config, source="config")
        self._start(0)

    @property
    def resources(self) -> list[str]:
        """Return the names of the R observed resources, in their order."""
        return [self._names[dimension] for dimension in self._shown]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Begin an episode; without a seed that of the workload as it stands."""
        super().reset(seed=seed)
        self._start(seed or 0)
        self._go_on(None)
        return self._seen(), self._info()

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Carry out a choice. AssertionError after the end of an episode."""
        assert self._asked is not None, "the episode is over: call reset"
        before = self._held
        self._go_on(self._answer(int(action)))
        return self._seen(), (self._held - before) / self._total, self._asked is None, False, self._info()

    # --- what the environments differ in

    def _answer(self, action: int) -> object:
        """Return what the plugin gets for an action."""
        raise NotImplementedError

    def _seen(self) -> Seen:
        """Return what the agent observes."""
        raise NotImplementedError

    def _info(self) -> dict[str, Any]:
        """Return the rest of it."""
        raise NotImplementedError

    # --- the cycle

    def _start(self, seed: int) -> None:
        run = self._workload.task(seed, "", "", WantedFacts())
        view = view_of(run.objects)
        self._names = view.dimensions.names
        self._whole = view.nodes.allocatable[: len(self._names), : view.nodes.count]
        self._shown = [at for at in range(len(self._names)) if self._whole[at].any()]
        if self._resource not in self.resources:
            raise InputError(f"no node has {self._resource}", path="resource")
        self._total = float(self._whole[self._names.index(self._resource)].sum())
        snapshot = view.snapshot(volume_rules(self._config))
        clock, options = CycleClock(1, run.start, seed), SessionOptions(wordless=True)

        def cycle(_: object) -> object:
            return run_cycle(snapshot, self._config, clock, Carry(), options)

        self._cycle = greenlet(cycle)
        self._view, self._held = view, 0.0
        self._asked: Any = None

    def _go_on(self, answer: object) -> None:
        """Run the cycle to its next question, or to its end."""
        self._cycle.parent = getcurrent()
        found = self._cycle.switch(answer)
        if self._cycle.dead:
            self._asked, self._held = None, self._bound(found)
        else:
            self._asked = found
            self._held = float(found[0].nodes.used[self._names.index(self._resource)].sum())

    def _bound(self, result: CycleResult) -> float:
        """Return how much of the resource all pods hold that the cycle has bound."""
        tasks, wanted = self._view.tasks.by_key, self._names.index(self._resource)
        templates = [tasks[f"{bind.namespace}/{bind.name}"].template for bind in result.binds]
        return sum(amount for each in templates for at, amount in held_by(each, self._names) if at == wanted)


def _spaces(action: int, observed: dict[str, tuple[int, ...]]) -> tuple[spaces.Space[int], spaces.Space[Seen]]:
    """Return the space of so many choices, and that of parts between 0 and 1. gymnasium's spaces are invariant in their
    values, and these are subtypes of what is declared.
    """
    parts: dict[str, spaces.Space[Any]] = {
        name: spaces.Box(0.0, 1.0, shape, np.float32) for name, shape in observed.items()
    }
    return cast("spaces.Space[int]", spaces.Discrete(action)), cast("spaces.Space[Seen]", spaces.Dict(parts))


class NodeEnv(_PlacementEnv):
    """Choose a node for each pod of a placement, one decision a step.

    Observed are `nodes` [N, 2R], float32: of each resource the idle part of the node's own, then the idle amount as a
    part of the largest node's; and `pod` [R]: its request as a part of the largest node's. `info["mask"]` [N]: nodes
    that may take it; another choice goes to the first of these. Pods that fit one node, or none, ask nothing.
    """

    def __init__(self, workload: EvaluatedWorkload, resource: str, config: str = CONFIG) -> None:
        super().__init__(workload, resource, config)
        count, width = self._whole.shape[1], len(self._shown)
        self.action_space, self.observation_space = _spaces(count, {"nodes": (count, 2 * width), "pod": (width,)})

    def _start(self, seed: int) -> None:
        super()._start(seed)
        self._most = self._whole[self._shown].max(axis=1)
        self._mask = np.zeros(self._whole.shape[1], dtype=np.bool_)

    def _go_on(self, answer: object) -> None:
        super()._go_on(answer)
        self._mask = np.zeros_like(self._mask)
        if self._asked is not None:
            self._mask[self._asked[2]] = True

    def _answer(self, action: int) -> int:
        return action if self._mask[action] else int(self._asked[2][0])

    def _seen(self) -> Seen:
        if self._asked is None:
            width = len(self._shown)
            return {"nodes": np.zeros((len(self._mask), 2 * width), np.float32), "pod": np.zeros(width, np.float32)}
        session, task, _ = self._asked
        idle, whole = session.nodes.idle[self._shown, : len(self._mask)], self._whole[self._shown]
        own = np.divide(idle, whole, out=np.zeros_like(idle), where=whole > 0)
        both = np.concatenate([own, idle / self._most[:, None]]).clip(0.0, 1.0)
        asked = dict(task.template.items)
        pod = np.array([asked.get(at, 0.0) for at in self._shown]) / self._most
        return {"nodes": np.ascontiguousarray(both.T, dtype=np.float32), "pod": pod.clip(0.0, 1.0).astype(np.float32)}

    def _info(self) -> dict[str, Any]:
        return {"mask": self._mask, "pod": "" if self._asked is None else self._asked[1].key}


class JobEnv(_PlacementEnv):
    """Choose which job of a queue is tried next, one decision a step; its nodes are chosen by the configuration, which
    lists `gym-job-choice` first.

    Observed are `jobs` [J, R + 1], float32: of each resource what all pods of the job ask for as a part of all nodes,
    then its gang's part of its pods, 0 in every column once it was tried; and `idle` [R]: the idle part of all nodes.
    Jobs stand in the order of their names. `info["mask"]` [J]: jobs of the queue whose turn it is; another choice goes
    to the first of these. A queue with one job left asks nothing.
    """

    def __init__(self, workload: EvaluatedWorkload, resource: str, config: str = JOB_CONFIG) -> None:
        super().__init__(workload, resource, config)
        count, width = len(self._jobs), len(self._shown)
        self.action_space, self.observation_space = _spaces(count, {"jobs": (count, width + 1), "idle": (width,)})

    def _start(self, seed: int) -> None:
        super()._start(seed)
        self._jobs = sorted(job.key for job in self._view.jobs.by_key.values() if job.spec is not None)
        self._place = {key: place for place, key in enumerate(self._jobs)}
        self._sums = self._whole[self._shown].sum(axis=1)
        self._sizes = np.array([self._size(self._view.jobs.by_key[key]) for key in self._jobs], dtype=np.float32)
        self._masks: dict[int, npt.NDArray[np.bool_]] = {}
        self._mask = np.zeros(len(self._jobs), dtype=np.bool_)

    def _size(self, job: Job) -> npt.NDArray[np.float64]:
        """Return the row of a job."""
        asked = dict.fromkeys(self._shown, 0.0)
        for task in job.tasks.values():
            for at, amount in held_by(task.template, self._names):
                if at in asked:
                    asked[at] += amount
        part = min(1.0, job.pod_group.min_member / max(1, len(job.tasks)))
        return np.array([*(np.array([*asked.values()]) / self._sums), part]).clip(0.0, 1.0)

    def _go_on(self, answer: object) -> None:
        if isinstance(answer, str):
            place = self._place[answer]
            self._sizes[place], self._mask[place] = 0.0, False
        super()._go_on(answer)
        if self._asked is None:
            self._mask = np.zeros(len(self._jobs), dtype=np.bool_)
            return
        queue = self._asked[1]
        # Kept by queue, as queues take turns: the masks of thousands of jobs are not made anew at every choice.
        self._mask = self._masks.setdefault(id(queue), np.zeros(len(self._jobs), dtype=np.bool_))
        self._mask[[self._place[key] for key in queue.pushed]] = True
        queue.pushed.clear()

    def _answer(self, action: int) -> str:
        return self._jobs[action if self._mask[action] else int(np.argmax(self._mask))]

    def _seen(self) -> Seen:
        if self._asked is None:
            idle = np.zeros(len(self._shown))
        else:
            idle = self._asked[0].nodes.idle[self._shown].sum(axis=1) / self._sums
        return {"jobs": self._sizes.copy(), "idle": idle.clip(0.0, 1.0).astype(np.float32)}

    def _info(self) -> dict[str, Any]:
        return {"mask": self._mask.copy(), "jobs": self._jobs}


class WeightsEnv(gymnasium.Env[Floats, Floats]):
    """Choose all weights of a configuration together: an episode is one evaluation, on a seed that `reset` names.

    `policy`: as evaluations take it. `arguments`: the weights, as PLUGIN.ARGUMENT; an action is a part of `most` for
    each. The reward is the objective, negative where it is to be small. Observed are the weights that were tried last.
    """

    def __init__(
        self,
        workload: EvaluatedWorkload,
        policy: Policy | str | Path | Mapping[str, Any] | None,
        arguments: Sequence[str],
        objective: str = WAIT,
        most: float = 10.0,
    ) -> None:
        self._workload, self._policy, self._objective = workload, Policy.of(policy), objective_of(objective)
        self._arguments, self._most = tuple(arguments), most
        self.action_space = spaces.Box(0.0, 1.0, (len(self._arguments),), np.float32)
        self.observation_space = self.action_space
        self._last: Floats = np.zeros(len(self._arguments), np.float32)
        self._judge = Evaluator(workload, objective, [0])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begin an episode on a draw of the workload."""
        super().reset(seed=seed)
        if self._judge.seeds != (seed or 0,):  # else its draw is good for this episode, too
            self._judge = Evaluator(self._workload, self._objective.text, [seed or 0])
        return self._last, {}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Evaluate the weights. Raises ConfigError for a plugin that the configuration does not have."""
        self._last = np.asarray(action, np.float32).clip(0.0, 1.0)
        weights = {
            name: round(float(part) * self._most) for name, part in zip(self._arguments, self._last, strict=True)
        }
        found = self._judge(replace(self._policy, arguments={**self._policy.arguments, **weights}))
        sign = -1.0 if self._objective.direction == "minimise" else 1.0
        return self._last, sign * found.score, True, False, {"evaluation": found}
