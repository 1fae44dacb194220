# SPDX-License-Identifier: Apache-2.0
"""Environments for learning, in gymnasium's form: choose the node of each pod, or the weights of a configuration.

The nodes of a pod are chosen inside the scheduler's own cycle: all filters and the gang's rule stand, and only the
score is the agent's. So what an agent learns here holds for the scheduler. Needs `pip install 'pumice[gym]'`.

    env = NodeEnv(pumice.Workload.of_files("openb:nodes.csv,pods.csv", placement=True), "alibabacloud.com/gpu-milli")
    seen, info = env.reset(seed=0)
    while not done:
        seen, reward, done, _, info = env.step(choose(seen["nodes"], seen["pod"], info["mask"]))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from greenlet import getcurrent, greenlet
from gymnasium import spaces

from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import run_cycle
from pumice.core.plugins import PLUGINS
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.session.points.rules import ColumnRule
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


class NodeEnv(gymnasium.Env[Seen, int]):
    """Choose a node for each pod of a placement, one decision a step.

    Observed are `nodes` [N, 2R], float32: of each resource the idle part of the node's own, then the idle amount as a
    part of the largest node's; and `pod` [R]: its request as a part of the largest node's. `info["mask"]` [N]: nodes
    that may take it; another choice goes to the first of these. The reward is the part of `resource` that was allocated
    until the next choice (a gang that does not fit is undone), so that an episode's sum is what `util.RESOURCE` of an
    evaluation says. Pods that fit one node, or none, ask nothing. A seed draws the workload, as in evaluations.
    """

    def __init__(self, workload: EvaluatedWorkload, resource: str, config: str = CONFIG) -> None:
        if not workload.placement:
            raise InputError("expected a workload with placement=True: here no time passes", path="workload")
        PLUGINS.setdefault(CHOICE, _Chooser)
        self._workload, self._resource = workload, resource
        self._config = parse_scheduler_config(config, source="config")
        self._start(0)
        count, width = self._whole.shape[1], len(self._shown)
        # gymnasium's spaces are invariant in their values, and these are subtypes of what is declared.
        self.action_space = cast("spaces.Space[int]", spaces.Discrete(count))
        parts: dict[str, spaces.Space[Any]] = {
            "nodes": spaces.Box(0.0, 1.0, (count, 2 * width), np.float32),
            "pod": spaces.Box(0.0, 1.0, (width,), np.float32),
        }
        self.observation_space = cast("spaces.Space[Seen]", spaces.Dict(parts))

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
        """Place the pod on a node. AssertionError after the end of an episode."""
        assert self._asked is not None, "the episode is over: call reset"
        before = self._held
        self._go_on(int(action) if self._mask[int(action)] else int(self._asked[2][0]))
        return self._seen(), (self._held - before) / self._total, self._is_over(), False, self._info()

    def _is_over(self) -> bool:
        return self._asked is None

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
        self._most = self._whole[self._shown].max(axis=1)
        snapshot = view.snapshot(volume_rules(self._config))
        clock, options = CycleClock(1, run.start, seed), SessionOptions(wordless=True)

        def cycle(_: object) -> object:
            return run_cycle(snapshot, self._config, clock, Carry(), options)

        self._cycle = greenlet(cycle)
        self._view, self._held = view, 0.0
        self._asked: tuple[Session, Task, npt.NDArray[np.intp]] | None = None
        self._mask = np.zeros(view.nodes.count, dtype=np.bool_)

    def _go_on(self, answer: int | None) -> None:
        """Run the cycle to its next question, or to its end."""
        self._cycle.parent = getcurrent()
        found = self._cycle.switch(answer)
        self._mask = np.zeros_like(self._mask)
        if self._cycle.dead:
            self._asked, self._held = None, self._bound(found)
        else:
            self._asked = found
            self._mask[found[2]] = True
            self._held = float(found[0].nodes.used[self._names.index(self._resource)].sum())

    def _bound(self, result: CycleResult) -> float:
        """Return how much of the resource all pods hold that the cycle has bound."""
        tasks, wanted = self._view.tasks.by_key, self._names.index(self._resource)
        templates = [tasks[f"{bind.namespace}/{bind.name}"].template for bind in result.binds]
        return sum(amount for each in templates for at, amount in held_by(each, self._names) if at == wanted)

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


class WeightsEnv(gymnasium.Env[Floats, Floats]):
    """Choose all weights of a configuration together: an episode is one evaluation, on a seed that `reset` names.

    `arguments`: the weights, as PLUGIN.ARGUMENT; an action is a part of `most` for each. The reward is the objective,
    negative where it is to be small. Observed are the weights that were tried last.
    """

    def __init__(
        self,
        workload: EvaluatedWorkload,
        policy: Policy,
        arguments: Sequence[str],
        objective: str = WAIT,
        most: float = 10.0,
    ) -> None:
        self._workload, self._policy, self._objective = workload, policy, objective_of(objective)
        self._arguments, self._most = tuple(arguments), most
        self.action_space = spaces.Box(0.0, 1.0, (len(self._arguments),), np.float32)
        self.observation_space = self.action_space
        self._last: Floats = np.zeros(len(self._arguments), np.float32)
        self._seed = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begin an episode on a draw of the workload."""
        super().reset(seed=seed)
        self._seed = seed or 0
        return self._last, {}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Evaluate the weights. Raises ConfigError for a plugin that the configuration does not have."""
        self._last = np.asarray(action, np.float32).clip(0.0, 1.0)
        weights = {
            name: round(float(part) * self._most) for name, part in zip(self._arguments, self._last, strict=True)
        }
        policy = Policy(self._policy.config, self._policy.actions, {**self._policy.arguments, **weights})
        found = Evaluator(self._workload, self._objective.text, [self._seed])(policy)
        sign = -1.0 if self._objective.direction == "minimise" else 1.0
        return self._last, sign * found.score, True, False, {"evaluation": found}
