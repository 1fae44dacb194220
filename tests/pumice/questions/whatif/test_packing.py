"""Room by amounts: the bound holds, and what may be enough is never taken for too little."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.questions.whatif.search.defragment import NEVER, Move, Stock, fewest_moves, fits

CPU = "cpu"


@st.composite
def stocks(draw: st.DrawFn) -> Stock:
    """Two or three nodes of 4 cpu and 4 cards, a few pods, a gang of equal pods."""
    names = [f"n{number}" for number in range(draw(st.integers(2, 3)))]
    free = {name: {CPU: 4.0, "gpu": 4.0} for name in names}
    pods: dict[str, tuple[str, dict[str, float]]] = {}
    for number in range(draw(st.integers(0, 5))):
        node = draw(st.sampled_from(names))
        amount = {CPU: float(draw(st.integers(0, 2))), "gpu": float(draw(st.integers(1, 2)))}
        if fits(free[node], amount):
            free[node] = {key: value - amount[key] for key, value in free[node].items()}
            pods[f"p{number}"] = (node, amount)
    asked = {CPU: float(draw(st.integers(1, 4))), "gpu": float(draw(st.integers(1, 4)))}
    needed = draw(st.integers(1, 3))
    return Stock(free, pods, [asked] * needed, needed)


def brute_force(stock: Stock) -> int:
    """The least number of moves after which nothing is overfull and the gang has room."""
    for size in range(len(stock.pods) + 1):
        for chosen in combinations(sorted(stock.pods), size):
            for targets in product(stock.free, repeat=size):
                moves = [Move(pod, stock.pods[pod][0], target) for pod, target in zip(chosen, targets, strict=True)]
                after = stock.after(moves)
                if all(value > -1e-9 for free in after.free.values() for value in free.values()) and after.enough():
                    return size
    return NEVER


@settings(max_examples=60)
@given(stocks())
def test_the_bound_is_never_more_than_the_least(stock: Stock) -> None:
    assert fewest_moves(stock) <= brute_force(stock)


@settings(max_examples=60)
@given(stocks())
def test_every_way_of_moving_is_found_and_leaves_nothing_overfull(stock: Stock) -> None:
    found = [
        size
        for size in range(1, len(stock.pods) + 1)
        if any(True for chosen in combinations(sorted(stock.pods), size) for _ in stock.moves_of(chosen))
    ]
    if fewest_moves(stock) > 0:
        assert min(found, default=NEVER) == brute_force(stock)
    for chosen in combinations(sorted(stock.pods), 1):
        for moves in stock.moves_of(chosen):
            assert all(value > -1e-5 for free in stock.after(moves).free.values() for value in free.values())
