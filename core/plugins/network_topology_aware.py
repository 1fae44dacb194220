# SPDX-License-Identifier: Apache-2.0
"""network-topology-aware: place jobs in performance domains, near ones first. Source: Volcano
`plugins/network-topology-aware`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.config.arguments import INTEGER, NAMES, NUMBER, SWITCH, Argument, PluginArguments, at_least
from pumice.core.objects.metadata import Object
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.resources import MIN_RESOURCE, Resource
from pumice.core.session.points.nodes import TEMPLATE_ONLY, FloatArray, Volatility
from pumice.core.session.points.rules import of_candidates
from pumice.core.state.dimensions import floats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.points.rules import Score
    from pumice.core.session.session import Session
    from pumice.core.state.hypernodes import Domain, HyperNodeTree, RowArray
    from pumice.core.state.jobs import Job

# --- Occupancy of domains
# Only `used` follows the session; idle stays as it was at opening (fix topology-idle-follows: it does not).


class DomainOccupancy:
    """Amounts of domains, float64 [dimension, domain]: `allocatable`, `used`, `idle`, `future`. `index`: domain name ->
    column; `above[row]`: columns of the domains that hold a node.
    """

    def __init__(self, session: Session) -> None:
        nodes, domains = session.nodes, session.topology.tree.domains
        self._nodes = nodes
        self.index = {name: i for i, name in enumerate(domains)}
        self._rows = [domain.rows for domain in domains.values()]
        self.above: list[list[int]] = [[] for _ in range(nodes.count)]
        for column, domain in enumerate(domains.values()):
            rows: list[int] = domain.rows.tolist()
            for row in rows:
                self.above[row].append(column)
        shape = (nodes.idle.shape[0], len(domains))
        self.allocatable, self.used = np.zeros(shape), np.zeros(shape)
        self.idle, self.future = np.zeros(shape), np.zeros(shape)
        self._used_at = [floats(line) for line in self.used]
        follows = "topology-idle-follows" in session.config.pumice.fix
        self._followed = [(self.idle, nodes.idle), (self.future, nodes.future)] if follows else []
        self._add_up(range(len(domains)))

    def renew(self) -> None:
        """Add up the domains again whose nodes have changed since the opening before."""
        changed = set(self._nodes.touched[self._read :])
        self._add_up({column for row in changed for column in self.above[row]})

    def _add_up(self, columns: Iterable[int]) -> None:
        nodes = self._nodes
        pairs = (
            (self.allocatable, nodes.allocatable),
            (self.used, nodes.used),
            (self.idle, nodes.idle),
            (self.future, nodes.future),
        )
        for column in columns:
            for total, of_nodes in pairs:
                # whole numbers of milli-units and bytes: exact in any order of summation
                total[:, column] = of_nodes[:, self._rows[column]].sum(axis=1)
        self._seen = [of_nodes.copy() for _, of_nodes in self._followed]
        self._read = len(nodes.touched)

    def on_allocate(self, task: Task, node: int) -> None:
        """Count a task that was put on a node."""
        self._change(task, node, 1.0)

    def on_deallocate(self, task: Task, node: int) -> None:
        """Count a task that was taken off a node."""
        self._change(task, node, -1.0)

    def _change(self, task: Task, node: int, sign: float) -> None:
        # A pod on a node that the session does not have counts in no domain.
        if node < 0:
            return
        for dimension, value in task.template.items:
            line = self._used_at[dimension]
            for column in self.above[node]:
                line[column] += sign * value
        for (total, of_nodes), seen in zip(self._followed, self._seen, strict=True):
            total[:, self.above[node]] += (of_nodes[:, node] - seen[:, node])[:, None]
            seen[:, node] = of_nodes[:, node]

    def packed(self, wanted: dict[int, float], weights: dict[int, int], columns: RowArray) -> FloatArray:
        """Return the weighted mean of (used + wanted) / allocatable per domain; 0 where it overflows in one dimension
        or no weight is left.

        `wanted`: dimension -> request, in the order in which Volcano adds the terms up.
        """
        total = np.zeros(len(columns))
        overflows = np.zeros(len(columns), dtype=np.bool_)
        weight_sum = 0
        # A domain without a resource overflows in it: what the division gives there is not read.
        with np.errstate(divide="ignore", invalid="ignore"):
            for dimension, request in wanted.items():
                future = self.used[dimension, columns] + request
                allocatable = self.allocatable[dimension, columns]
                overflows |= future > allocatable
                total += weights[dimension] * (future / allocatable)
                weight_sum += weights[dimension]
            if weight_sum <= 0:
                return np.zeros(len(columns))
            return np.where(overflows, 0.0, total / weight_sum)

    def fits(self, request: tuple[tuple[int, float], ...], columns: FloatArray, column: int) -> bool:
        """Return whether the request is within the domain's amounts, tolerantly."""
        return all(value - columns[dimension, column] < MIN_RESOURCE for dimension, value in request)


