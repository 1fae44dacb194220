"""The environments: their episodes are what evaluations give, and they keep gymnasium's contract."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import pumice
from pumice.errors import InputError
from pumice.lab.gym import NodeEnv, WeightsEnv
from pumice.questions.evaluation.policy import Policy

GPU = "nvidia.com/gpu"
CONFIG = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: binpack}]\n'


def workload() -> pumice.Workload:
    pods = [pumice.gang(f"p{number}", 1 + number % 2, cpu=1, gpu=1 + number % 3) for number in range(9)]
    return pumice.Workload("small", [*pumice.nodes(3, cpu=8, gpu=4), *pods], placement=True)


def test_an_episode_is_a_placement_and_its_rewards_sum_to_the_allocation() -> None:
    env = NodeEnv(workload(), GPU)
    seen, info = env.reset(seed=0)
    assert (seen["nodes"].shape, seen["pod"].shape, env.resources) == ((3, 8), (4,), ["cpu", "memory", "pods", GPU])
    assert (seen["nodes"][:, 3] == 1.0).all()
    total, done, steps = 0.0, False, 0
    while not done:
        assert info["mask"].any()
        chosen = int(np.argmax(info["mask"]))
        before = seen["nodes"][chosen, 3]
        seen, reward, done, _, info = env.step(chosen)
        assert done or seen["nodes"][chosen, 3] <= before
        total, steps = total + reward, steps + 1
    assert steps >= 5
    assert total == pytest.approx(11 / 12)


def test_a_node_that_cannot_take_the_pod_is_replaced_by_one_that_can() -> None:
    nodes = [*pumice.nodes(2, gpu=2, name="a"), *pumice.nodes(1, name="b")]
    env = NodeEnv(pumice.Workload("three", [*nodes, pumice.gang("p", 1, gpu=1)], placement=True), GPU)
    _, info = env.reset()
    assert info["mask"].tolist() == [True, True, False]
    assert info["pod"] == "default/p-worker-0"
    _, reward, done, _, _ = env.step(2)
    assert (reward, done) == (0.25, True)


def test_both_keep_the_contract_of_gymnasium() -> None:
    check_env(NodeEnv(workload(), GPU), skip_render_check=True)
    given = pumice.Workload("timed", [*pumice.nodes(1, cpu=2), pumice.gang("j", 1, duration="5s")])
    env = WeightsEnv(given, Policy(CONFIG), ["binpack.binpack.weight"])
    env.reset(seed=1)
    seen, reward, done, _, info = env.step(np.array([0.5], np.float32))
    assert (seen.tolist(), done) == ([0.5], True)
    assert reward == -info["evaluation"].score


def test_what_no_environment_can_be_made_of_is_refused() -> None:
    with pytest.raises(InputError, match="placement=True"):
        NodeEnv(pumice.Workload("timed", pumice.nodes(1)), GPU)
    with pytest.raises(InputError, match="no node has example"):
        NodeEnv(workload(), "example.com/thing")
