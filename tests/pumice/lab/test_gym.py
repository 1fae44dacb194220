"""The environments: their episodes are what evaluations give, and they keep gymnasium's contract."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import pumice
from pumice.errors import InputError
from pumice.lab.gym import JobEnv, NodeEnv, WeightsEnv

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


def test_jobs_are_tried_in_the_order_that_is_chosen() -> None:
    """The last by name first: the small job comes too late, the other way round the large one does."""
    work = [*pumice.nodes(1, gpu=4), *(pumice.gang(f"j{gpu}", 1, cpu=1, gpu=gpu) for gpu in (1, 2, 4))]
    env = JobEnv(pumice.Workload("three", work, placement=True), GPU)
    for last, wanted in ((False, 0.75), (True, 1.0)):
        seen, info = env.reset()
        assert (seen["jobs"].shape, seen["idle"].shape, env.resources) == ((3, 5), (4,), ["cpu", "memory", "pods", GPU])
        assert seen["jobs"][:, 3:].tolist() == [[0.25, 1.0], [0.5, 1.0], [1.0, 1.0]]
        assert [job[: len("default/j1")] for job in info["jobs"]] == ["default/j1", "default/j2", "default/j4"]
        total, done, tried = 0.0, False, 0
        while not done:
            chosen = [place for place, free in enumerate(info["mask"]) if free][-1 if last else 0]
            seen, reward, done, _, info = env.step(chosen)
            assert not seen["jobs"][chosen].any()
            assert not info["mask"][chosen]
            total, tried = total + reward, tried + 1
        assert (total, tried) == (wanted, 2)


def test_jobs_are_chosen_queue_by_queue() -> None:
    queues = [pumice.queue("a"), pumice.queue("b")]
    work = [pumice.gang(f"{queue}{at}", 1, cpu=1, queue=queue) for queue in "ab" for at in range(3)]
    env = JobEnv(pumice.Workload("queues", [*pumice.nodes(2), *queues, *work], placement=True), "cpu")
    _, info = env.reset()
    masks, done, total = [info["mask"].tolist()], False, 0.0
    while not done:
        _, reward, done, _, info = env.step(5)
        masks.append(info["mask"].tolist())
        total += reward
    assert all(any(mask[:3]) != any(mask[3:]) for mask in masks[:-1])
    assert len(masks) == 5
    assert total == pytest.approx(6 / 16)


def test_all_keep_the_contract_of_gymnasium() -> None:
    check_env(NodeEnv(workload(), GPU), skip_render_check=True)
    check_env(JobEnv(workload(), GPU), skip_render_check=True)
    given = pumice.Workload("timed", [*pumice.nodes(1, cpu=2), pumice.gang("j", 1, duration="5s")])
    env = WeightsEnv(given, CONFIG, ["binpack.binpack.weight"])
    env.reset(seed=1)
    seen, reward, done, _, info = env.step(np.array([0.5], np.float32))
    assert (seen.tolist(), done) == ([0.5], True)
    assert reward == -info["evaluation"].score


def test_what_no_environment_can_be_made_of_is_refused() -> None:
    with pytest.raises(InputError, match="placement=True"):
        NodeEnv(pumice.Workload("timed", pumice.nodes(1)), GPU)
    with pytest.raises(InputError, match="no node has example"):
        NodeEnv(workload(), "example.com/thing")