# --- Arguments

_COUNT: Final = at_least(INTEGER, 0)
_BINPACK: Final = "hypernode.binpack"
WEIGHT: Final = Argument("weight", _COUNT, 1, "What its scores count.")
CPU: Final = Argument(f"{_BINPACK}.cpu", _COUNT, 1, "What cpu counts where domains are filled up.")
MEMORY: Final = Argument(f"{_BINPACK}.memory", _COUNT, 1, "What memory counts there.")
LISTED: Final = Argument(f"{_BINPACK}.resources", NAMES, (), "Further resources that count there.", "none")
LISTED_ONE: Final = Argument(f"{_BINPACK}.resources.*", _COUNT, 1, "What the listed resource of that name counts.")
NORMAL_PODS: Final = Argument(
    f"{_BINPACK}.normal-pod.enable", SWITCH, True, "Whether pods without a topology are scored too."
)
FADING: Final = Argument(
    f"{_BINPACK}.normal-pod.fading",
    at_least(NUMBER, 0),
    0.8,
    "The factor by which a tier counts less than the one below.",
)
MOST_DOMAINS: Final = Argument(
    "hypernode.gradient.evict.max-hypernodes", at_least(INTEGER, 1), 8, "How many domains an eviction may look at."
)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the plugin. `weight` scales all scores; `resources`: weight of each resource in binpacking;
    `normal_pods`: whether pods without a topology are scored, tiers fading by `fading`; `max_hyper_nodes`: how many
    domains an eviction may look at.
    """

    weight: int = WEIGHT.default
    resources: dict[str, int] = field(default_factory=dict[str, int])
    normal_pods: bool = True
    fading: float = FADING.default
    max_hyper_nodes: int = MOST_DOMAINS.default


def read_weights(values: Object) -> Weights:
    """Read the arguments."""
    resources = {"cpu": CPU.of(values), "memory": MEMORY.of(values)}
    return Weights(
        weight=WEIGHT.of(values),
        resources=resources | {name: LISTED_ONE.of(values, name) for name in LISTED.of(values)},
        normal_pods=NORMAL_PODS.of(values),
        fading=FADING.of(values),
        max_hyper_nodes=MOST_DOMAINS.of(values),
    )


# --- Scores
# Source: Volcano `HyperNodeOrderFn`, `batchNodeOrderFn`.

MAX_SCORE = 100.0
PYTHON: Final = "powers-as-python-has-them"
"""The rule of earlier versions: the last bit of a tier's weight is Python's."""


def python_power(base: float, exponent: int) -> float:
    """Return the base to the power of a whole number, as the C library has it."""
    return math.pow(base, exponent)


def go_power(base: float, exponent: int) -> float:
    """Return the base, which is not negative, to the power of a whole number, with the last bit that Go's math.Pow
    gives it: squares are multiplied, and powers of two are counted apart.
    """
    if exponent == 0 or base == 1.0:
        return 1.0
    if base == 0.0:
        return 0.0 if exponent > 0 else math.inf
    product, twos = 1.0, 0
    square, shift = math.frexp(base)
    left = abs(exponent)
    while left:
        if left & 1:
            product, twos = product * square, twos + shift
        square, shift = square * square, 2 * shift
        if square < 0.5:
            square, shift = square + square, shift - 1
        left >>= 1
    try:
        return math.ldexp(1.0 / product, -twos) if exponent < 0 else math.ldexp(product, twos)
    except OverflowError:
        return math.inf


class Scores:
    """Scores within one session.

    Domains score by how full they would be, ties by how many of the group's tasks are there.
    """

    name = "network-topology-aware"
    reads = TEMPLATE_ONLY

    def __init__(self, session: Session, occupancy: DomainOccupancy, weights: Weights) -> None:
        self.session = session
        self._session = session
        self._tree = session.topology.tree
        self._occupancy = occupancy
        self._weights = weights
        self._by_dimension = {session.dims.index(name): weight for name, weight in weights.resources.items()}
        self._scale = MAX_SCORE * weights.weight
        tiers = self._tree.tiers
        self._low, self._high = tiers[0], tiers[-1]
        power = python_power if PYTHON in session.config.pumice.fix else go_power
        self._tier_weights = [(tier, power(weights.fading, tier - 1)) for tier in range(self._low, self._high + 1)]
        self._column_at: dict[int, RowArray] = {}

    # --- domains
    # --------------------------------------------------------------------------------------------------------

    def of_domains(self, sub_job: SubJob, names: list[str], *, alone: bool = False) -> dict[str, float]:
        """Return HyperNodeOrder's scores. `alone`: score each as the only candidate, so that it ties with no other."""
        columns = np.array([self._occupancy.index[name] for name in names], dtype=np.intp)
        scores = self._occupancy.packed(self._wanted(sub_job.tasks), self._by_dimension, columns).tolist()
        highest = max(scores)
        best = [i for i, score in enumerate(scores) if score == highest]
        # Volcano looks at the tasks that are there already only to break a tie for the first place.
        if len(best) > 1 and not alone:
            for i in best:
                scores[i] += self._share_in(sub_job, names[i])
        return {name: self._scale * score for name, score in zip(names, scores, strict=True)}

    def _wanted(self, tasks: list[Task]) -> dict[int, float]:
        wanted: dict[int, float] = {}
        for task in tasks:
            for dimension, value in task.template.items:
                if dimension in self._by_dimension and value >= MIN_RESOURCE:
                    wanted[dimension] = wanted.get(dimension, 0.0) + value
        return wanted

    def _share_in(self, sub_job: SubJob, name: str) -> float:
        """Return which part of the group's tasks is on the domain's nodes already."""
        domain = self._tree.domains.get(name)
        inside = set(domain.rows.tolist()) if domain else set[int]()
        node = self._session.jobs.node
        there = sum(node[task.row] in inside for task in sub_job.tasks)
        return there / len(sub_job.tasks) if sub_job.tasks else 0.0

    # --- nodes
    # ------------------------------------------------------------------------------------------------------------

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return BatchNodeOrder's scores: by the domain the group occupies, or by how full the domains of the node are.

        It depends on the very task and on what its group occupies: asked anew at every choice, never kept.
        """
        return of_candidates(session.nodes.count, self.of_nodes, Volatility.MOMENT)

    def of_nodes(self, rows: RowArray) -> FloatArray:
        """Return the total scores of these candidates for the task that is being placed."""
        task = self._session.searches.current
        assert task is not None
        job = self._session.job_of(task)
        if job is None:
            return np.zeros(len(rows))
        sub_job = self._session.sub_job_of(job, task)
        if sub_job.network_topology is not None:
            return self._scale * self._near(task, sub_job, rows)
        return self._scale * self._normal(task, rows)

    def _near(self, task: Task, sub_job: SubJob, rows: RowArray) -> FloatArray:
        occupied = self._session.topology.heading.get(task.row, "")
        if not occupied:
            return np.zeros(len(rows))
        lowest = [self._tree.lowest_of(row) for row in rows.tolist()]
        # Nodes share few lowest HyperNodes: the nearness is worked out once for each.
        by_name = {name: self._nearness(name, occupied) for name in set(lowest)}
        scores = np.array([by_name[name] for name in lowest])
        best = np.flatnonzero(scores == scores.max())
        if len(best) > 1:
            shares = {name: self._share_in(sub_job, name) for name in {lowest[i] for i in best.tolist()}}
            for i in best.tolist():
                scores[i] += shares[lowest[i]]
        return scores

    def _nearness(self, name: str, occupied: str) -> float:
        if not name:
            return 0.0
        if name == occupied:
            return 1.0
        domain = self._tree.domains.get(self._tree.lowest_common(name, occupied))
        if domain is None:
            return 0.0
        # One tier alone: the formula would divide by 0, and Volcano says 1.
        if self._low == self._high:
            return 1.0
        inside = self._low <= domain.tier <= self._high
        return float(self._high - domain.tier) / float(self._high - self._low) if inside else 0.0

    def _normal(self, task: Task, rows: RowArray) -> FloatArray:
        if not self._weights.normal_pods:
            return np.zeros(len(rows))
        total = np.zeros(len(rows))
        weight_sum = 0.0
        for _, weight in self._tier_weights:
            weight_sum += weight
        wanted = self._wanted([task])
        for tier, weight in self._tier_weights:
            columns = self._columns(tier)[rows]
            # -1 would read the last domain; what column 0 gives in its place is not used.
            packed = self._occupancy.packed(wanted, self._by_dimension, np.maximum(columns, 0))
            # A node outside of any HyperNode of the tier scores 1 there, as in Volcano.
            total += weight * np.where(columns >= 0, packed, 1.0)
        return total / weight_sum if weight_sum > 0 else np.zeros(len(rows))

    def _columns(self, tier: int) -> RowArray:
        """Return the column of the tier's first domain (by name) that holds each node, -1 for none."""
        found = self._column_at.get(tier)
        if found is None:
            found = np.full(self._session.nodes.count, -1, dtype=np.intp)
            # Backwards, so that the first domain by name is written last and stays.
            for name in reversed(self._tree.by_tier.get(tier, [])):
                found[self._tree.domains[name].rows] = self._occupancy.index[name]
            self._column_at[tier] = found
        return found


