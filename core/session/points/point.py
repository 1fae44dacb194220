"""One extension point: the rules the plugins gave it, in the order in which the configuration has them consulted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from pumice.core.once import once

if TYPE_CHECKING:
    from pumice.core.session.points.listed import Listed

R = TypeVar("R")


class Point(Generic[R]):
    """Rules of the type R by plugin. Those who inherit from it say how rules are merged, in one method.

    A plugin has at most one rule; it is consulted once for each place where the configuration lists the plugin with the
    point's flag on.
    """

    __slots__ = ("__dict__", "_listed", "_registered", "name")

    def __init__(self, name: str, listed: Listed) -> None:
        self.name = name
        self._listed = listed[name]
        self._registered: dict[str, R] = {}

    def add(self, plugin: str, rule: R) -> None:
        """Register a plugin's rule; a second one replaces the first."""
        self._registered[plugin] = rule
        if self.__dict__:
            self.__dict__.clear()  # what is derived from the rules stands there, and nothing besides

    @once
    def named(self) -> tuple[tuple[str, R], ...]:
        """Plugins and their rules in one line of pairs, in the order in which they are asked."""
        rules = self._registered
        return tuple([(name, rules[name]) for tier in self._listed for name in tier if name in rules])

    @once
    def rules(self) -> tuple[R, ...]:
        """Their rules."""
        rules = self._registered
        return tuple([rules[name] for tier in self._listed for name in tier if name in rules])

    @property
    def names(self) -> tuple[str, ...]:
        """The consulted plugins."""
        return tuple([name for name, _ in self.named])

    @once
    def tiers(self) -> tuple[tuple[tuple[str, R], ...], ...]:
        """The consulted plugins with their rules, tier by tier; tiers without one are left out."""
        rules = dict(self.named)
        tiers = [tuple([(name, rules[name]) for name in tier if name in rules]) for tier in self._listed]
        return tuple([tier for tier in tiers if tier])

    @once
    def tier_numbers(self) -> tuple[int, ...]:
        """The number, from 1, that each of these tiers has in the configuration."""
        rules, tiers = dict(self.named), enumerate(self._listed, 1)
        return tuple([number for number, tier in tiers if any(name in rules for name in tier)])
