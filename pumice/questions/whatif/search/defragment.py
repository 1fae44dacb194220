# SPDX-License-Identifier: Apache-2.0
"""A defragmentation plan: few pods whose move to other nodes lets a job start. Every reported plan has been simulated:
the new nodes take the moved pods, and then the job starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any, Final, NamedTuple

from pumice.belonging import is_of_daemon_set, minimum_of
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, section
from pumice.questions.measures.amounts import Amount, allocatable_of, request_of
from pumice.questions.whatif.changes import ForkChange
from pumice.questions.whatif.naming import Belongings, asked_by, belongings, running
from pumice.questions.whatif.search.starting import StartQuestion
from pumice.storage import codec

# --- Answers


@dataclass(frozen=True, slots=True)
class StartAnswer:
    """An answer. `code`: Nodes, Capability, Priority, FewerJobs, Moves or Change. `amount` of it (of Capability: so
    many resources are raised) lets the job start after `starts_s`, by `changes`. `least`: everything smaller (of
    Change: one less of any part) was tried and does not suffice; otherwise it is the best that was found. `bound`: a
    smaller one cannot suffice. `of`: nodes like which, which queue, which jobs or pods. `tried`: the number of futures.
    """

    code: str
    amount: int
    of: tuple[str, ...]
    changes: tuple[str, ...]
    starts_s: float
    least: bool
    tried: int
    bound: int = 1


# --- Stock: room on nodes, by amounts alone
# Pure; nothing here decides.

SLACK: Final = 1e-6
NEVER: Final = 1 << 30


class Move(NamedTuple):
    """A pod goes to another node."""

    pod: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Stock:
    """The stock of a plan. `free` by node; `pods` that may be moved: node and amount; the gang: `asked` by each of its
    waiting pods, and `needed` of these must find room.
    """

    free: Mapping[str, Amount]
    pods: Mapping[str, tuple[str, Amount]]
    asked: Sequence[Amount]
    needed: int

    def after(self, moves: Sequence[Move]) -> Stock:
        """Return the stock after these moves."""
        free = {node: dict(amount) for node, amount in self.free.items()}
        pods = dict(self.pods)
        for move in moves:
            amount = pods[move.pod][1]
            _add(free[move.source], amount, 1.0)
            _add(free[move.target], amount, -1.0)
            pods[move.pod] = (move.target, amount)
        return Stock(free, pods, self.asked, self.needed)

    def enough(self, gone: Sequence[str] = ()) -> bool:
        """Return whether the gang may find room without these pods. Only a negative answer is certain."""
        free = {node: dict(amount) for node, amount in self.free.items()}
        for pod in gone:
            node, amount = self.pods[pod]
            _add(free[node], amount, 1.0)
        return _room(free, self.asked) >= self.needed

    def moves_of(self, chosen: Sequence[str]) -> Iterator[tuple[Move, ...]]:
        """Yield every way in which the chosen pods can go to other nodes, by amounts, with room for the gang then."""
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
    """Return a lower bound of the moves: on each node the largest go first, one resource at a time, to nowhere."""
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
    """Return how many times an amount fits."""
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


WHOLLY: Final = 6
"""On so many nodes every plan is tried, the smaller first."""
MOST: Final = 4
"""Moves of such a plan."""
LIVED: Final = 150
"""Limit of plans that are tried in futures."""
ATTEMPTS: Final = 20
"""Number of orders of nodes, if not every plan is tried."""
PERIODS: Final = 20
"""Number of schedule periods in which moved pods must be placed."""


def plans(question: StartQuestion) -> Iterator[StartAnswer]:
    """Yield one plan, the smallest on few nodes; none where no plan was found."""
    stock = stock_of(question)
    if stock.needed <= 0 or not stock.asked:
        return
    bound = max(fewest_moves(stock), 1)
    small = len(stock.free) <= WHOLLY
    found = every_plan(stock, bound, question.spent) if small else some_plans(stock)
    for tried, moves in enumerate(islice(found, LIVED), 1):
        if question.spent():
            return
        starts_s = works(question, moves)
        if starts_s is not None:
            told = tuple(f"{move.pod} from {move.source} to {move.target}" for move in moves)
            pods = tuple(move.pod for move in moves)
            least = small or len(moves) == bound
            yield StartAnswer("Moves", len(moves), pods, told, starts_s, least, tried, len(moves) if least else bound)
            return


def stock_of(question: StartQuestion) -> Stock:
    """Return the free amounts, and the pods that could move."""
    objects = question.fork.objects
    free: dict[str, dict[str, float]] = {
        obj["metadata"]["name"]: dict(allocatable_of(section(obj, "status")))
        for obj in objects
        if obj["kind"] == "Node"
    }
    own = belongings(objects).get(question.job, Belongings())  # it may come later
    mine = {id(objects[place]) for place in own.pods}
    pods: dict[str, tuple[str, Amount]] = {}
    for obj in objects:
        node = section(obj, "spec").get("nodeName") if obj["kind"] == "Pod" else None
        if node not in free or section(obj, "status").get("phase") in ENDED_PHASES:
            continue
        amount = request_of(section(obj, "spec"))
        for name, value in amount.items():
            free[node][name] = free[node].get(name, 0.0) - value
        if id(obj) not in mine and _movable(obj):
            pods[_name(obj)] = (node, amount)
    minimum = max((minimum_of(objects[place]) for place in own.groups), default=0)
    if own.job >= 0 and not own.groups:
        minimum = int(section(objects[own.job], "spec").get("minAvailable") or 1)
    return Stock(free, pods, asked_by(question.fork, own), max(minimum, 1) - len(running(objects, own)))


def _movable(pod: Object) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and not is_of_daemon_set(pod)


# --- Plans, by amounts


def every_plan(stock: Stock, bound: int, spent: Callable[[], bool]) -> Iterator[tuple[Move, ...]]:
    """Yield all that might do, those of few moves first."""
    for size in range(bound, min(MOST, len(stock.pods)) + 1):
        for chosen in combinations(sorted(stock.pods), size):
            if spent():
                return
            if stock.enough(chosen):
                yield from stock.moves_of(chosen)


def some_plans(stock: Stock) -> Iterator[tuple[Move, ...]]:
    """Yield plans that empty nodes one after the other, for one more pod of the gang each time, the fewest pods first;
    each time that a plan fails, the nodes are taken in another order.
    """
    nodes = sorted(stock.free)
    for attempt in range(ATTEMPTS):
        turned = [*nodes[attempt * 7 % len(nodes) :], *nodes[: attempt * 7 % len(nodes)]]
        moves = _emptied(stock, turned)
        if moves:
            yield tuple(moves)


def _emptied(stock: Stock, nodes: Sequence[str]) -> list[Move]:
    asked = max(stock.asked, key=lambda amount: sorted(amount.values(), reverse=True))
    moves: list[Move] = []
    closed: set[str] = set()
    while not stock.after(moves).enough():
        now = stock.after(moves)
        steps = [step for node in nodes if node not in closed and (step := _one_more(now, node, asked, closed))]
        if not steps:
            return []
        step = min(steps, key=len)
        moves += step
        closed.add(step[0].source)
    return moves


def _one_more(stock: Stock, node: str, asked: Amount, closed: set[str]) -> list[Move]:
    """Return pods of a node that move elsewhere so that one more of the gang fits there, the greatest first; [] where
    none can.
    """
    there = sorted(
        (pod for pod, (where, _) in stock.pods.items() if where == node), key=lambda pod: (-_size(stock, pod), pod)
    )
    before, moves = fits(stock.free[node], asked), list[Move]()
    for pod in there:
        now = stock.after(moves)
        target = _best_target(now, pod, asked, closed | {node})
        if target:
            moves.append(Move(pod, node, target))
            if fits(stock.after(moves).free[node], asked) > before:
                return moves
    return []


def _best_target(stock: Stock, pod: str, asked: Amount, closed: set[str]) -> str:
    """Return the node where the pod fits, takes no place of the gang, and leaves the least free."""
    amount = stock.pods[pod][1]
    found: list[tuple[int, float, str]] = []
    for node, free in stock.free.items():
        if node not in closed and fits(free, amount):
            left = {name: value - amount.get(name, 0.0) for name, value in free.items()}
            found.append((fits(free, asked) - fits(left, asked), left.get("cpu", 0.0), node))
    best = min(found, default=(1, 0.0, ""))
    return best[2] if best[0] == 0 else ""


def _size(stock: Stock, pod: str) -> float:
    return stock.pods[pod][1].get("cpu", 0.0)


# --- Trials


def works(question: StartQuestion, moves: Sequence[Move]) -> float | None:
    """Return when the job starts after these moves; None when it does not, or a node refuses its pod."""
    words = ", ".join(f"{move.pod} to {move.target}" for move in moves)
    made = {move.pod: _on(move.target) for move in moves}
    starts_s = question.starts(ForkChange(words, lambda fork: _replaced(fork, made)))
    return starts_s if starts_s is not None and _taken_in(question, moves) else None


def _taken_in(question: StartQuestion, moves: Sequence[Move]) -> bool:
    """Return whether the scheduler itself binds the pods there, if each may go to its target node or none."""
    others = question.fork.without(belongings(question.fork.objects)[question.job].places)
    fork = _replaced(others, {move.pod: _pinned(move.target) for move in moves})
    missing = {(move.pod, move.target) for move in moves}

    def hears(mutation: Mutation, _at: float) -> None:
        if mutation.kind == "Pod":
            node = section(codec.unpack(mutation.blob), "spec").get("nodeName")
            missing.discard((f"{mutation.namespace}/{mutation.name}", str(node)))

    life = Life(fork, question.seed, hears, lambda result, now: None)
    life.run(PERIODS * fork.config.pumice.schedule_period_s, lambda seconds: not missing)
    return not missing


def _on(node: str) -> Any:
    def placed(pod: Object) -> Object:
        return {**pod, "spec": {**pod["spec"], "nodeName": node}}

    return placed


def _pinned(node: str) -> Any:
    """Return the pod as waiting, and for this node alone."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}

    def pinned(pod: Object) -> Object:
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        affinity = section(spec, "affinity")
        chosen = section(affinity, "nodeAffinity")
        required = section(chosen, "requiredDuringSchedulingIgnoredDuringExecution")
        terms: list[Object] = required.get("nodeSelectorTerms") or [{}]
        terms = [{**term, "matchFields": [*(term.get("matchFields") or []), field]} for term in terms]
        here = {**chosen, "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return {**pod, "spec": {**spec, "affinity": {**affinity, "nodeAffinity": here}}, "status": {"phase": "Pending"}}

    return pinned


def _replaced(fork: Fork, made: Object) -> Fork:
    objects = (made[_name(obj)](obj) if obj["kind"] == "Pod" and _name(obj) in made else obj for obj in fork.objects)
    return replace(fork, objects=tuple(objects))


def _name(obj: Object) -> str:
    return f"{obj['metadata'].get('namespace') or 'default'}/{obj['metadata'].get('name')}"