# --- Gradients of domains
# Source: Volcano `hyperNodeGradientFn`, `getSearchRoot`.

EVICT = "evict"
BY_NAME: Final = "domains-of-a-tier-by-name"
"""The rule of earlier versions."""


@dataclass(slots=True)
class Gradients:
    """The gradients of jobs and groups within one session."""

    session: Session
    occupancy: DomainOccupancy
    max_hyper_nodes: int

    def for_job(self, job: Job, domain: Domain, purpose: str) -> list[list[Domain]]:
        """Return the domains for a whole job: those with room for its minResources, unless it occupies one already."""
        topology = self.session.topology
        wish = topology.of_job(job)
        if wish is None or wish.limit is None:
            return [[domain]]
        needs = self.session.dims.items(job.pod_group.min_resources or Resource())
        return self._find(domain, wish.limit, topology.occupied.get(job.row, ""), needs, purpose)

    def for_sub_job(self, sub_job: SubJob, domain: Domain, purpose: str) -> list[list[Domain]]:
        """Return the domains for one group: those with room for all its pending tasks."""
        wish = self.session.topology.of_sub_job(sub_job)
        if wish is None or wish.limit is None:
            return [[domain]]
        total = Resource()
        for task in sub_job.pending(self.session.jobs):
            total.add(task.template.request)
        needs = self.session.dims.items(total)
        return self._find(domain, wish.limit, sub_job.allocated_hyper_node, needs, purpose)

    def _find(
        self, domain: Domain, highest: int, occupied: str, needs: tuple[tuple[int, float], ...], purpose: str
    ) -> list[list[Domain]]:
        tree = self.session.topology.tree
        root = search_root(tree, domain, highest, occupied)
        if root is None:
            return []
        by_tier: dict[int, list[Domain]] = {}
        queue, seen = [root], {root.name}
        for current in queue:  # grows while it is walked: breadth first
            # A job that occupies a HyperNode already goes on there, with room or without.
            if current.tier <= highest and (occupied or self._has_room(current, needs, purpose)):
                by_tier.setdefault(current.tier, []).append(current)
            for child in current.children:
                if child not in seen:
                    seen.add(child)
                    queue.append(tree.domains[child])
        gradients = [by_tier[tier] for tier in sorted(by_tier)]
        if BY_NAME in self.session.config.pumice.fix:
            gradients = [sorted(gradient, key=lambda one: one.name) for gradient in gradients]
        return self._widest_first(gradients) if purpose == EVICT else gradients

    def _has_room(self, domain: Domain, needs: tuple[tuple[int, float], ...], purpose: str) -> bool:
        column, occupancy = self.occupancy.index[domain.name], self.occupancy
        # Eviction can free all that is there, so only what the domain has at all counts.
        if purpose == EVICT:
            return occupancy.fits(needs, occupancy.allocatable, column)
        return occupancy.fits(needs, occupancy.idle, column) or occupancy.fits(needs, occupancy.future, column)

    def _widest_first(self, gradients: list[list[Domain]]) -> list[list[Domain]]:
        """Return the domains for an eviction: the widest tier first, at most so many domains in all."""
        left = self.max_hyper_nodes
        found: list[list[Domain]] = []
        for gradient in reversed(gradients):
            if left == 0:
                break
            found.append(gradient[-left:])
            left -= len(found[-1])
        return found


