"""Bounds: no placement and no order of jobs passes them, by trying all of a few."""

from __future__ import annotations

import random
from itertools import permutations, product

import pytest

import pumice
from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.questions.evaluation.bounds import makespan_bound, packing_bound

GPU = "nvidia.com/gpu"


def drawn(chance: random.Random) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return (cpu, gpu) of a few nodes, and of a few pods."""
    nodes = [(chance.randint(2, 8), chance.randint(1, 4)) for _ in range(chance.randint(1, 3))]
    return nodes, [(chance.randint(1, 5), chance.randint(0, 3)) for _ in range(chance.randint(1, 5))]


def objects_of(nodes: list[tuple[int, int]], pods: list[tuple[int, int]]) -> list[Object]:
    there = [pumice.nodes(1, cpu=cpu, gpu=gpu, name=f"n{at}")[0] for at, (cpu, gpu) in enumerate(nodes)]
    return [*there, *(pumice.gang(f"p{at}", 1, cpu=cpu, gpu=gpu) for at, (cpu, gpu) in enumerate(pods))]


def best_of_all(nodes: list[tuple[int, int]], pods: list[tuple[int, int]]) -> float:
    """Try every placement: each pod on a node or nowhere."""
    found = 0
    for places in product(range(len(nodes) + 1), repeat=len(pods)):
        on = [[pod for pod, place in zip(pods, places, strict=True) if place == at] for at in range(len(nodes))]
        if all(sum(pod[of] for pod in on[at]) <= nodes[at][of] for at in range(len(nodes)) for of in (0, 1)):
            found = max(found, sum(pod[1] for of in on for pod in of))
    return found / sum(gpu for _, gpu in nodes)


def test_no_placement_passes_the_bound_and_some_reach_it() -> None:
    chance, reached = random.Random(7), 0
    for _ in range(40):
        nodes, pods = drawn(chance)
        best, bound = best_of_all(nodes, pods), packing_bound(objects_of(nodes, pods), GPU)
        assert best <= bound + 1e-9
        reached += best == pytest.approx(bound)
    assert 10 < reached < 40


def test_another_resource_bounds_the_packing() -> None:
    objects = [*pumice.nodes(1, cpu=4, gpu=8), pumice.gang("greedy", 4, cpu=2, gpu=2)]
    assert packing_bound(objects, GPU) == 0.5
    with pytest.raises(InputError, match="no node has"):
        packing_bound(pumice.nodes(1), GPU)


def makespan(order: tuple[tuple[int, int, int], ...], capacity: int) -> int:
    """Start jobs (arrival, size, time) in an order, each as soon as it can."""
    busy = [0] * capacity
    for arrival, size, lasts in order:
        begins = max(arrival, sorted(busy)[size - 1])
        free = [at for at, until in enumerate(busy) if until <= begins][:size]
        for at in free:
            busy[at] = begins + lasts
    return max(busy) - min(arrival for arrival, _, _ in order)


def test_no_order_of_jobs_passes_the_bound() -> None:
    chance, reached = random.Random(3), 0
    for _ in range(30):
        capacity = chance.randint(2, 4)
        jobs = [
            (chance.randint(0, 20), chance.randint(1, capacity), chance.randint(1, 30))
            for _ in range(chance.randint(1, 5))
        ]
        best = min(makespan(order, capacity) for order in permutations(jobs))
        work = [
            pumice.gang(f"j{at}", 1, cpu=size, duration=f"{lasts}s", arrival=f"{arrival}s")
            for at, (arrival, size, lasts) in enumerate(jobs)
        ]
        bound = makespan_bound([*pumice.nodes(1, cpu=capacity), *work])
        assert bound <= best + 1e-9
        reached += best == pytest.approx(bound)
    assert 5 < reached < 30
