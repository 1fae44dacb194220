"""What is only tried asks no process outside, and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pumice.config.schema import SchedulerConfig
from pumice.core.outside import Ask, AskedOutside, Supposing
from pumice.core.plugins import ASKING
from pumice.core.plugins.extender.settings import read_settings

UNASKED: Final = (
    "the extender at {} is asked nothing here: where no record says what it answered, this supposes that it agrees"
)


class AskedOnce:
    """Whom a cycle asks that is tried again and again: whom `ask` says at first, then nobody, for what only might be is
    not to be taken for what is; then the first answers hold, and what is asked besides is supposed.
    """

    def __init__(self, ask: Callable[[], Ask]) -> None:
        self._ask = ask
        self._first: AskedOutside | None = None

    def __call__(self) -> Ask:
        """For one more try."""
        if self._first is not None:
            return Supposing(self._first.answers())
        self._first = AskedOutside(self._ask())
        return self._first


def unasked(config: SchedulerConfig) -> list[str]:
    """What must be said of an answer for which no process outside was asked, though the configuration names some."""
    found = [
        read_settings(dict(option.arguments or {}))
        for tier in config.tiers
        for option in tier.plugins
        if option.name in ASKING
    ]
    return [UNASKED.format(each.url_prefix) for each in found if each.verbs]


def supposed(ask: Ask, config: SchedulerConfig) -> list[str]:
    """What `unasked` says, of one cycle when it is over: nothing where all was answered."""
    return unasked(config) if isinstance(ask, Supposing) and ask.unasked else []