def search_root(tree: HyperNodeTree, domain: Domain, highest: int, occupied: str) -> Domain | None:
    """Return where to begin:

    `domain`, or below it the highest allowed HyperNode above what is occupied; None when the two do not meet.
    """
    if not occupied:
        return domain
    allowed = ""
    for ancestor in tree.ancestors(occupied):
        if ancestor not in tree.domains:
            return None
        if tree.domains[ancestor].tier > highest:
            break
        allowed = ancestor
    if not allowed:
        return None
    common = tree.lowest_common(domain.name, allowed)
    if common == allowed:
        return domain
    return tree.domains[allowed] if common == domain.name else None


class NetworkTopologyAware(BuiltInPlugin):
    """Tries and scores domains of the network."""

    name = "network-topology-aware"
    says = "keeps the tasks of a job close to each other in the network"
    listens = ("NodeOrder", "HyperNodeOrder", "HyperNodeGradient")
    arguments = (WEIGHT, CPU, MEMORY, LISTED, LISTED_ONE, NORMAL_PODS, FADING, MOST_DOMAINS)

    def __init__(self, arguments: PluginArguments) -> None:
        self._weights = read_weights(arguments)

    def on_session_open(self, session: Session) -> None:
        """Sum up the domains; register gradients, scores and handlers."""
        self._occupancy = occupancy = DomainOccupancy(session)
        gradients = Gradients(session, occupancy, self._weights.max_hyper_nodes)
        scores = Scores(session, occupancy, self._weights)
        session.points.hyper_node_order.add(self.name, scores.of_domains)
        session.points.batch_node_order.add(self.name, [scores])
        session.points.hyper_node_gradient_for_job.add(self.name, gradients.for_job)
        session.points.hyper_node_gradient_for_sub_job.add(self.name, gradients.for_sub_job)
        session.points.handle(occupancy.on_allocate, occupancy.on_deallocate)

    def can_go_on(self, session: Session) -> bool:
        """Return True: a change of a HyperNode or of a node's labels ends the session that has read it."""
        return True

    def on_session_renew(self, session: Session) -> None:
        """Sum up the domains again."""
        self._occupancy.renew()

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""
