# SPDX-License-Identifier: Apache-2.0
"""The tree of HyperNodes over the existing nodes. Source: Volcano `api/hyper_node_info.go`, session
`addClusterTopHyperNode`.

A HyperNode with two parents and a cycle make the tree unfit: jobs that ask for a topology wait then, and `problem`
says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from pumice.core.kube.patterns import Pattern, PatternError, Patterns, pattern_of
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.objects.hyper_node import HyperNode
from pumice.core.objects.metadata import Object, section

if TYPE_CHECKING:
    from pumice.core.objects.node import NodeSpec

TOP = "<cluster-top-hypernode>"
RowArray = npt.NDArray[np.intp]
TOGETHER: Final = 32
"""Patterns that are tried in one pass: with more of them the engine needs more room than it has."""


@dataclass(slots=True)
class Domain:
    """One HyperNode in the tree.

    `rows`: the node rows of its whole subtree, in name order; `children` in the order of a walk (see `in_walk`);
    `length` of its name.
    """

    name: str
    tier: int
    tier_name: str = ""
    parent: str = ""
    children: list[str] = field(default_factory=list[str])
    rows: RowArray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    length: int = 0

    @property
    def in_walk(self) -> tuple[int, str]:
        """Sort siblings as a walk through the tree meets them: s9 before s10."""
        return self.length or len(self.name), self.name


class HyperNodeTree:
    """Domains by name (in name order), with the virtual top above all roots.

    `tiers`: ascending, the top's included; `by_tier`: names of each tier, in name order. `problem`: why the tree is
    unfit, or "".
    """

    def __init__(self, domains: dict[str, Domain], by_tier: dict[int, list[str]], problem: str, count: int) -> None:
        self.problem = problem
        top = Domain(TOP, max([0, *by_tier]) + 1, rows=np.arange(count, dtype=np.intp))
        for domain in sorted(domains.values(), key=lambda one: one.in_walk):
            if not domain.parent:
                domain.parent = TOP
                top.children.append(domain.name)
        self.domains = {name: domains[name] for name in sorted(domains)} | {TOP: top}
        known = {tier: sorted(name for name in names if name in domains) for tier, names in by_tier.items()}
        self.by_tier = {**known, top.tier: [TOP]}
        self.tiers = sorted(self.by_tier)
        self.tier_by_name = {d.tier_name: d.tier for d in self.domains.values() if d.tier_name}
        self._lowest = self._at_tier(self.tiers[0], count)

    @property
    def top(self) -> Domain:
        """Return the virtual HyperNode above all roots: the whole cluster."""
        return self.domains[TOP]

    @property
    def is_trivial(self) -> bool:
        """Return whether no real HyperNode exists."""
        return len(self.domains) == 1

    def _at_tier(self, tier: int, count: int) -> list[str]:
        if self.is_trivial:
            return [TOP] * count
        found = [""] * count
        # Backwards, so that the first HyperNode by name is written last and stays.
        for name in reversed(self.by_tier[tier]):
            for row in self.domains[name].rows.tolist():
                found[row] = name
        return found

    def lowest_of(self, row: int) -> str:
        """Return the HyperNode of the lowest tier that holds a node, "" for none (FindHyperNodeForNode)."""
        return self._lowest[row]

    @property
    def orphans(self) -> list[str]:
        """Return members that no HyperNode describes: they hold no node."""
        described = {name for names in self.by_tier.values() for name in names}
        return [name for name in self.domains if name not in described]

    def ancestors(self, name: str) -> list[str]:
        """Return the HyperNode itself, its parent, and so on up."""
        path = [name]
        while (domain := self.domains.get(path[-1])) is not None and domain.parent and domain.parent not in path:
            path.append(domain.parent)
        return path

    def lowest_common(self, name: str, other: str) -> str:
        """Return the lowest HyperNode above both; "" counts as unknown (GetLCAHyperNode)."""
        if not name or not other:
            return name or other
        above = set(self.ancestors(name))
        return next((ancestor for ancestor in self.ancestors(other) if ancestor in above), "")


class MatchedNames:
    """The nodes whose name matches a pattern. Only a new pattern or a new name is tried."""

    def __init__(self) -> None:
        self._names: Set[str] = frozenset()
        self._found: dict[str, set[str]] = {}

    def found(self, patterns: Iterable[str], names: Set[str]) -> dict[str, set[str]]:
        """Return the nodes by pattern; an invalid pattern matches nothing."""
        wanted = {text: _pattern(text) for text in patterns}
        known, added = self._found.keys() & wanted.keys(), names - self._names
        gone = bool(self._names - names)
        # No name has gone: the sets of the last tree are used as they are.
        found = {text: self._found[text] & names if gone else self._found[text] for text in known}
        found |= {text: set[str]() for text in wanted.keys() - known}
        _match({text: pattern for text, pattern in wanted.items() if text not in known}, names, found)
        _match({text: pattern for text, pattern in wanted.items() if text in known}, added, found)
        self._names, self._found = frozenset(names), found
        return found


def _pattern(text: str) -> Pattern | None:
    try:
        return pattern_of(text)
    except PatternError:
        return None


def _match(wanted: dict[str, Pattern | None], names: Set[str], found: dict[str, set[str]]) -> None:
    left = iter([pattern for pattern in wanted.values() if pattern is not None] if names else ())
    while some := list(islice(left, TOGETHER)):
        together, columns = Patterns(some), [found[pattern.text] for pattern in some]
        for name in names:
            for place in together.those_in(name):
                columns[place].add(name)


def build_tree(
    hyper_nodes: Sequence[HyperNode], nodes: Sequence[NodeSpec], matched: MatchedNames | None = None
) -> HyperNodeTree:
    """Return the tree of these HyperNodes; of two of one name the later counts. `matched`: from the trees before."""
    by_name = {hyper_node.name: hyper_node for hyper_node in hyper_nodes}
    domains = {h.name: Domain(h.name, h.tier, h.tier_name, length=h.length) for h in by_name.values()}
    by_tier: dict[int, list[str]] = {}
    for hyper_node in by_name.values():
        by_tier.setdefault(hyper_node.tier, []).append(hyper_node.name)
    problem = _link(domains, by_name)
    if not problem:
        _fill(domains, by_name, nodes, matched or MatchedNames())
    return HyperNodeTree(domains, by_tier, problem, len(nodes))


def replaced_tree(
    hyper_nodes: Sequence[HyperNode],
    by_tier: dict[int, list[str]],
    leaves: dict[str, list[str]],
    row_of: dict[str, int],
) -> HyperNodeTree:
    """Return a tree with the given tiers and leaves; the HyperNodes and their parents come from the objects, if any
    exist.
    """
    by_name = {hyper_node.name: hyper_node for hyper_node in hyper_nodes}
    tier_of = {name: tier for tier, names in by_tier.items() for name in names}
    domains: dict[str, Domain] = {}
    for name in by_name or tier_of:
        known = by_name.get(name)
        tier, tier_name, length = (known.tier, known.tier_name, known.length) if known else (tier_of[name], "", 0)
        domains[name] = Domain(name, tier, tier_name, length=length)
    problem = _link(domains, by_name)
    for name in set(domains) - set(by_name or tier_of):  # a member without a description is not a domain here
        domains[domains[name].parent].children.remove(name)
        del domains[name]
    for name, members in leaves.items():
        if name in domains:
            domains[name].rows = _rows(row_of[node] for node in members if node in row_of)
    return HyperNodeTree(domains, by_tier, problem, len(row_of))


def _rows(rows: Iterable[int]) -> RowArray:
    return np.array(sorted(set(rows)), dtype=np.intp)


def _link(domains: dict[str, Domain], by_name: dict[str, HyperNode]) -> str:
    """Set parents and children, and return the problem that makes the tree unusable, or ""."""
    for name in sorted(by_name):
        for child in by_name[name].children:
            domain = domains.setdefault(child, Domain(child, 0))
            if domain.parent and domain.parent != name:
                return f"HyperNode {child} already has a parent {domain.parent}, and cannot set another parent {name}"
            domain.parent = name
        domains[name].children = sorted(set(by_name[name].children), key=lambda child: domains[child].in_walk)
    for name in sorted(domains):
        seen = [name]
        while parent := domains[seen[-1]].parent:
            if parent in seen:
                return f"cyclic dependency detected: HyperNode {parent} is its own ancestor"
            seen.append(parent)
    return ""


def _fill(
    domains: dict[str, Domain], by_name: dict[str, HyperNode], nodes: Sequence[NodeSpec], matched: MatchedNames
) -> None:
    if not domains:
        return
    row_of = {spec.name: row for row, spec in enumerate(nodes)}
    selectors = [selector for hyper_node in by_name.values() for selector in hyper_node.selectors]
    patterns = [text for selector in selectors if (text := _pattern_in(selector)) is not None]
    found_by = matched.found(patterns, row_of.keys()) if patterns else {}

    below = [name for name, domain in domains.items() if not domain.parent]
    for name in below:  # it grows: parents come before their children
        below += domains[name].children
    found: dict[str, set[int]] = {}
    for name in reversed(below):
        hyper_node = by_name.get(name)
        own = _members(hyper_node.selectors, nodes, row_of, found_by) if hyper_node else set[int]()
        # Children before their parents: each set is read once and let go.
        found[name] = own.union(*(found.pop(child) for child in domains[name].children))
        domains[name].rows = _rows(found[name])


def _pattern_in(selector: Object) -> str | None:
    pattern: str | None = section(selector, "regexMatch").get("pattern")
    return pattern


def _members(
    selectors: Sequence[Object],
    nodes: Sequence[NodeSpec],
    row_of: dict[str, int],
    found_by: dict[str, set[str]],
) -> set[int]:
    found: set[int] = set()
    for selector in selectors:
        name = section(selector, "exactMatch").get("name")
        # A HyperNode may name nodes that do not exist (yet).
        if name in row_of:
            found.add(row_of[name])
        pattern = _pattern_in(selector)
        if pattern is not None:
            found.update(row_of[each] for each in found_by[pattern])
        labels = selector.get("labelMatch")
        # An empty selector would match every node; here it matches none.
        if labels and (labels.get("matchLabels") or labels.get("matchExpressions")):
            found |= _labelled(labels, nodes)
    return found


def _labelled(selector: Object, nodes: Sequence[NodeSpec]) -> set[int]:
    try:
        wanted = label_selector(selector)
    except SelectorError:
        return set()
    return {row for row, spec in enumerate(nodes) if wanted.matches(spec.labels)}
