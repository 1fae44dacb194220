"""Room on nodes, by amounts alone: what a gang would find if some pods stood elsewhere. Pure; nothing here decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pumice.questions.replay.amounts import Amount

SLACK: Final = 1e-6
NEVER: Final = 1 << 30


class Move(NamedTuple):
    """A pod goes to another node."""

    pod: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Stock:
    """`free` by node; `pods` that may be moved: node and amount; the gang: `asked` by each of its pods that waits, of
    which `needed` must find room.
    """

    free: Mapping[str, Amount]
    pods: Mapping[str, tuple[str, Amount]]
    asked: Sequence[Amount]
    needed: int

    def after(self, moves: Sequence[Move]) -> Stock:
        """With these moves made."""
        free = {node: dict(amount) for node, amount in self.free.items()}
        pods = dict(self.pods)
        for move in moves:
            amount = pods[move.pod][1]
            _add(free[move.source], amount, 1.0)
            _add(free[move.target], amount, -1.0)
            pods[move.pod] = (move.target, amount)
        return Stock(free, pods, self.asked, self.needed)

    def enough(self, gone: Sequence[str] = ()) -> bool:
        """Whether the gang may find room, were these pods nowhere. That it may not is certain."""
        free = {node: dict(amount) for node, amount in self.free.items()}
        for pod in gone:
            node, amount = self.pods[pod]
            _add(free[node], amount, 1.0)
        return _room(free, self.asked) >= self.needed

    def moves_of(self, chosen: Sequence[str]) -> Iterator[tuple[Move, ...]]:
        """Every way in which the chosen pods can go to other nodes, by amounts, with room for the gang then."""
        free = {node: dict(amount) for node, amount in self.free.items()}
        for pod in chosen:
            _add(free[self.pods[pod][0]], self.pods[pod][1], 1.0)
        for targets in self._targets(list(chosen), free):
            moves = tuple(Move(pod, self.pods[pod][0], target) for pod, target in zip(chosen, targets, strict=True))
            if self.after(moves).enough():
                yield moves

    def _targets(self, pods: list[str], free: dict[str, dict[str, float]]) -> Iterator[tuple[str, ...]]:
        if not pods:
            yield ()
            return
        node, amount = self.pods[pods[0]]
        for target in sorted(free):
            if target != node and fits(free[target], amount) > 0:
                _add(free[target], amount, -1.0)
                for rest in self._targets(pods[1:], free):
                    yield (target, *rest)
                _add(free[target], amount, 1.0)


def fewest_moves(stock: Stock) -> int:
    """So many pods must move at least: on each node the largest go first, one resource at a time, to nowhere."""
    smallest = _smallest(stock.asked)
    best = {_room(stock.free, [smallest] * stock.needed): 0}
    if max(best) >= stock.needed:
        return 0
    for node, free in stock.free.items():
        there = [amount for where, amount in stock.pods.values() if where == node]
        gains = [
            fits(_with_largest(free, there, count), smallest) - fits(free, smallest) for count in range(len(there) + 1)
        ]
        following: dict[int, int] = {}
        for room, moves in best.items():
            for count, gain in enumerate(gains):
                reached = min(room + gain, stock.needed)
                following[reached] = min(following.get(reached, NEVER), moves + count)
        best = following
    return best.get(stock.needed, NEVER)


def _with_largest(free: Amount, there: Sequence[Amount], count: int) -> Amount:
    found = dict(free)
    for name in found:
        found[name] += sum(sorted((amount.get(name, 0.0) for amount in there), reverse=True)[:count])
    return found


def _smallest(asked: Sequence[Amount]) -> Amount:
    names = set[str]().intersection(*asked) if not asked else set(asked[0]).intersection(*asked[1:])
    return {name: min(amount[name] for amount in asked) for name in names}


def fits(free: Amount, amount: Amount) -> int:
    """How many of it at once."""
    counts = [int((free.get(name, 0.0) + SLACK) // value) for name, value in amount.items() if value > 0]
    return max(min(counts, default=NEVER), 0)


def _room(free: Mapping[str, Amount], asked: Sequence[Amount]) -> int:
    alike: dict[tuple[tuple[str, float], ...], int] = {}
    for amount in asked:
        key = tuple(sorted(amount.items()))
        alike[key] = alike.get(key, 0) + 1
    return sum(min(count, sum(fits(each, dict(key)) for each in free.values())) for key, count in alike.items())


def _add(free: dict[str, float], amount: Amount, sign: float) -> None:
    for name, value in amount.items():
        free[name] = free.get(name, 0.0) + sign * value
