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

    __slots__ = ("__dict__", "_listed", "_named", "_registered", "_rules", "name")

    def __init__(self, name: str, listed: Listed) -> None:
        self.name = name
        self._listed = listed[name]
        self._registered: dict[str, R] = {}
        self._named: tuple[tuple[str, R], ...] | None = None  # nothing is derived from the rules before these are
        self._rules: tuple[R, ...] = ()

    def add(self, plugin: str, rule: R) -> None:
        """Register a plugin's rule; a second one replaces the first."""
        self._registered[plugin] = rule
        if self._named is not None:
            self._named = None
            self.__dict__.clear()  # what else is derived from the rules stands there, and nothing besides

    @property
    def named(self) -> tuple[tuple[str, R], ...]:
        """Plugins and their rules in one line of pairs, in the order in which they are asked."""
        named = self._named
        if named is None:
            rules = self._registered
            named = tuple([(name, rules[name]) for tier in self._listed for name in tier if name in rules])
            self._named, self._rules = named, tuple([rule for _, rule in named])
        return named

    @property
    def rules(self) -> tuple[R, ...]:
        """Their rules."""
        return self._rules if self._named is not None or self.named else ()

    @property
    def names(self) -> tuple[str, ...]:
        """The consulted plugins."""
        return tuple([name for name, _ in self.named])

    @cached_property
    def tiers(self) -> tuple[tuple[tuple[str, R], ...], ...]:
        """The consulted plugins with their rules, tier by tier; tiers without one are left out."""
        rules = dict(self.named)
        tiers = [tuple([(name, rules[name]) for name in tier if name in rules]) for tier in self._listed]
        return tuple([tier for tier in tiers if tier])

    @cached_property
    def tier_numbers(self) -> tuple[int, ...]:
        """Of each of them: the how manieth tier of the configuration it is."""
        rules, tiers = dict(self.named), enumerate(self._listed, 1)
        return tuple([number for number, tier in tiers if any(name in rules for name in tier)])
