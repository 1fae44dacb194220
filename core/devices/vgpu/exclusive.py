# SPDX-License-Identifier: Apache-2.0
"""Rules by which pods keep cards for themselves: no two pods that match one rule share a card.

Source: Volcano `plugins/deviceshare/gpuexclusive.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import Object, is_list, is_mapping

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task

Rules = tuple[tuple[tuple[str, str], ...], ...]
"""Each is the labels, with their values, that a pod must have for it."""


def read_rules(listed: object) -> Rules:
    """Return the rules of an argument; a value that is not a text is passed over, as in Volcano."""
    found = [
        tuple(sorted((str(key), value) for key, value in rule.items() if isinstance(value, str)))
        for rule in (listed if is_list(listed) else ())
        if is_mapping(rule)
    ]
    return tuple(rule for rule in found if rule)


NO_RULES: Final = frozenset[int]()


class Reserved:
    """The cards of nodes that a rule's pods hold: reserved while any pod that matches a rule uses them."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._pods: dict[int, dict[str, tuple[str, frozenset[int]]]] = {}  # node -> pod -> its uid and rules
        self._cards: dict[tuple[int, int], set[int]] = {}  # node and rule -> cards

    def rules_of(self, labels: Mapping[str, str]) -> frozenset[int]:
        """Return the rules that a pod matches."""
        if not self._rules:
            return NO_RULES
        matching = (number for number, rule in enumerate(self._rules) if all(labels.get(k) == v for k, v in rule))
        return frozenset(matching)

    def holds(self, row: int, card: int, rules: frozenset[int]) -> bool:
        """Return whether a pod with these rules must keep off a card."""
        return any(card in self._cards.get((row, rule), ()) for rule in rules)

    def enter(self, row: int, task: Task, cards: Iterable[int]) -> None:
        """Record that a pod holds these cards."""
        rules = self.rules_of(task.labels)
        if rules:
            self._pods.setdefault(row, {})[task.key] = task.uid, rules
            for rule in rules:
                self._cards.setdefault((row, rule), set()).update(cards)

    def leave(self, row: int, task: Task, users: Mapping[tuple[int, int], Object]) -> None:
        """Record that a pod is gone; `users`: the users of each card (node and number), by uid."""
        _, rules = self._pods.get(row, {}).pop(task.key, ("", frozenset[int]()))
        others = {uid for uid, _ in self._pods.get(row, {}).values()} - {task.uid}
        for rule in rules:
            cards = self._cards.get((row, rule), set())
            cards -= {card for card in cards if others.isdisjoint(users.get((row, card), ()))}

    def alone(self, row: int) -> Reserved:
        """Return a copy with one node, as node 0."""
        twin = Reserved(self._rules)
        twin._pods = {0: dict(self._pods.get(row, {}))}
        twin._cards = {(0, rule): set(cards) for (at, rule), cards in self._cards.items() if at == row}
        return twin
