"""One extension point: the rules the plugins gave it, in the order in which the configuration has them consulted."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.session.points.listed import Listed

R = TypeVar("R")


class Point(Generic[R]):
    """Rules of the type R by plugin. Those who inherit from it say how rules are merged, in one method.

    A plugin has at most one rule; it is consulted once for each place where the configuration lists the plugin with the
    point's flag on.
    """

    __slots__ = ("__dict__", "_listed", "_listener", "_registered", "name")

    def __init__(self, name: str, listed: Listed) -> None:
        self.name = name
        self._listed = listed[name]
        self._registered: dict[str, R] = {}
        self._listener: Callable[[str, R], R] | None = None

    def add(self, plugin: str, rule: R) -> None:
        """Register a plugin's rule; a second one replaces the first."""
        self._registered[plugin] = rule
        self._derive_anew()

    def listen(self, listener: Callable[[str, R], R]) -> None:
        """From now on `listener(plugin, rule)` is consulted in place of every rule: it may note what the rule says."""
        self._listener = listener
        self._derive_anew()

    def _derive_anew(self) -> None:
        self.__dict__.clear()  # nothing but what is derived from the rules stands there

    @cached_property
    def tiers(self) -> tuple[tuple[tuple[str, R], ...], ...]:
        """The consulted plugins with their rules, tier by tier; tiers without one are left out."""
        heard = self._heard()
        tiers = [tuple([(name, heard[name]) for name in tier if name in heard]) for tier in self._listed]
        return tuple([tier for tier in tiers if tier])

    @cached_property
    def tier_numbers(self) -> tuple[int, ...]:
        """Of each of them: the how manieth tier of the configuration it is."""
        tiers = enumerate(self._listed, 1)
        return tuple([number for number, tier in tiers if any(name in self._registered for name in tier)])

    def _heard(self) -> dict[str, R]:
        listener = self._listener
        if listener is None:
            return self._registered
        return {name: listener(name, rule) for name, rule in self._registered.items()}

    @cached_property
    def named(self) -> tuple[tuple[str, R], ...]:
        """The same in one line."""
        return tuple([each for tier in self.tiers for each in tier])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The consulted plugins."""
        return tuple([name for name, _ in self.named])

    @cached_property
    def rules(self) -> tuple[R, ...]:
        """Their rules."""
        return tuple([rule for _, rule in self.named])
