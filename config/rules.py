"""The rules that cycles are decided by, as versions: a journal says for every cycle which, and replays decide by those.

A version is raised when the same configuration comes to decide otherwise. What decided otherwise until then is a switch
in `config.fixes`, and the older versions have it on, whatever the configuration says. Journals that say nothing have
version 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from config.errors import NewerVersionError

if TYPE_CHECKING:
    from config.schema import SchedulerConfig

VERSION: Final = 3
"""The rules of new cycles."""

ALWAYS_ON: Final[dict[int, frozenset[str]]] = {
    1: frozenset(
        {
            "volumes-are-no-resource",
            "scores-count-pod-level",
            "reserve-without-filters",
            "gauges-kept-apart",
            "resizes-are-ignored",
        }
    ),
    2: frozenset({"resizes-are-ignored"}),
    3: frozenset(),
}
"""By version: the switches that are on under it. Every version up to `VERSION` has a row, which never changes."""


def under(config: SchedulerConfig, version: int) -> SchedulerConfig:
    """The configuration as it is read under a version of the rules. Raises NewerVersionError."""
    always = ALWAYS_ON.get(version)
    if always is None:
        raise NewerVersionError("the rules of a cycle", version, VERSION)
    more = sorted(always.difference(config.pumice.fix))
    if not more:
        return config
    pumice = msgspec.structs.replace(config.pumice, fix=(*config.pumice.fix, *more))
    return msgspec.structs.replace(config, pumice=pumice)
