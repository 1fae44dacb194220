# SPDX-License-Identifier: Apache-2.0
"""The memory from one cycle to the next, beside the view: it goes into every journal record of a cycle and into
checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.messages.decisions import FailedAnswers


@dataclass(slots=True)
class Carry:
    """State that passes to the next cycle. `start`: index into the node list at which the next search begins
    (sampling). `actions`: arguments an action was once given stay until a restart, as Volcano's action singletons have
    them. `plugins`: timers and the like, by plugin. `hyper_nodes`: job -> "" or group id -> the HyperNode it occupies.
    `nominated`: job -> group id -> the HyperNode in which room was made for it (only under the fix
    nominated-domains-last).
    """

    start: int = 0
    actions: dict[str, Object] = field(default_factory=dict[str, "Object"])
    plugins: dict[str, Object] = field(default_factory=dict[str, "Object"])
    hyper_nodes: dict[str, dict[str, str]] = field(default_factory=dict[str, "dict[str, str]"])
    nominated: dict[str, dict[str, str]] = field(default_factory=dict[str, "dict[str, str]"])

    def to_dict(self) -> Object:
        """Return plain data, for messages."""
        plain = {"start": self.start, "actions": self.actions, "plugins": self.plugins, "hyper_nodes": self.hyper_nodes}
        return {**plain, "nominated": self.nominated} if self.nominated else plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Carry:
        """Return a carry from plain data, which it shares; absent parts start fresh."""
        names = ("actions", "plugins", "hyper_nodes", "nominated")
        return cls(int(data.get("start", 0)), *[data.get(name, dict[str, Object]()) for name in names])

    def copy(self) -> Carry:
        """Return an independent copy."""
        kept = (self.actions, self.plugins, self.hyper_nodes, self.nominated)
        return Carry(self.start, *[{key: dict(inner) for key, inner in each.items()} for each in kept])


@dataclass(frozen=True, slots=True)
class CycleClock:
    """The number of a cycle, when it happens (`now`, seconds since the epoch) and the seed of its ties."""

    cycle: int
    now: float
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options of Volcano's scheduler command line about searching (None: as the configuration's `pumice` section
    says).

    `percentage_of_nodes`: how many feasible nodes are enough; 0 is Volcano's adaptive default, 100 looks at all.
    `shard`: (mode "hard" or "soft", names of this scheduler's nodes). `explain`: pods ("namespace/name") whose filters
    and scores at opening go into the report. `wordless`: neither the reasons why tasks wait nor the digest are read, so
    they need not be found. `failed`: what users' plugins failed to answer when this cycle was recorded; they are not
    asked it again.
    """

    percentage_of_nodes: int | None = None
    minimum_feasible_nodes: int | None = None
    minimum_percentage: int | None = None
    shard: tuple[str, frozenset[str]] | None = None
    ignored_provisioners: tuple[str, ...] = ()
    hyper_nodes: Object | None = None
    node_usage: Object | None = None
    explain: tuple[str, ...] = ()
    wordless: bool = False
    failed: tuple[FailedAnswers, ...] = ()
