"""One extension point: the rules the plugins gave it, in the order in which the configuration has them consulted."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from core.session.points.listed import Listed

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
        self.__dict__.clear()  # nothing but what is derived from the rules stands there

    @cached_property
    def tiers(self) -> tuple[tuple[tuple[str, R], ...], ...]:
        """The consulted plugins with their rules, tier by tier; tiers without one are left out."""
        rules = self._registered
        tiers = [tuple([(name, rules[name]) for name in tier if name in rules]) for tier in self._listed]
        return tuple([tier for tier in tiers if tier])

    @cached_property
    def tier_numbers(self) -> tuple[int, ...]:
        """Of each of them: the how manieth tier of the configuration it is."""
        tiers = enumerate(self._listed, 1)
        return tuple([number for number, tier in tiers if any(name in self._registered for name in tier)])

    @cached_property
    def named(self) -> tuple[tuple[str, R], ...]:
        """Plugins and their rules in one line of pairs, in the order in which they are asked."""
        return tuple([each for tier in self.tiers for each in tier])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The consulted plugins."""
        return tuple([name for name, _ in self.named])

    @cached_property
    def rules(self) -> tuple[R, ...]:
        """Their rules."""
        return tuple([rule for _, rule in self.named])
